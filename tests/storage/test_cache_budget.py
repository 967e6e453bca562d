"""The cache budget: one bound and one order over all caches, counted to the byte."""

from __future__ import annotations

import json
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage import cache_budget
from omnigraph.storage.cache_budget import (
    METADATA_MOST,
    METADATA_SHARE,
    VERSIONS_BEHIND,
    Cache,
    CacheBudget,
    Part,
    configured_bytes,
)
from omnigraph.storage.tables import row_lookup
from omnigraph.storage.tables.handles import cache_uses


class Thing:
    """Something of a size; ``shared`` is what it has in common with others."""

    def __init__(self, size: int, *shared: Thing) -> None:
        self.size = size
        self.shared = shared

    def parts(self) -> list[Part]:
        return [(self, self.size), *((other, other.size) for other in self.shared)]


def two(max_bytes: int) -> tuple[CacheBudget, Cache[str, Thing], Cache[str, Thing]]:
    budget = CacheBudget(max_bytes)
    return budget, Cache("one", Thing.parts, budget), Cache("other", Thing.parts, budget)


def held(budget: CacheBudget) -> int:
    return sum(use.bytes for use in budget.uses().values())


def test_what_was_used_longest_ago_goes_first_whichever_cache_it_is_in() -> None:
    budget, one, other = two(30)
    one.keep("a", Thing(10))
    other.keep("b", Thing(10))
    one.keep("c", Thing(10))
    one.get("a")
    other.keep("d", Thing(10))
    assert other.look("b") is None
    one.keep("e", Thing(15))
    assert [one.look(key) is not None for key in "ace"] == [False, False, True]
    assert other.look("d") is not None
    assert held(budget) == 25


def test_looking_is_no_use() -> None:
    _, one, _ = two(20)
    one.keep("a", Thing(10))
    one.keep("b", Thing(10))
    assert one.look("a") is not None
    one.keep("c", Thing(10))
    assert one.look("a") is None
    assert one.use().hits == 0


def test_what_is_larger_than_the_budget_is_not_kept_and_pushes_nothing_out() -> None:
    budget, one, other = two(30)
    other.keep("small", Thing(10))
    one.keep("large", Thing(31))
    assert one.keep_first("large", huge := Thing(31)) is huge
    assert one.look("large") is None
    assert other.look("small") is not None
    assert held(budget) == 10


def test_what_outgrows_the_budget_goes_and_pushes_nothing_out() -> None:
    budget, one, other = two(30)
    other.keep("small", Thing(10))
    one.keep("growing", thing := Thing(10))
    one.grow("growing", (Thing(5), 5), lambda known: known is thing)
    assert held(budget) == 25
    one.grow("growing", (Thing(100), 100), lambda known: known is thing)
    assert one.look("growing") is None
    assert other.look("small") is not None
    assert held(budget) == 10


def test_growth_of_something_that_was_replaced_counts_nothing() -> None:
    budget, one, _ = two(30)
    one.keep("a", old := Thing(10))
    one.keep("a", Thing(7))
    one.grow("a", (Thing(5), 5), lambda known: known is old)
    one.grow("gone", (Thing(5), 5), lambda known: known is old)
    assert held(budget) == 7


def test_a_part_that_entries_share_counts_once_and_until_the_last_is_gone() -> None:
    budget, one, _ = two(200)
    common = Thing(100)
    for key in "abc":
        one.keep(key, Thing(1, common))
    assert held(budget) == 103
    one.forget("a")
    one.keep("b", Thing(2, common))
    assert held(budget) == 103
    one.forget("b")
    one.forget("c")
    assert held(budget) == 0


def test_the_first_of_two_stays_where_it_must() -> None:
    _, one, _ = two(30)
    first = Thing(10)
    assert one.keep_first("a", first) is first
    assert one.keep_first("a", Thing(10)) is first
    assert one.use().entries == 1


