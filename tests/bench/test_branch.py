"""The branch benchmark at a tiny size: the systems agree, and what was lost is found."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bench import bench_branch
from bench.bench_branch import MERGED, Size, measure
from bench.branch.data import People
from bench.branch.rounds import Round, Step, run_round
from bench.branch.systems import PEER, Differing, Merged, Sums
from bench.branch.tables import Rounds, growth_table, merge_table
from bench.traversal.systems import is_installed

TINY = Size(merged=(20,), tables=(60, 120), rounds=1, runs=2, branches=(3, 20))

Row = tuple[object, ...]


class Dicts:
    """A system in memory that merges rightly, or forgets rows or columns of one side."""

    def __init__(self, forgets: str = "nothing") -> None:
        self.forgets = forgets
        self.branches: dict[str, dict[object, Row]] = {}
        self.bases: dict[str, dict[object, Row]] = {}

    def load(self, rows: pa.Table) -> None:
        self.branches["main"] = {row[0]: row for row in _rows(rows)}

    def branch(self, name: str) -> float:
        self.branches[name] = dict(self.branches["main"])
        self.bases[name] = dict(self.branches["main"])
        return 1.0

    def change(self, branch: str, rows: pa.Table) -> float:
        self.branches[branch] |= {row[0]: row for row in _rows(rows)}
        return 1.0

    def diff(self, name: str) -> Differing:
        ours, theirs = self.branches["main"], self.branches[name]
        return Differing(1.0, sum(ours.get(key) != theirs.get(key) for key in ours | theirs))

    def merge(self, name: str) -> Merged:
        base, ours, theirs = self.bases[name], self.branches["main"], self.branches[name]
        for key, row in theirs.items():
            if key not in base:
                if self.forgets != "inserts":
                    ours[key] = row
            elif row != base[key]:
                kept = ours[key][3] if self.forgets != "target" else row[3]
                ours[key] = (*row[:3], kept)
        return Merged(2.0, 5)

    def sums(self) -> Sums:
        rows = self.branches["main"].values()
        return (
            len(rows),
            sum(int(str(row[1])) for row in rows),
            sum(float(str(row[3])) for row in rows if str(row[0]).startswith("p")),
        )


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def loaded(system: Dicts, people: People) -> Dicts:
    system.load(people.table())
    return system


@pytest.mark.slow
def test_a_tiny_run_merges_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = measure(TINY)
    shown = capsys.readouterr().out
    for text in ("create a branch", "20 rows, three-way", "20 rows, fast-forward", "requests"):
        assert text in shown
    names = [ratio.name for ratio in ratios]
    assert names[:7] == [
        "create a branch / write_dataset of 60 rows",
        "first insert on a branch / on main",
        *(f"{step}, 20 branches / 3" for step in ("create", "open", "write", "delete")),
        "merge into 120 rows / 60",
    ]
    assert names[7:] == ([f"merge of 20 rows, three-way / {PEER}"] if is_installed(PEER) else [])
    assert all(ratio.numerator_s > 0 for ratio in ratios)


@pytest.mark.slow
def test_a_peer_that_is_missing_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_branch, "is_installed", lambda _: False)
    ratios = measure(TINY)
    shown = capsys.readouterr().out
    assert f"{PEER} is not installed and left out: pip install omnigraph[bench]" in shown
    assert not [ratio for ratio in ratios if PEER in ratio.name]


def test_sizes_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Size] = []
    monkeypatch.setattr(bench_branch, "measure", asked.append)
    monkeypatch.setenv(MERGED, "5, 70")
    bench_branch.run()
    assert asked == [Size(merged=(5, 70))]


@pytest.mark.parametrize("fast_forward", [False, True])
def test_rounds_follow_each_other(fast_forward: bool) -> None:
    people = People(50)
    system = loaded(Dicts(), people)
    for _ in range(4):
        done = run_round(system, people, Step(20, fast_forward=fast_forward))
        assert done == Round(1.0, 2.0, 5)
    assert people.sums[0] == 50 + 4 * 10


@pytest.mark.parametrize("forgets", ["inserts", "target"])
def test_a_system_that_lost_something_is_found(forgets: str) -> None:
    people = People(50)
    system = loaded(Dicts(forgets), people)
    with pytest.raises(RuntimeError, match="after 20 rows, three-way there are"):
        run_round(system, people, Step(20))


def test_every_process_makes_the_same_rows() -> None:
    one, other = People(50), People(50)
    for _ in range(2):
        first = one.next_round(20, fast_forward=False)
        second = other.next_round(20, fast_forward=False)
        assert first.source.equals(second.source)
        assert first.target is not None
        assert first.target.equals(second.target)
    assert one.sums == other.sums


def test_both_sides_change_some_of_the_same_rows() -> None:
    delta = People(50).next_round(20, fast_forward=False)
    assert delta.target is not None
    source, target = set(delta.source["name"].to_pylist()), set(delta.target["name"].to_pylist())
    assert len(source) == 20
    assert source & target
    assert target - source
    assert delta.differing == len(source | target)


def test_the_fastest_round_counts() -> None:
    step = Step(1_000)
    ours = Rounds(step, [Round(0.2, 0.5, 12), Round(0.1, 0.25, 14)])
    theirs = Rounds(step, [Round(0.3, 1.0)])
    cells = merge_table([ours], [theirs], PEER).splitlines()[1].split()
    assert cells[3:] == ["250.0", "4,000", "100.0", "1000.0", "1,000", "300.0"]
    assert growth_table({60: ours}).splitlines()[1].split() == ["60", "250.0", "12"]
    assert PEER not in merge_table([ours], [], PEER)
