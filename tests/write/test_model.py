"""Random writes against the plain model: the same rows, the same counts, the same refusals."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import ID, SRC
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.storage.indexes.table_indexes import compact
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.publish.staging import stamp
from tests import profile
from tests.folding import fold_often
from tests.sound import EVERY, check_sound
from tests.table_indexing import create_index
from tests.write.model import (
    Condition,
    Delete,
    Insert,
    Mode,
    Model,
    Prop,
    Refused,
    Row,
    Schema,
    Statement,
    Type,
    Update,
    schema_text,
)
from tests.write.writing import image, maintain

seen: Counter[str] = Counter()
"""What the examples have met, so that the test can tell whether it looked at anything."""

# -- schemas -------------------------------------------------------------------------------------

OPTIONAL = (
    Prop("a", "I32", range=(0, 9)),
    Prop("c", "I32", default=4, has_default=True),
    Prop("d", "I32", nullable=False, default=1, has_default=True),
    Prop("e", "enum(x, y)", enum=("x", "y")),
    Prop("l", "[I32]"),
    Prop("r", "I32", nullable=False),
    Prop("u", "String", unique=True),
    Prop("v", "I64", unique=True),
)
ON_EDGES = (Prop("t", "String", unique=True), Prop("w", "I32", default=2, has_default=True))
YEAR = Prop("y", "I32", nullable=False)
EDGE_KEYS = ((), ("@src", "@dst"), ("@src", "@dst", "y"))
KEYS: dict[str, tuple[Prop, ...]] = {
    "none": (Prop("k", "String"),),
    "text": (Prop("k", "String", nullable=False),),
    "number": (Prop("k", "I64", nullable=False),),
    "pair": (Prop("k", "String", nullable=False), Prop("m", "I32", nullable=False)),
}


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    types: list[Type] = []
    for name in ("Apple", "Pear"):
        kind = draw(st.sampled_from(["text", "text", "none", "number", "pair"]))
        extra = draw(st.lists(st.sampled_from(OPTIONAL), unique=True, min_size=2, max_size=5))
        key = () if kind == "none" else tuple(prop.name for prop in KEYS[kind])
        types.append(Type(name, (*KEYS[kind], *sorted(extra, key=lambda p: p.name)), key))
    for name, source, target in (("Feeds", "Apple", "Apple"), ("Meets", "Pear", "Apple")):
        card = draw(st.sampled_from([(0, None), (0, None), (0, 2), (1, 2), (0, 1)]))
        extra = draw(st.lists(st.sampled_from(ON_EDGES), unique=True, min_size=1))
        ends = draw(st.booleans())
        key = draw(st.sampled_from(EDGE_KEYS))
        extra += [YEAR] if YEAR.name in key else []
        props = tuple(sorted(extra, key=lambda p: p.name))
        types.append(Type(name, props, key, source, target, card, ends))
    return {type_.type_key: type_ for type_ in types}


# -- values --------------------------------------------------------------------------------------

VALUES: dict[str, list[Any]] = {
    # Few values, so that they meet; the wrong ones are rare, so that most writes happen.
    "a": [None, 0, 1, 2, 3, 9] * 4 + [10, -1],
    "c": [None, 1, 2, 3],
    "d": [0, 1, 2, 3],
    "e": [None, "x", "y"],
    "l": [None, [], [1], [1, 2]],
    "u": [None, None, None, *"pqrstuvwxyz"],
    "v": [None, None, None, *range(8), 2**53 + 1],
    "t": [None, None, None, *"pqrstuvwxyz"],
    "w": [None, 1, 2, 3],
    "m": [0, 1],
    "r": [1, 2, 3],
    "y": [0, 1],
}
VERBS: list[Literal["insert", "create", "upsert"]] = ["insert", "create", "upsert"]
TEXT_KEYS = ["ant", "bee", "cat", "dog", "é", 'a"b', "fly", "gnu", "hen"]


def values_of(type_: Type, prop: Prop, *, wrong: bool) -> st.SearchStrategy[Any]:
    found = VALUES.get(prop.name)
    if prop.name == "k":
        found = list(range(9)) if prop.type == "I64" else TEXT_KEYS
    assert found is not None, (type_.name, prop.name)
    if wrong and prop.name == "e":
        found = [*found * 6, "z"]
    if wrong and prop.name == "d":
        found = [*found * 6, None]
    return st.sampled_from(found)


def spelled(value: Any) -> str:
    """A literal of the query language."""
    return json.dumps(value, ensure_ascii=False)


def query(statements: list[Statement]) -> str:
    return "query q() {\n" + "\n".join(map(statement_text, statements)) + "\n}"


def statement_text(statement: Statement) -> str:
    name = statement.type.name
    if isinstance(statement, Delete):
        return f"delete {name} where {conditions(statement.where)}"
    assigned = " ".join(f"{column}: {spelled(v)}" for column, v in statement.values.items())
    if isinstance(statement, Insert):
        return f"{statement.verb} {name} {{ {assigned} }}"
    return f"update {name} set {{ {assigned} }} where {conditions(statement.where)}"  # noqa: S608 - no SQL


def conditions(where: tuple[Condition, ...]) -> str:
    return " and ".join(
        f"{one.column} {one.op}" + ("" if "null" in one.op else f" {spelled(one.value)}")
        for one in where
    )


def first_records(schema: Schema) -> list[Row]:
    """Three nodes of each type, and edges that every schema allows."""
    records: list[Row] = []
    ids: dict[str, list[str]] = {}
    for type_ in schema.values():
        if type_.is_edge:
            continue
        rows: list[Row] = [{"k": key, "m": at % 2} for at, key in enumerate(TEXT_KEYS[:3])]
        if not type_.key:
            rows = [{"id": f"n{at}"} for at in range(3)]
        elif type_.props[0].type == "I64":
            rows = [{"k": at} for at in range(3)]
        elif len(type_.key) == 1:
            rows = [{"k": row["k"]} for row in rows]
        ids[type_.name] = [type_.id_of(row) if type_.key else row["id"] for row in rows]
        if any(prop.name == "r" for prop in type_.props):
            rows = [row | {"r": 1} for row in rows]
        records += [{"type": type_.name, "data": row} for row in rows]
    for type_ in schema.values():
        if type_.is_edge:
            sources, targets = ids[type_.source or ""], ids[type_.target or ""]
            records += [
                {
                    "edge": type_.name,
                    "from": sources[at],
                    "to": targets[1],
                    "data": {"y": 0} if "y" in type_.key else {} if type_.key else {"id": f"e{at}"},
                }
                for at in range(2)
            ]
    return records


class Writes(RuleBasedStateMachine):
    """One graph with two handles, and the model of each of its branches."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="model-"))
        self.schema: Schema = {}
        self.branches: dict[str, Model] = {}
        self.heads: dict[str, list[str]] = {}
        self.graphs: list[og.Graph] = []
        self.touched = "main"

    def teardown(self) -> None:
        try:
            if seen["examples"] % EVERY == 0:
                check_sound(self.place / "graph")
        finally:
            shutil.rmtree(self.place)

    @initialize(schema=schemas())
    def begin(self, schema: Schema) -> None:
        seen["examples"] += 1
        self.schema = schema
        root = self.place / "graph"
        self.graphs = [og.init(root, schema_text(schema)), og.open(root)]
        self.branches = {"main": Model(schema)}
        records = first_records(schema)
        self.branches["main"].load(records, "append")
        loaded = self.graphs[0].load(records, mode="append")
        self.heads = {"main": [loaded.commit.id]}

    # -- drawing -----------------------------------------------------------------------

    def branch(self, data: st.DataObject) -> str:
        self.touched = data.draw(st.sampled_from(sorted(self.branches)), "branch")
        return self.touched

    def handle(self, data: st.DataObject) -> og.Graph:
        return self.graphs[data.draw(st.integers(0, 1), "handle")]

    def row(self, data: st.DataObject, type_: Type, *, wrong: bool) -> Row:
        row: Row = {}
        for prop in type_.props:
            needed = not prop.nullable and not prop.has_default
            if needed or data.draw(st.booleans()):
                row[prop.name] = data.draw(values_of(type_, prop, wrong=wrong), prop.name)
        return row

    def end(self, data: st.DataObject, name: str, also: list[str], branch: str) -> str:
        known = sorted(self.branches[branch].graph[f"node:{name}"])
        return data.draw(st.sampled_from([*(known + also) * 8, "nobody"]), "end")

    def records(self, data: st.DataObject, branch: str) -> list[Row]:
        drawn: list[Row] = []
        ids: dict[str, list[str]] = {"Apple": [], "Pear": []}
        nodes = [type_ for type_ in self.schema.values() if not type_.is_edge]
        edges = [type_ for type_ in self.schema.values() if type_.is_edge]
        for _ in range(data.draw(st.integers(0, 4), "nodes")):
            type_ = data.draw(st.sampled_from(nodes), "type")
            row = self.row(data, type_, wrong=True)
            if not type_.key and data.draw(st.booleans()):
                row["id"] = data.draw(st.sampled_from(["n0", "n1", "n2"]))
            if type_.key or "id" in row:
                ids[type_.name].append(type_.id_of(row) if type_.key else row["id"])
            drawn.append({"type": type_.name, "data": row})
        for _ in range(data.draw(st.integers(0, 3), "edges")):
            type_ = data.draw(st.sampled_from(edges), "type")
            row = self.row(data, type_, wrong=True)
            if not type_.key and data.draw(st.booleans()):
                row["id"] = data.draw(st.sampled_from(["e0", "e1", "e2", "e3"]))
            source, target = type_.source or "", type_.target or ""
            drawn.append(
                {
                    "edge": type_.name,
                    "from": self.end(data, source, ids[source], branch),
                    "to": self.end(data, target, ids[target], branch),
                    "data": row,
                }
            )
        return data.draw(st.permutations(drawn), "order")

    def where(self, data: st.DataObject, type_: Type, branch: str) -> tuple[Condition, ...]:
        columns = [prop.name for prop in type_.props if prop.name != "l"]
        columns += ["from", "to", "@id"] if type_.is_edge else ["@id"]
        found: list[Condition] = []
        for column in data.draw(
            st.lists(st.sampled_from(columns), unique=True, min_size=1, max_size=2), "columns"
        ):
            prop = next((prop for prop in type_.props if prop.name == column), None)
            stored = self.branches[branch].graph[type_.type_key]
            ops = ["=", "!=", "<", ">=", "in"] if prop is None or prop.name != "e" else ["=", "!="]
            if prop is not None and prop.nullable:
                ops += ["is null", "is not null"]
            op = data.draw(st.sampled_from(ops), "op")
            if column == "@id":
                values = st.sampled_from([*sorted(stored), "zed"])
            elif column in ("from", "to"):
                end = type_.source if column == "from" else type_.target
                known = sorted(self.branches[branch].graph[f"node:{end}"])
                values = st.sampled_from([*known, "zed"])
            else:
                assert prop is not None
                known = sorted({r[column] for r in stored.values() if r[column] is not None})
                values = st.sampled_from(known) if known else values_of(type_, prop, wrong=False)
                values = values.filter(lambda value: value is not None)
            if op == "in":
                listed = data.draw(st.lists(values, min_size=1, max_size=3), "values")
                found.append(Condition(column, op, listed))
            else:
                found.append(Condition(column, op, data.draw(values, "value")))
        return tuple(found)

    def statement(self, data: st.DataObject, branch: str) -> Statement:
        type_ = data.draw(st.sampled_from(list(self.schema.values())), "type")
        kind = data.draw(st.sampled_from(["insert", "insert", "update", "update", "delete"]))
        if kind == "delete":
            return Delete(type_, self.where(data, type_, branch))
        if kind == "insert":
            return self.insert(data, type_, branch)
        assigned = data.draw(
            st.lists(
                st.sampled_from([prop for prop in type_.props if prop.name not in type_.key]),
                unique=True,
                min_size=1,
                max_size=2,
            )
        )
        values = {
            prop.name: data.draw(values_of(type_, prop, wrong=False), prop.name)
            for prop in assigned
        }
        return Update(type_, values, self.where(data, type_, branch))

    def insert(self, data: st.DataObject, type_: Type, branch: str) -> Insert:
        row = self.row(data, type_, wrong=False)
        if type_.is_edge:
            row["from"] = self.end(data, type_.source or "", TEXT_KEYS[3:4], branch)
            row["to"] = self.end(data, type_.target or "", TEXT_KEYS[3:4], branch)
        if not row:
            row["k"] = "ant"
        verb = data.draw(st.sampled_from(VERBS if type_.key else VERBS[:1]), "verb")
        if verb == "upsert" and data.draw(st.booleans(), "partial"):
            row.pop("r", None)
        return Insert(type_, row, verb)

    # -- steps -------------------------------------------------------------------------

    @rule(data=st.data(), mode=st.sampled_from(["append", "merge", "overwrite"]))
    def load(self, data: st.DataObject, mode: Mode) -> None:
        seen[f"tried: {mode}"] += 1
        branch = self.branch(data)
        records = self.records(data, branch)
        graph, model = self.handle(data), self.branches[branch]
        try:
            counts = model.load(records, mode)
        except Refused as refused:
            self.refused(refused, lambda: graph.load(records, mode=mode, branch=branch))
            return
        loaded = graph.load(records, mode=mode, branch=branch)
        found = {f"node:{name}": count for name, count in loaded.nodes.items()}
        found |= {f"edge:{name}": count for name, count in loaded.edges.items()}
        assert found == counts
        self.happened(f"load {mode}", branch, loaded.commit.id)

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        branch = self.branch(data)
        count = data.draw(st.integers(1, 6), "statements")
        self.mutate(data, branch, [self.statement(data, branch) for _ in range(count)])

    @rule(data=st.data(), kind=st.sampled_from(["fork", "drop", "compact", "compact", "index"]))
    def manage(self, data: st.DataObject, kind: str) -> None:
        """What changes no row; one rule, so that writes come more often."""
        if kind == "fork":
            self.fork(data)
        elif kind == "drop":
            self.drop(data)
        else:
            self.maintain(data, kind)

    def mutate(self, data: st.DataObject, branch: str, statements: list[Any]) -> None:
        graph, model = self.handle(data), self.branches[branch]
        heads = self.heads[branch]
        condition = data.draw(
            st.sampled_from([None, None, None, None, heads[-1], heads[0]]), "condition"
        )
        source = query(statements)

        def run() -> Any:
            return graph.mutate(source, branch=branch, if_commit=condition)

        if condition is not None and condition != heads[-1]:
            self.refused(Refused("precondition"), run)
            return
        before = model.fork()
        try:
            counts = model.mutate(statements)
        except Refused as refused:
            self.refused(refused, run)
            return
        result = run()
        assert (result.affected_nodes, result.affected_edges) == counts
        keys = {type_.name: key for key, type_ in self.schema.items()}
        told = {keys[one.type_name]: (one.rows, one.properties) for one in result.warnings}
        assert told == model.emptied
        seen["emptied"] += bool(told)
        if not model.is_changed:
            assert result.commit is None
            assert model.graph == before.graph
            seen["nothing to do"] += 1
        else:
            seen["mixed"] += len({type(statement) for statement in statements}) > 1
            self.happened("mutation", branch, result.commit.id)

    def fork(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(["dev", "test"]), "name")
        if name in self.branches:
            return
        source = data.draw(st.sampled_from(sorted(self.branches)), "source")
        self.handle(data).branches.create(name, source)
        self.branches[name] = self.branches[source].fork()
        self.heads[name] = [self.heads[source][-1]]
        seen["fork"] += 1

    def drop(self, data: st.DataObject) -> None:
        if len(self.branches) == 1:
            return
        name = data.draw(st.sampled_from(sorted(self.branches.keys() - {"main"})), "branch")
        try:
            self.handle(data).branches.delete(name)
        except errors.Conflict:
            seen["drop refused"] += 1
            return
        del self.branches[name], self.heads[name]
        self.touched = "main"
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
        self.heads[branch].append(graph.snapshot(branch).commit_id)
        seen[kind] += 1

    # -- comparing ---------------------------------------------------------------------

    def refused(self, refused: Refused, run: Any) -> None:
        try:
            run()
        except errors.ValidationError as error:
            told = cast("str", error.rule)
        except errors.KeyConflict:
            told = "key_conflict"
        except errors.PreconditionFailed:
            told = "precondition"
        else:
            raise AssertionError(f"the model refuses it: {refused.rule}")
        assert told == refused.rule
        seen[f"refused: {told}"] += 1

    def happened(self, what: str, branch: str, commit_id: str) -> None:
        self.heads[branch].append(commit_id)
        seen[what] += 1

    @invariant()
    def same_rows(self) -> None:
        if not self.graphs:
            return
        seen["steps"] += 1
        branch = self.touched
        model = self.branches[branch]
        found = image(self.graphs[seen["steps"] % 2], branch)
        for key, rows in found.items():
            adopt(model.graph[key], rows)
            assert rows == model.graph[key], (branch, key)
        assert self.graphs[0].snapshot(branch).commit_id == self.heads[branch][-1]