def test_a_cache_with_a_share_keeps_within_it_but_keeps_the_newest() -> None:
    budget = CacheBudget(100)
    cache: Cache[str, Thing] = Cache("part", Thing.parts, budget, lambda whole: whole // 4)
    for key in "abcd":
        cache.keep(key, Thing(10))
    assert [cache.look(key) is not None for key in "abcd"] == [False, False, True, True]
    cache.keep("large", Thing(60))
    assert cache.use().entries == 1
    assert cache.look("large") is not None


def test_what_is_dropped_is_let_go() -> None:
    _, one, _ = two(10)
    thing = Thing(10)
    watch = weakref.ref(thing)
    one.keep("a", thing)
    del thing
    assert watch() is not None
    one.keep("b", Thing(10))
    assert watch() is None


def test_a_cache_that_is_gone_holds_nothing() -> None:
    budget, one, other = two(30)
    one.keep("a", Thing(30))
    del one
    assert held(budget) == 0
    other.keep("b", Thing(30))
    assert other.look("b") is not None


def test_with_no_bytes_nothing_is_kept() -> None:
    budget, one, _ = two(0)
    one.keep("a", Thing(1))
    assert one.get("a") is None
    assert held(budget) == 0


def test_threads_leave_the_count_right() -> None:
    budget, one, other = two(500)
    common = [Thing(40) for _ in range(3)]

    def work(seed: int) -> None:
        draw = Random(seed)  # noqa: S311 - a repeatable draw is the point
        for _ in range(2_000):
            cache = draw.choice([one, other])
            key = str(draw.randrange(30))
            match draw.randrange(5):
                case 0:
                    cache.forget(key)
                case 1:
                    cache.get(key)
                case 2:
                    cache.grow(key, (Thing(3), 3), lambda _: True)
                case _:
                    cache.keep(key, Thing(draw.randrange(1, 40), draw.choice(common)))
            assert held(budget) <= 500

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    one.clear()
    other.clear()
    assert held(budget) == 0


@pytest.mark.parametrize(("text", "size"), [("512MB", 512 * 10**6), ("2GiB", 2**31), ("77", 77)])
def test_the_environment_says_how_much(
    monkeypatch: pytest.MonkeyPatch, text: str, size: int
) -> None:
    monkeypatch.setenv("OMNIGRAPH_CACHE_BYTES", text)
    assert configured_bytes() == size
    assert CacheBudget().max_bytes == size // 2


@pytest.mark.parametrize(("memory", "size"), [(2**30, 2**28), (2**40, 8 * 2**30)])
def test_without_a_word_it_is_a_part_of_the_memory(
    monkeypatch: pytest.MonkeyPatch, memory: int, size: int
) -> None:
    monkeypatch.setenv("OMNIGRAPH_CACHE_BYTES", "")
    monkeypatch.setattr(cache_budget, "memory_limit", lambda: memory)
    assert configured_bytes() == size


def test_a_size_that_is_none_is_refused_with_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_CACHE_BYTES", "plenty")
    with pytest.raises(
        StorageError, match=r"OMNIGRAPH_CACHE_BYTES is 'plenty': .*512MB"
    ) as refused:
        configured_bytes()
    assert refused.value.kind == "configuration"


def test_all_caches_of_the_process_together_may_hold_what_is_configured() -> None:
    assert row_lookup.fragment_maps.use().max_bytes
    uses = cache_uses()
    assert {"handles", "ids", "written_ids", "storage_indexes", "storage_metadata"} <= uses.keys()
    share = int(configured_bytes() * METADATA_SHARE)
    assert uses["storage_metadata"].max_bytes == min(share, METADATA_MOST)
    rest = uses["ids"].max_bytes + uses["storage_indexes"].max_bytes
    assert rest + share == pytest.approx(configured_bytes(), abs=8)


# -- versions that were left behind ---------------------------------------------------------------


def versioned(
    line: bool = False,
) -> tuple[CacheBudget, Cache[tuple[str, int], Thing]]:
    budget = CacheBudget(1_000_000)
    of_table = (lambda key: key[0]) if line else (lambda _: None)
    return budget, Cache("some", Thing.parts, budget, version=lambda key: key, line=of_table)


def advance(budget: CacheBudget, cache: Cache[tuple[str, int], Thing], last: int) -> None:
    """A branch moves on from version to version of a table, and something is kept of each."""
    for version in range(last + 1):
        cache.keep(("t", version), Thing(10))
        if version:
            budget.supersede([("t", version - 1)])


def test_versions_that_were_left_behind_go_but_for_the_last_few() -> None:
    budget, cache = versioned()
    cache.keep(("other", 0), Thing(10))
    advance(budget, cache, 100)
    assert len(cache) == 1 + 1 + VERSIONS_BEHIND
    assert cache.look(("t", 100)) is not None
    assert cache.look(("t", 99 - VERSIONS_BEHIND)) is None
    assert cache.look(("other", 0)) is not None
    assert cache.bytes == 10 * len(cache)


def test_a_version_that_another_branch_shows_is_loaded_once_more_and_stays() -> None:
    budget, cache = versioned()
    advance(budget, cache, 50)
    assert cache.look(("t", 3)) is None
    cache.keep(("t", 3), Thing(10))
    for version in range(50, 80):
        budget.supersede([("t", version)])
    assert cache.look(("t", 3)) is not None


def test_the_last_of_a_line_stays() -> None:
    budget, cache = versioned(line=True)
    cache.keep(("t", 0), Thing(10))
    for version in range(30):
        budget.supersede([("t", version)])
    assert cache.look(("t", 0)) is not None
    cache.keep(("t", 30), Thing(10))
    assert len(cache) == 2
    advance(budget, cache, 60)
    assert len(cache) <= VERSIONS_BEHIND + 2


def test_no_trace_is_left_of_entries_that_went() -> None:
    budget, cache = versioned(line=True)
    advance(budget, cache, 40)
    cache.forget(("t", 40))
    cache.clear()
    assert (len(cache), cache.bytes, cache._versions, cache._lines) == (0, 0, {}, {})


def test_caches_of_one_name_are_told_together() -> None:
    budget = CacheBudget(100)
    kept: list[Cache[str, Thing]] = [Cache("same", Thing.parts, budget) for _ in range(2)]
    for number, cache in enumerate(kept):
        cache.keep(str(number), Thing(10))
    assert (budget.uses()["same"].entries, budget.uses()["same"].bytes) == (2, 20)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux what is held")
def test_what_caches_say_adds_up_to_what_a_process_holds(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.storage.held_by_caches", str(tmp_path / "graph")],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    for held, told in json.loads(run.stdout.splitlines()[0]):
        assert told > 20 * 10**6
        assert held / 1.4 <= told <= held * 1.4
