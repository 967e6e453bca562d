"""Sealing: history leaves the head, nothing is lost, and the log has few fragments."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.manifest.entries import Commit, TableVersion
from omnigraph.manifest.publish_request import AdvanceTable, next_state
from omnigraph.manifest.publisher import FANOUT, SEAL_ENTRIES, seal
from omnigraph.manifest.state import ManifestState
from tests import profile
from tests.manifest.graphs import KNOWS, PERSON, first_state, pin, request

History = Commit | TableVersion


class Log:
    """The fragments as storage would keep them."""

    def __init__(self) -> None:
        self.state: ManifestState = first_state()
        self.fragments: list[list[History]] = []

    def take(self, state: ManifestState) -> None:
        sealing = seal(state, [len(fragment) for fragment in self.fragments])
        self.state = sealing.state
        if not sealing.sealed:
            assert not sealing.absorbed
            return
        absorbed = set(sealing.absorbed)
        merged = [entry for position in sealing.absorbed for entry in self.fragments[position]]
        kept = [old for position, old in enumerate(self.fragments) if position not in absorbed]
        self.fragments = [*kept, [*merged, *sealing.sealed]]

    def everything(self) -> list[History]:
        sealed = [entry for fragment in self.fragments for entry in fragment]
        return [*sealed, *self.state.recent, *self.state.versions.values()]


@profile.costly
@given(st.lists(st.sampled_from([(), (PERSON,), (KNOWS,), (PERSON, KNOWS)]), max_size=200))
def test_nothing_published_is_ever_lost(steps: list[tuple[object, ...]]) -> None:
    log = Log()
    published: list[History] = [*log.state.recent, *log.state.versions.values()]
    for step in steps:
        state = log.state
        changes = [
            AdvanceTable(identity, state.current_version(identity), pin(state.version))
            for identity in (PERSON, KNOWS)
            if identity in step
        ]
        following = next_state(state, request(*changes), state.version + 1)
        published.append(following.commits[-1])
        published.extend(following.versions[change.identity] for change in changes)
        log.take(following)
        assert log.state.head_commit_id == following.head_commit_id
        assert len(log.state.recent) < SEAL_ENTRIES
    everything = log.everything()
    assert len(everything) == len(published)
    assert set(map(repr, everything)) == set(map(repr, published))
    commits = [entry.manifest_version for entry in everything if isinstance(entry, Commit)]
    assert commits == sorted(commits), "the log is oldest first"


def test_head_keeps_its_newest_commit() -> None:
    state = first_state()
    while len(state.recent) < SEAL_ENTRIES - 1:
        state = next_state(state, request(), state.version + 1)
        assert seal(state, []).sealed == ()
    state = next_state(state, request(), state.version + 1)
    sealing = seal(state, [])
    assert sealing.state.recent == (state.commits[-1],)
    assert sealing.sealed == state.recent[:-1]


@profile.costly
@given(st.lists(st.integers(SEAL_ENTRIES - 1, 40 * SEAL_ENTRIES), max_size=400))
def test_number_of_fragments_is_logarithmic(sizes: list[int]) -> None:
    from omnigraph.manifest.publisher import _absorbed

    fragments: list[int] = []
    for size in sizes:
        absorbed = _absorbed(size, fragments)
        assert list(absorbed) == list(range(len(fragments) - len(absorbed), len(fragments)))
        merged = size + sum(fragments[position] for position in absorbed)
        fragments = [*fragments[: len(fragments) - len(absorbed)], merged]
        tiers = 2 + math.log(sum(fragments) / SEAL_ENTRIES, FANOUT)
        assert len(fragments) <= (FANOUT - 1) * tiers
    assert sum(fragments) == sum(sizes)


def test_number_of_fragments_after_many_publishes() -> None:
    from omnigraph.manifest.publisher import _absorbed

    fragments: list[int] = []
    written = 0
    for _ in range(20_000):
        absorbed = _absorbed(SEAL_ENTRIES, fragments)
        merged = SEAL_ENTRIES + sum(fragments[position] for position in absorbed)
        written += merged
        fragments = [*fragments[: len(fragments) - len(absorbed)], merged]
    assert len(fragments) <= 4 * (FANOUT - 1) + 7
    assert written <= 8 * sum(fragments), "each entry is rewritten once per tier"
