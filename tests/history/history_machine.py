"""Random histories of one graph beside their model: writes, forks, and merges of all kinds.

Owns what is drawn and how both are compared; the tests choose how much of it they want.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import omnigraph as og
from omnigraph import errors
from omnigraph.history.merge.conflicts import MergeResult
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.storage.indexes.table_indexes import compact
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.publish.staging import stamp
from tests.history.history_model import (
    Conflict,
    Counts,
    History,
    Merged,
    Resolve,
    Row,
    Schema,
    State,
    Type,
    is_valid_write,
)
from tests.sound import EVERY, check_sound
from tests.table_indexing import create_index
from tests.write.writing import image, maintain

seen: Counter[str] = Counter()
"""What the examples have met, so that a test can tell whether it looked at anything."""

SCHEMA_TEXT = """
node Person {{
    name: String @key
    age: I32?
    tags: [String]?
    email: String? @unique
    given: String?
    family: String?
    @unique(given, family)
}}

node Note @merge(row) {{
    slug: String @key
    text: String?
    rank: I32?
}}

edge Knows: Person -> Person @card({low}..2) {{
    since: I32?
    note: String?
}}

edge Wrote: Person -> Note {{
    year: I32?
}}
"""
KEYS = {"Person": "name", "Note": "slug"}
IDS = {
    "Person": ["ann", "bob", "cid", "dan"],
    "Note": ["n1", "n2", "n3"],
    "Knows": ["k1", "k2", "k3", "k4"],
    "Wrote": ["w1", "w2"],
}
# Few values, so that they meet.
VALUES: dict[str, dict[str, list[Any]]] = {
    "Person": {
        "age": [None, 1, 2, 3],
        "tags": [None, [], ["x"], ["x", "y"]],
        "email": [None, "a@x", "b@x", "c@x"],
        "given": [None, "g", "h"],
        "family": [None, "f", "h"],
    },
    "Note": {"text": [None, "t", "u"], "rank": [None, 1, 2]},
    "Knows": {"since": [None, 1, 2], "note": [None, "x", "y"]},
    "Wrote": {"year": [None, 1, 2]},
}
ENDS = {"Knows": ("Person", "Person"), "Wrote": ("Person", "Note")}
BRANCHES = ("main", "dev", "fix", "try")
ROW_KINDS = ("divergent_insert", "divergent_update", "delete_vs_update", "orphan_edge")


def schema_of(low: int) -> Schema:
    types = [
        Type("node:Person", uniques=(("email",), ("given", "family"))),
        Type("node:Note", merges_rows=True),
        Type("edge:Knows", ends=ENDS["Knows"], card=(low, 2)),
        Type("edge:Wrote", ends=ENDS["Wrote"]),
    ]
    return {type_.key: type_ for type_ in types}


def key_of(name: str) -> str:
    return f"edge:{name}" if name in ENDS else f"node:{name}"


def state_of(graph: og.Graph, branch: str) -> State:
    """What a branch shows, spelled as the model spells it."""
    found = image(graph, branch)
    for key, rows in found.items():
        for row in rows.values() if key.startswith("edge:") else ():
            row["from"], row["to"] = row.pop(SRC), row.pop(DST)
    return found


def envelope(name: str, id_: str, row: Row) -> Row:
    data = dict(row)
    if name in ENDS:
        ends = {"from": data.pop("from"), "to": data.pop("to")}
        return {"edge": name, **ends, "data": {"id": id_, **data}}
    return {"type": name, "data": data}


class Histories(RuleBasedStateMachine):
    """One graph with two handles, and the model of its history."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="history-"))
        self.root = self.place / "graph"
        self.graphs: list[og.Graph] = []
        self.touched = "main"
        self.steps = 0

    def teardown(self) -> None:
        try:
            if seen["examples"] % EVERY == 0:
                check_sound(self.root)
        finally:
            shutil.rmtree(self.place)

    @initialize(low=st.sampled_from([0, 0, 1]), data=st.data())
    def begin(self, low: int, data: st.DataObject) -> None:
        seen["examples"] += 1
        self.schema = schema_of(low)
        self.graphs = [og.init(self.root, SCHEMA_TEXT.format(low=low)), og.open(self.root)]
        genesis = self.graphs[0].commits.list()[0]
        self.history = History(self.schema, genesis.id, genesis.created_at)
        state = self.history.state("main")
        for name in ("Person", "Note"):
            for id_ in IDS[name][: data.draw(st.integers(2, 4), name)]:
                state[key_of(name)][id_] = dict.fromkeys(VALUES[name]) | {KEYS[name]: id_}
        for number, (source, target) in enumerate([("ann", "bob"), ("bob", "ann")]):
            row = {"since": None, "note": None, "from": source, "to": target}
            state["edge:Knows"][f"k{number + 1}"] = row
        self._load("main", state)

    # -- drawing -----------------------------------------------------------------------

    def branch(self, data: st.DataObject) -> str:
        self.touched = data.draw(st.sampled_from(sorted(self.history.heads)), "branch")
        return self.touched

    def handle(self, data: st.DataObject) -> og.Graph:
        return self.graphs[data.draw(st.integers(0, 1), "handle")]

    def row(self, data: st.DataObject, name: str, id_: str, state: State) -> Row | None:
        """A whole row, often the stored one with one value changed."""
        stored = state[key_of(name)].get(id_)
        row = dict(stored or dict.fromkeys(VALUES[name]))
        columns = list(VALUES[name])
        changed = data.draw(st.lists(st.sampled_from(columns), unique=True, max_size=2), "columns")
        for column in changed:
            row[column] = data.draw(st.sampled_from(VALUES[name][column]), column)
        if name in KEYS:
            return row | {KEYS[name]: id_}
        if stored is None or data.draw(st.integers(0, 3), "repoint") == 0:
            for column, end in zip(("from", "to"), ENDS[name], strict=True):
                nodes = sorted(state[key_of(end)])
                if not nodes:
                    return None
                row[column] = data.draw(st.sampled_from(nodes), column)
        return row

    # -- writes ------------------------------------------------------------------------

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        self.edit(data, self.branch(data))

    def edit(self, data: st.DataObject, branch: str) -> None:
        """Delete some rows, then bring whole rows, new ones and others in place of stored ones."""
        types = st.sampled_from([*IDS, "Person", "Knows"])
        for name in data.draw(st.lists(types, max_size=2), "deleted"):
            self.delete_one(data, branch, name)
        after = self.history.state(branch)
        for name in data.draw(st.lists(types, min_size=1, max_size=4), "brought"):
            id_ = data.draw(st.sampled_from(IDS[name]), "id")
            row = self.row(data, name, id_, after)
            if row is not None:
                trial = deepcopy(after)
                trial[key_of(name)][id_] = row
                if is_valid_write(self.schema, self.history.state(branch), trial):
                    after = trial
        if after != self.history.state(branch):
            self._load(branch, after)
            seen["load"] += 1

    @rule(data=st.data(), name=st.sampled_from(sorted(IDS)))
    def update(self, data: st.DataObject, name: str) -> None:
        """Change several properties of one row."""
        branch = self.branch(data)
        before = self.history.state(branch)
        stored = before[key_of(name)]
        if not stored:
            return
        id_ = data.draw(st.sampled_from(sorted(stored)), "id")
        columns = st.lists(st.sampled_from(list(VALUES[name])), unique=True, min_size=1, max_size=2)
        values = {
            column: data.draw(st.sampled_from(VALUES[name][column]), column)
            for column in data.draw(columns, "columns")
        }
        after = self.history.state(branch)
        after[key_of(name)][id_] |= values
        if not is_valid_write(self.schema, before, after):
            return
        assigned = " ".join(f"{column}: ${column}" for column in values)
        declared = ", ".join(f"${column}: {_type(column)}?" for column in values)
        text = (
            f"query q({declared}) {{ update {name} set {{ {assigned} }} "  # noqa: S608 - no SQL
            f'where @id = "{id_}" }}'
        )
        done = self.handle(data).mutate(text, params=values, branch=branch)
        assert done.commit is not None
        self.history.commit(branch, done.commit.id, done.commit.created_at, after)
        seen["update"] += 1

    def delete_one(self, data: st.DataObject, branch: str, name: str) -> None:
        """Delete one row, and with a node its edges."""
        before = self.history.state(branch)
        stored = before[key_of(name)]
        if not stored:
            return
        id_ = data.draw(st.sampled_from(sorted(stored)), "id")
        after = self.history.state(branch)
        del after[key_of(name)][id_]
        for edge, ends in ENDS.items():
            for column, end in zip(("from", "to"), ends, strict=True):
                if end == name:
                    rows = after[key_of(edge)]
                    after[key_of(edge)] = {k: row for k, row in rows.items() if row[column] != id_}
        if not is_valid_write(self.schema, before, after):
            return
        done = self.handle(data).mutate(
            f'query q() {{ delete {name} where @id = "{id_}" }}',
            branch=branch,
        )
        assert done.commit is not None
        self.history.commit(branch, done.commit.id, done.commit.created_at, after)
        seen["delete"] += 1

    def _load(self, branch: str, after: State) -> None:
        before = self.history.state(branch)
        records = [
            envelope(key.partition(":")[2], id_, row)
            for key, rows in after.items()
            for id_, row in rows.items()
            if before[key].get(id_) != row
        ]
        loaded = self.graphs[0].load(records, mode="merge", branch=branch)
        self.history.commit(branch, loaded.commit.id, loaded.commit.created_at, after)

    # -- branches ----------------------------------------------------------------------

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        missing = [name for name in BRANCHES if name not in self.history.heads]
        if not missing:
            self.drop(data)
            return
        source = data.draw(st.sampled_from(sorted(self.history.heads)), "source")
        self.handle(data).branches.create(missing[0], source)
        self.history.fork(missing[0], source)
        self.touched = missing[0]
        seen["fork"] += 1

    @rule(data=st.data(), what=st.sampled_from(["drop", "compact", "index", "optimize", "nothing"]))
    def manage(self, data: st.DataObject, what: str) -> None:
        """What changes no row."""
        if what == "drop":
            self.drop(data)
        elif what == "optimize":
            self.optimize(data)
        elif what != "nothing":
            self.maintain(data, what)

    def drop(self, data: st.DataObject) -> None:
        names = sorted(self.history.heads.keys() - {"main"})
        if not names:
            return
        name = data.draw(st.sampled_from(names), "branch")
        graph = self.handle(data)
        self.touched = "main"
        graph.branches.delete(name)
        self.history.drop(name)
        seen["drop"] += 1

    def maintain(self, data: st.DataObject, kind: str) -> None:
        branch = self.branch(data)
        graph = self.handle(data)

        def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
            stamped = stamp(commit.id, kind, "maintenance")
            if kind == "compact":
                return compact(table, stamp=stamped)
            column = SRC if key.startswith("edge:") else ID
            return create_index(table, column, "BTREE", stamp=stamped)

        maintain(graph, branch, work)
        done = graph.commits.list(branch)[0]
        self.history.commit(branch, done.id, done.created_at, self.history.state(branch))
        seen[kind] += 1

    def optimize(self, data: st.DataObject) -> None:
        branch = self.branch(data)
        graph = self.handle(data)
        report = graph.optimize(branch, cluster=data.draw(st.booleans(), "cluster"))
        if report.commit_id is not None:
            done = graph.commits.list(branch)[0]
            assert done.id == report.commit_id
            self.history.commit(branch, done.id, done.created_at, self.history.state(branch))
            seen["optimize"] += 1

    # -- merges ------------------------------------------------------------------------

    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        self.merge_of(data, *self.two_branches(data))

    @rule(data=st.data())
    def diverge(self, data: st.DataObject) -> None:
        """Write to two branches at once, and merge them: that is what this is about."""
        names = self.two_branches(data)
        how = data.draw(st.sampled_from(["edit", "meet", "both"]), "how")
        if how != "meet":
            for name in names:
                self.edit(data, name)
        if how != "edit":
            self.meet(data, names)
        self.merge_of(data, *names)

    def meet(self, data: st.DataObject, branches: tuple[str, str]) -> None:
        """Change one row on both sides, in properties that may be the same."""
        states = [self.history.state(branch) for branch in branches]
        shared = sorted(
            (name, id_)
            for name in IDS
            for id_ in states[0][key_of(name)].keys() & states[1][key_of(name)].keys()
        )
        if not shared:
            return
        name, id_ = data.draw(st.sampled_from(shared), "shared")
        for branch, state in zip(branches, states, strict=True):
            row = self.row(data, name, id_, state)
            if row is not None:
                state[key_of(name)][id_] = row
                before = self.history.state(branch)
                if state != before and is_valid_write(self.schema, before, state):
                    self._load(branch, state)

    def two_branches(self, data: st.DataObject) -> tuple[str, str]:
        if len(self.history.heads) < 2:
            self.fork(data)
        first, second = data.draw(st.permutations(sorted(self.history.heads)), "sides")[:2]
        return first, second

    def merge_of(self, data: st.DataObject, source: str, target: str) -> None:
        self.touched = target
        resolve = self.resolution(data, self.history.merge(source, target))
        expected = self.history.merge(source, target, resolve)
        if self.history.lowest_count(self.history.heads[source], self.history.heads[target]) > 1:
            seen["merge base of several"] += 1
        graph = self.handle(data)
        if data.draw(st.integers(0, 3), "dry") == 0:
            self.dry_merge(graph, source, target, resolve, expected)
        can_turn = (
            resolve is None
            and expected.outcome == "merged"
            and expected.is_clean
            and not expected.unsaid
        )
        if can_turn and data.draw(st.integers(0, 3), "symmetric") == 0:
            self.other_way_round(source, target, expected)
        self.real_merge(graph, source, target, resolve, expected)

    def resolution(self, data: st.DataObject, found: Merged) -> Resolve:
        kind = data.draw(st.sampled_from(["none", "none", "side", "kinds", "entities"]), "resolve")
        sides = st.sampled_from(["source", "target"])
        conflicts = sorted(found.standing, key=str)
        if kind == "none" or found.outcome == "already_up_to_date":
            return None
        if kind == "side":
            return data.draw(sides, "side")
        if kind == "kinds":
            return data.draw(st.dictionaries(st.sampled_from(ROW_KINDS), sides, min_size=1))
        entities = [
            f"{conflict.type_key.partition(':')[2]}:{conflict.id}"
            for conflict in conflicts
            if conflict.kind in ROW_KINDS
        ]
        chosen = {one: data.draw(sides, one) for one in dict.fromkeys(entities)}
        if data.draw(st.integers(0, 9), "unneeded") == 0:
            chosen["Person:nobody"] = "source"
        elif data.draw(st.booleans(), "kind, too"):
            chosen["orphan_edge"] = data.draw(sides)
        return chosen

    def dry_merge(
        self, graph: og.Graph, source: str, target: str, resolve: Resolve, expected: Merged
    ) -> None:
        if expected.unused:
            return
        head = graph.snapshot(target).commit_id
        done = graph.branches.merge(source, target, resolve=resolve, dry_run=True)
        assert graph.snapshot(target).commit_id == head
        assert (done.outcome, done.commit) == (expected.outcome, None)
        if expected.outcome == "already_up_to_date":
            return
        check_conflicts(done.conflicts, expected)
        check_settled(done, expected)
        counts = {
            key: Counts(found.inserted, found.updated, found.deleted, found.combined)
            for key, found in done.counts.items()
        }
        assert counts == expected.counts
        seen["dry merge"] += 1

    def other_way_round(self, source: str, target: str, expected: Merged) -> None:
        copy = self.place / "copy"
        shutil.copytree(self.root, copy)
        graph = og.open(copy)
        graph.branches.merge(target, source)
        assert state_of(graph, source) == expected.state
        shutil.rmtree(copy)
        seen["merged both ways"] += 1

    def real_merge(
        self, graph: og.Graph, source: str, target: str, resolve: Resolve, expected: Merged
    ) -> None:
        head = self.history.heads[source]
        try:
            done = graph.branches.merge(source, target, resolve=resolve)
        except errors.MergeConflicts as conflicts:
            check_conflicts(conflicts.conflicts, expected)
            assert not expected.is_clean or expected.unsaid
            seen["merge refused"] += 1
            for found in conflicts.conflicts:
                seen[f"conflict: {found.kind}"] += 1
            return
        except errors.BadRequest:
            assert expected.unused, expected.unused
            seen["merge with a resolution nobody needs"] += 1
            return
        assert not expected.unused
        assert expected.is_clean, (expected.standing, expected.crowds)
        assert (done.outcome, done.base_commit_id) == (expected.outcome, expected.base)
        seen[f"merge: {done.outcome}"] += 1
        if done.outcome == "already_up_to_date":
            assert done.commit is None
            return
        assert done.commit is not None
        assert done.commit.parent_id == self.history.heads[target]
        assert done.commit.merged_parent_id == head
        check_settled(done, expected)
        for _, side in done.resolved:
            seen[f"settled for the {side}"] += 1
        seen["rows combined"] += sum(found.combined for found in expected.counts.values())
        self.history.commit(target, done.commit.id, done.commit.created_at, expected.state, head)
        assert state_of(graph, target) == expected.state
        if done.outcome == "fast_forward":
            assert state_of(graph, target) == state_of(graph, source)
        again = graph.branches.merge(source, target)
        assert (again.outcome, again.commit) == ("already_up_to_date", None)

    # -- comparing ---------------------------------------------------------------------

    @invariant()
    def same_rows(self) -> None:
        if not self.graphs:
            return
        seen["steps"] += 1
        self.steps += 1
        graph = self.graphs[self.steps % 2]
        assert graph.branches.list() == sorted(self.history.heads)
        assert state_of(graph, self.touched) == self.history.state(self.touched), self.touched
        assert graph.snapshot(self.touched).commit_id == self.history.heads[self.touched]