def adopt(expected: dict[str, Row], found: dict[str, Row]) -> None:
    """Give the ids that the graph made up to the rows of the model that wait for one."""
    waiting = sorted(
        (id_ for id_ in expected if id_.startswith("?")), key=lambda i: text(expected[i])
    )
    fresh = sorted((id_ for id_ in found if id_ not in expected), key=lambda i: text(found[i]))
    assert len(waiting) == len(fresh)
    for old, new in zip(waiting, fresh, strict=True):
        assert len(new) == 26
        expected[new] = expected.pop(old)


def text(row: Row) -> str:
    return json.dumps(row, sort_keys=True)


@pytest.mark.slow
@pytest.mark.soak
def test_writes_do_what_the_model_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fold_often(monkeypatch)
    seen.clear()
    run_state_machine_as_test(Writes, settings=profile.histories(20, 30))
    with capsys.disabled():
        counted = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
        print(f"\n{counted}")  # noqa: T201 - says what was looked at
    # What Hypothesis draws depends on more than the seed, so this asks for variety, not for counts.
    rules = ("range", "enum", "required", "unique", "endpoint", "cardinality")
    refused = [
        told for told in (*rules, "key_conflict", "precondition") if seen[f"refused: {told}"]
    ]
    assert len(refused) >= 5, refused
    for what in ("tried: append", "tried: merge", "tried: overwrite", "mutation", "mixed"):
        assert seen[what] >= 5, what
