"""Ancestry against an oracle: which commits can be the base of a merge, now and later."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.manifest.ancestry import Commits, base_of, possible_bases
from omnigraph.manifest.entries import Commit


@st.composite
def histories(draw: st.DrawFn, size: int = 14) -> tuple[Commits, list[str]]:
    """Commits with up to two parents each, all older, and some of them as heads of branches."""
    count = draw(st.integers(1, size))
    known = {"c0": _commit(0, ())}
    for number in range(1, count):
        older = st.integers(max(0, number - 5), number - 1)
        parents = draw(st.lists(older, min_size=1, max_size=2, unique=True))
        known[f"c{number}"] = _commit(number, tuple(parents))
    heads = draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=5))
    return known, heads


def _commit(number: int, parents: tuple[int, ...]) -> Commit:
    ids: list[str | None] = [f"c{parent}" for parent in parents]
    first, merged = [*ids, None, None][:2]
    return Commit(f"c{number}", None, number + 1, first, merged, None, number)


def descent(commit_id: str, known: Commits) -> set[str]:
    """The commit and everything it descends from, as the definition says."""
    commit = known[commit_id]
    found = {commit_id}
    for parent in (commit.parent_id, commit.merged_parent_id):
        if parent is not None:
            found |= descent(parent, known)
    return found


def lowest_common(one: str, other: str, known: Commits) -> set[str]:
    """The common ancestors that no other common ancestor descends from."""
    common = descent(one, known) & descent(other, known)
    return {id_ for id_ in common if not any(id_ in descent(low, known) - {low} for low in common)}


def pairs(heads: list[str]) -> list[tuple[str, str]]:
    return list(combinations(sorted(set(heads)), 2))


@given(histories())
def test_base_is_a_lowest_common_ancestor(drawn: tuple[Commits, list[str]]) -> None:
    known, heads = drawn
    for one, other in pairs(heads):
        base = base_of(known[one], known[other], known)
        turned = base_of(known[other], known[one], known)
        lowest = lowest_common(one, other, known)
        assert base is not None
        assert base == turned
        # Numbers are times here: of several, the newest.
        assert base.created_at == max(known[id_].created_at for id_ in lowest)


@given(histories())
def test_every_lowest_common_ancestor_is_a_possible_base(
    drawn: tuple[Commits, list[str]],
) -> None:
    known, heads = drawn
    found = [commit.id for commit in possible_bases(heads, known)]
    assert len(found) == len(set(found))
    for one, other in pairs(heads):
        assert lowest_common(one, other, known) <= set(found)


@given(histories())
def test_possible_bases_are_common_ancestors_of_two_heads(
    drawn: tuple[Commits, list[str]],
) -> None:
    """Nothing is kept for a branch that shares it with no other."""
    known, heads = drawn
    shared: set[str] = set()
    for one, other in pairs(heads):
        shared |= descent(one, known) & descent(other, known)
    assert {commit.id for commit in possible_bases(heads, known)} <= shared


@given(histories(10), st.data())
def test_merges_that_come_later_have_no_other_bases(
    drawn: tuple[Commits, list[str]], data: st.DataObject
) -> None:
    """What was no possible base before a merge is none after it, the merged head aside."""
    known, heads = dict(drawn[0]), list(dict.fromkeys(drawn[1]))
    if len(heads) < 2:
        return
    allowed = {commit.id for commit in possible_bases(heads, known)} | set(heads)
    for number in range(20, 23):
        target, source = data.draw(st.permutations(range(len(heads))))[:2]
        merge = Commit(f"c{number}", None, number, heads[target], heads[source], None, number)
        known[merge.id] = merge
        heads[target] = merge.id
        allowed.add(merge.id)
        for one, other in pairs(heads):
            assert lowest_common(one, other, known) <= allowed


def test_a_line_of_branches_has_each_fork_as_a_base() -> None:
    known = {f"c{number}": _commit(number, (number - 1,) if number else ()) for number in range(9)}
    assert {commit.id for commit in possible_bases(["c8", "c5", "c2"], known)} == {"c5", "c2"}
    assert possible_bases(["c8"], known) == []
    assert possible_bases([], known) == []


def test_a_history_of_thousands_is_walked_without_recursion() -> None:
    count = 20_000
    known = {
        f"c{number}": _commit(number, (number - 1,) if number else ()) for number in range(count)
    }
    last = f"c{count - 1}"
    assert [commit.id for commit in possible_bases([last, "c0"], known)] == ["c0"]
    assert base_of(known[last], known["c7"], known) == known["c7"]