def _type(column: str) -> str:
    if column == "tags":
        return "[String]"
    return "I32" if column in ("age", "rank", "since", "year") else "String"


def check_conflicts(found: tuple[errors.MergeConflict, ...], expected: Merged) -> None:
    """The same conflicts with the same values, each told once."""
    rows = [
        Conflict(c.kind, f"{c.entity_kind}:{c.type_name}", c.entity_id, c.property)
        for c in found
        if c.kind != "unique_violation"
    ]
    wanted = expected.standing - (expected.open_rules - set(rows))
    wanted |= expected.unsaid & set(rows)
    assert Counter(rows) == Counter(wanted), f"{rows} and {expected.standing}"
    told = {one: one.told for one in expected.standing}
    shown = [c for c in found if c.kind != "unique_violation"]
    for conflict, one in zip(shown, rows, strict=True):
        if (values := told.get(one)) is not None:
            assert (conflict.base, conflict.source, conflict.target) == values, str(one)
    check_crowds([c for c in found if c.kind == "unique_violation"], expected)


def check_crowds(found: list[errors.MergeConflict], expected: Merged) -> None:
    """Of rows that share a value, each but one is told, and so is the one it shares it with."""
    told = Counter((f"{c.entity_kind}:{c.type_name}", c.property, c.entity_id) for c in found)
    assert not told or max(told.values()) == 1, told
    left = set(told)
    for crowd in expected.crowds:
        mine = {
            one
            for one in left
            if one[:2] == (crowd.type_key, crowd.property) and one[2] in crowd.ids
        }
        is_told = len(mine) == len(crowd.ids) - 1
        assert is_told or (not mine and crowd in expected.open_rules), f"{crowd}: {found}"
        left -= mine
    assert not left, f"{left} share nothing"


def check_settled(done: MergeResult, expected: Merged) -> None:
    found = {
        (Conflict(c.kind, f"{c.entity_kind}:{c.type_name}", c.entity_id, c.property), side)
        for c, side in done.resolved
    }
    assert len(found) == len(done.resolved)
    assert found == expected.settled
