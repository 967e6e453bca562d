"""Random histories of schemas and rows beside their model, on several branches.

Owns what is drawn and how both are compared; the tests choose how much of it they want.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import omnigraph as og
from omnigraph import errors
from omnigraph.evolve.apply import SchemaResult
from omnigraph.lang.schema.migration.steps import UnsupportedChange
from tests.evolve.evolution_model import (
    ENDS,
    WIDER,
    History,
    Outcome,
    Property,
    Row,
    Rows,
    Schema,
    State,
    Type,
    broken_rules,
    change_schema,
    schema_text,
)
from tests.evolve.evolving import edge, node, shown
from tests.evolve.merge_model import Merged, merge_branches
from tests.sound import EVERY, check_sound

seen: Counter[str] = Counter()
"""What the examples have met, so that a test can tell whether it looked at anything."""

BRANCHES = ("main", "dev", "fix", "try")
NODES = ("Ann", "Bob", "Cat", "Dog")
EDGES = ("Eats", "Fed", "Gave")
NAMES = ("a", "b", "c", "d", "id", "src", "_score")
KEYS = ("k", "key", "name")
WORDS = ("w1", "w2", "w3")
IDS = ("x", "y", "z")
ROW_KINDS = ("divergent_insert", "divergent_update", "delete_vs_update", "orphan_edge")
EDGE_IDS = ("e1", "e2", "e3")
# Few values, so that they meet.
VALUES: dict[str, tuple[Any, ...]] = {
    "I32": (1, 2, -3),
    "I64": (1, 2, 2**40),
    "U32": (1, 2, 3),
    "U64": (1, 2, 2**62),
    "F32": (1.0, 0.5, -2.5),
    "F64": (1.0, 0.5, 12345.678),
    "Bool": (True, False),
    "String": WORDS,
}
MOST_TYPES, MOST_PROPERTIES = 4, 5


def values_of(property_: Property) -> tuple[Any, ...]:
    return property_.values if property_.type == "enum" else VALUES[property_.type]


def number_free(taken: set[str], names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name not in taken]


class Evolutions(RuleBasedStateMachine):
    """One graph with two handles, and the model of its history."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="evolution-"))
        self.root = self.place / "graph"
        self.graphs: list[og.Graph] = []
        self.history = History()
        self.numbers = count(1)
        self.gone: set[str] = set()
        """Commits that went with their branch."""
        self.touched = "main"
        self.steps = 0

    def teardown(self) -> None:
        try:
            if self.graphs:
                for commit_id in self.commits():
                    self.check_commit(commit_id)
                if seen["examples"] % EVERY == 0:
                    check_sound(self.root)
        finally:
            shutil.rmtree(self.place)

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        seen["examples"] += 1
        schema: dict[int, Type] = {}
        for _ in range(2):
            schema = self.add_node(data, schema, {})
        schema = self.add_edge(data, schema, {})
        text = schema_text(schema, {})
        self.graphs = [og.init(self.root, text), og.open(self.root)]
        rows: Rows = {number: {} for number in schema}
        genesis = self.graphs[0].commits.list()[0]
        self.history.commit("main", genesis, State(schema, rows))
        for _ in range(3):
            self.write(data)

    # -- drawing -----------------------------------------------------------------------

    def branch(self, data: st.DataObject) -> str:
        self.touched = data.draw(st.sampled_from(sorted(self.history.heads)), "branch")
        return self.touched

    def handle(self, data: st.DataObject) -> og.Graph:
        return self.graphs[data.draw(st.integers(0, 1), "handle")]

    def property(self, data: st.DataObject, name: str, *, with_rules: bool = True) -> Property:
        """A property that may be anything."""
        type_ = data.draw(st.sampled_from([*VALUES, "enum", "I32", "String"]), "type")
        nullable = data.draw(st.integers(0, 2), "nullable") > 0
        found = Property(next(self.numbers), name, type_, nullable)
        if type_ == "enum":
            found = replace(found, values=WORDS[: data.draw(st.integers(1, 3), "values")])
        if data.draw(st.booleans(), "has default"):
            found = replace(found, default=data.draw(st.sampled_from(values_of(found)), "default"))
        if with_rules and type_ != "Bool":
            flags = data.draw(st.integers(0, 5), "rules")
            found = replace(found, is_unique=flags == 1, is_indexed=flags == 2)
        return found

    # -- changing schemas --------------------------------------------------------------

    def add_node(self, data: st.DataObject, schema: Schema, accepted: Schema) -> dict[int, Type]:
        taken = {one.name for one in (*schema.values(), *accepted.values())}
        names = number_free(taken, NODES)
        if not names or len(schema) >= MOST_TYPES:
            return dict(schema)
        key = Property(next(self.numbers), data.draw(st.sampled_from(KEYS)), "String", False)
        found = Type(
            next(self.numbers),
            data.draw(st.sampled_from(names), "new node"),
            {key.number: replace(key, is_key=True)},
        )
        for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True), "props"):
            found = found.with_property(self.property(data, name))
        return {**schema, found.number: found}

    def add_edge(self, data: st.DataObject, schema: Schema, accepted: Schema) -> dict[int, Type]:
        taken = {one.name for one in (*schema.values(), *accepted.values())}
        names = number_free(taken, EDGES)
        nodes = [number for number, one in schema.items() if not one.is_edge]
        if not names or not nodes or len(schema) >= MOST_TYPES:
            return dict(schema)
        ends = tuple(data.draw(st.sampled_from(nodes), end) for end in ENDS)
        found = Type(
            next(self.numbers),
            data.draw(st.sampled_from(names), "new edge"),
            {},
            (ends[0], ends[1]),
        )
        for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True), "props"):
            found = found.with_property(self.property(data, name))
        return {**schema, found.number: found}

    def drop_type(self, data: st.DataObject, schema: Schema, _: Schema) -> dict[int, Type]:
        gone = data.draw(st.sampled_from(sorted(schema)), "dropped type")
        return {
            number: one
            for number, one in schema.items()
            if number != gone and gone not in (one.ends or ())
        }

    def rename_type(self, data: st.DataObject, schema: Schema, accepted: Schema) -> dict[int, Type]:
        number = data.draw(st.sampled_from(sorted(schema)), "renamed type")
        type_ = schema[number]
        taken = {one.name for one in (*schema.values(), *accepted.values())}
        names = number_free(taken, EDGES if type_.is_edge else NODES)
        if not names or number not in accepted:
            return dict(schema)
        name = data.draw(st.sampled_from(names), "name")
        return {**schema, number: replace(type_, name=name)}

    def change_type(self, data: st.DataObject, schema: Schema, _: Schema) -> dict[int, Type]:
        """Another key of edges, or another limit of their number."""
        edges = [number for number, one in schema.items() if one.is_edge]
        if not edges:
            return dict(schema)
        number = data.draw(st.sampled_from(edges), "edge")
        type_ = schema[number]
        if data.draw(st.booleans(), "key"):
            solid = [
                n
                for n, one in type_.properties.items()
                if not one.nullable and one.type in ("I32", "I64", "String", "enum", "U32")
            ]
            keys: list[tuple[int, ...] | None] = [None, (), *((n,) for n in solid)]
            type_ = replace(type_, key=data.draw(st.sampled_from(keys), "key of edges"))
        else:
            type_ = replace(type_, most=data.draw(st.sampled_from([None, 1, 2]), "most"))
        return {**schema, number: type_}

    def add_property(
        self, data: st.DataObject, schema: Schema, accepted: Schema
    ) -> dict[int, Type]:
        number = data.draw(st.sampled_from(sorted(schema)), "type")
        type_ = schema[number]
        names = number_free(self.taken(number, schema, accepted), NAMES)
        if not names or len(type_.properties) >= MOST_PROPERTIES:
            return dict(schema)
        found = self.property(data, data.draw(st.sampled_from(names), "new property"))
        return {**schema, number: type_.with_property(found)}

    def taken(self, number: int, schema: Schema, accepted: Schema) -> set[str]:
        """Names that a property of a type cannot get: those it has, and those it had."""
        sides = [side[number].properties for side in (schema, accepted) if number in side]
        return {one.name for side in sides for one in side.values()}

    def change_property(
        self, data: st.DataObject, schema: Schema, accepted: Schema
    ) -> dict[int, Type]:
        """Whatever can happen to one property."""
        number = data.draw(st.sampled_from(sorted(schema)), "type")
        type_ = schema[number]
        if not type_.properties:
            return dict(schema)
        plain = [number for number, one in type_.properties.items() if not one.is_key]
        numbers = [*type_.properties, *plain, *plain]
        found = type_.properties[data.draw(st.sampled_from(numbers), "property")]
        ways: list[Callable[..., Property | None]] = [self.renamed]
        if not found.is_key:
            ways += [
                *(self.dropped, self.retyped, self.retyped, self.other_nullability),
                *(self.other_nullability, self.other_default, self.other_rules),
                *([] if type_.is_edge else [self.other_range]),
            ]
        way = data.draw(st.sampled_from(ways), "way")
        if way == self.renamed:
            is_old = number in accepted and found.number in accepted[number].properties
            names = number_free(
                self.taken(number, schema, accepted), KEYS if found.is_key else NAMES
            )
            if not names or not is_old:
                return dict(schema)
            found = replace(found, name=data.draw(st.sampled_from(names), "name"))
            return {**schema, number: type_.with_property(found)}
        changed = way(data, found)
        key = type_.key
        if changed is None or changed.nullable or changed.type in ("F32", "F64", "Bool"):
            # What a key is made of has to be there.
            key = None if key is None or found.number in key else key
        properties = {n: one for n, one in type_.properties.items() if n != found.number}
        if changed is not None:
            properties[found.number] = changed
        return {**schema, number: replace(type_, properties=properties, key=key)}

    def renamed(self, _: st.DataObject, found: Property) -> Property | None:
        return found

    def dropped(self, _: st.DataObject, __: Property) -> Property | None:
        return None

    def retyped(self, data: st.DataObject, found: Property) -> Property:
        """Another type: a wider one, other values of an enum, or anything."""
        if found.is_text:
            types = ["enum", "enum", "String", "I32"]
        else:
            types = [*WIDER.get(found.type, ()), *WIDER.get(found.type, ()), "Bool", "String"]
        type_ = data.draw(st.sampled_from(types), "type")
        values: tuple[str, ...] = ()
        if type_ == "enum":
            values = tuple(
                data.draw(st.lists(st.sampled_from(WORDS), min_size=1, unique=True), "values")
            )
        keeps_range = not found.is_text and type_ in WIDER.get(found.type, ())
        changed = replace(
            found,
            type=type_,
            values=values,
            is_unique=found.is_unique and type_ != "Bool",
            is_indexed=found.is_indexed and type_ != "Bool",
            low=found.low if keeps_range else None,
            high=found.high if keeps_range else None,
        )
        if found.default is not None and found.default not in values_of(changed):
            return replace(changed, default=values_of(changed)[0])
        if found.default is not None:
            # As a literal of the other type is written.
            same = next(value for value in values_of(changed) if value == found.default)
            return replace(changed, default=same)
        return changed

    def other_nullability(self, _: st.DataObject, found: Property) -> Property:
        return replace(found, nullable=not found.nullable)

    def other_default(self, data: st.DataObject, found: Property) -> Property:
        default = data.draw(st.sampled_from([None, *values_of(found)]), "default")
        return _fitting(replace(found, default=default))

    def other_rules(self, data: st.DataObject, found: Property) -> Property:
        if found.type == "Bool":
            return found
        if data.draw(st.booleans(), "unique"):
            return replace(found, is_unique=not found.is_unique)
        return replace(found, is_indexed=not found.is_indexed)

    def other_range(self, data: st.DataObject, found: Property) -> Property:
        if found.is_text or found.type == "Bool":
            return found
        bounds = [None, 0, 1, 2] if found.type[0] == "U" else [None, -3, 0, 1, 2]
        low, high = (data.draw(st.sampled_from(bounds), end) for end in ("low", "high"))
        if low is not None and high is not None and low > high:
            low, high = high, low
        return _fitting(replace(found, low=low, high=high))

    @rule(data=st.data())
    def evolve(self, data: st.DataObject) -> None:
        self.change(data, self.branch(data))

    @rule(data=st.data())
    def evolve_and_write(self, data: st.DataObject) -> None:
        """Change a schema, and rows right after it."""
        branch = self.branch(data)
        self.change(data, branch)
        self.load(data, branch)
        self.change(data, branch)

    def change(self, data: st.DataObject, branch: str) -> None:
        """Change several things of a schema at once."""
        state = self.history.state(branch)
        schema = dict(state.schema)
        edits = [
            *(6 * [self.change_property]),
            *(2 * [self.add_property]),
            *(self.change_type, self.rename_type, self.add_node, self.add_edge, self.drop_type),
        ]
        for edit in data.draw(st.lists(st.sampled_from(edits), min_size=1, max_size=4), "edits"):
            schema = (edit if schema else self.add_node)(data, schema, state.schema)
        self.apply(data, branch, state, schema)

    def apply(self, data: st.DataObject, branch: str, state: State, schema: Schema) -> None:
        text = schema_text(schema, state.schema)
        expected = change_schema(state.schema, state.rows, schema)
        graph = self.handle(data)
        planned = None
        if data.draw(st.booleans(), "planned"):
            planned = graph.plan_schema(text, branch=branch, check=True)
            assert planned.supported == (not expected.refusals), (expected.refusals, str(planned))
        head = graph.snapshot(branch).commit_id
        if expected.refusals:
            with pytest.raises(errors.SchemaChangeRefused):
                graph.apply_schema(text, branch=branch)
            assert graph.snapshot(branch).commit_id == head
            seen["change refused"] += 1
            return
        done = graph.apply_schema(text, branch=branch)
        if planned is not None:
            assert planned.steps == done.steps
        self.applied(branch, state, schema, expected, done)

    def applied(
        self, branch: str, state: State, schema: Schema, expected: Outcome, done: SchemaResult
    ) -> None:
        assert done.applied == (schema != state.schema), done
        if done.commit is None:
            seen["change of nothing"] += 1
            return
        losses = {
            step.entity.partition(":")[2]: step.rows_losing_value
            for step in done.steps
            if not isinstance(step, UnsupportedChange) and step.tier == "destructive"
        }
        assert losses == expected.losses
        for step in done.steps:
            seen[f"step: {step.to_json()['kind']}"] += 1
        seen["change with rows"] += any(expected.rows.values())
        self.history.commit(branch, done.commit, State(schema, expected.rows))

    # -- writes ------------------------------------------------------------------------

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        self.load(data, self.branch(data))

    def load(self, data: st.DataObject, branch: str) -> None:
        """Bring whole rows, new ones and others in place of stored ones."""
        state = self.history.state(branch)
        after = deepcopy(state.rows)
        lines: dict[tuple[int, str], Row] = {}
        for _ in range(data.draw(st.integers(1, 4), "rows")):
            if not state.schema:
                return
            type_ = state.schema[data.draw(st.sampled_from(sorted(state.schema)), "type")]
            self.bring(data, type_, after, lines)
        if lines:
            brought = list(lines.values())
            self.try_write(
                branch,
                state,
                after,
                lambda graph: graph.load(brought, mode="merge", branch=branch),
                data,
            )

    def bring(
        self, data: st.DataObject, type_: Type, rows: Rows, lines: dict[tuple[int, str], Row]
    ) -> None:
        """Put one row into the model, and the line of a load that does the same."""
        row: Row = {}
        for number, property_ in type_.properties.items():
            if not property_.is_key:
                choices = [*values_of(property_), *([None] if property_.nullable else [])]
                row[number] = data.draw(st.sampled_from(choices), property_.name)
        named = {type_.properties[number].name: value for number, value in row.items()}
        if type_.ends is None:
            (key,) = (one for one in type_.properties.values() if one.is_key)
            id_ = data.draw(st.sampled_from(IDS), "id")
            rows[type_.number][id_] = row | {key.number: id_}
            lines[type_.number, id_] = node(type_.name, **named, **{key.name: id_})
            return
        for end, number in zip(ENDS, type_.ends, strict=True):
            if not rows[number]:
                return
            row[end] = data.draw(st.sampled_from(sorted(rows[number])), end)
        if type_.key is None:
            id_ = data.draw(st.sampled_from([*EDGE_IDS, *sorted(rows[type_.number])[:2]]), "id")
            named["@id" if "id" in named else "id"] = id_
        else:
            id_ = type_.id_of(row)
        rows[type_.number][id_] = row
        lines[type_.number, id_] = edge(type_.name, row["from"], row["to"], **named)

    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        """Change one property of one row."""
        branch = self.branch(data)
        state = self.history.state(branch)
        found = [
            (number, id_, one)
            for number, type_ in sorted(state.schema.items())
            for id_ in sorted(state.rows[number])
            for one in type_.properties.values()
            if not one.is_key and one.number not in (type_.key or ())
        ]
        if not found:
            return
        number, id_, property_ = data.draw(st.sampled_from(found), "what")
        choices = [*values_of(property_), *([None] if property_.nullable else [])]
        value = data.draw(st.sampled_from(choices), "value")
        after = deepcopy(state.rows)
        after[number][id_][property_.number] = value
        type_text = "String" if property_.is_text else property_.type
        text = (
            f"query q($v: {type_text}?, $id: String) {{ "  # noqa: S608 - no SQL
            f"update {state.schema[number].name} set {{ {property_.name}: $v }} where @id = $id }}"
        )
        params = {"v": value, "id": id_}
        self.try_write(
            branch,
            state,
            after,
            lambda graph: graph.mutate(text, params=params, branch=branch),
            data,
        )

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Delete one row, and with a node its edges."""
        branch = self.branch(data)
        state = self.history.state(branch)
        found = [(n, id_) for n in sorted(state.schema) for id_ in sorted(state.rows[n])]
        if not found:
            return
        number, id_ = data.draw(st.sampled_from(found), "what")
        after = deepcopy(state.rows)
        del after[number][id_]
        for edges in state.schema.values():
            for end, other in zip(ENDS, edges.ends or (), strict=False):
                if other == number:
                    rows = after[edges.number]
                    after[edges.number] = {k: row for k, row in rows.items() if row[end] != id_}
        text = f"query q($id: String) {{ delete {state.schema[number].name} where @id = $id }}"
        self.try_write(
            branch,
            state,
            after,
            lambda graph: graph.mutate(text, params={"id": id_}, branch=branch),
            data,
        )

    def try_write(
        self,
        branch: str,
        state: State,
        after: Rows,
        write: Callable[[og.Graph], Any],
        data: st.DataObject,
    ) -> None:
        graph = self.handle(data)
        if broken := list(broken_rules(state.schema, after)):
            with pytest.raises((errors.ValidationError, errors.KeyConflict)):
                write(graph)
            seen["write refused"] += 1
            seen[f"write refused: {broken[0].partition(' ')[2]}"] += 1
            return
        done = write(graph)
        seen["write"] += 1
        if done.commit is None:
            assert after == state.rows
            return
        self.history.commit(branch, done.commit, State(state.schema, after))

    # -- branches ----------------------------------------------------------------------

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        missing = [name for name in BRANCHES if name not in self.history.heads]
        source = data.draw(st.sampled_from(sorted(self.history.heads)), "source")
        if not missing:
            gone = data.draw(st.sampled_from(BRANCHES[1:]), "gone")
            self.handle(data).branches.delete(gone)
            del self.history.heads[gone]
            self.forget_unreachable()
            self.touched = "main"
            seen["drop"] += 1
            return
        self.handle(data).branches.create(missing[0], source)
        self.history.heads[missing[0]] = self.history.heads[source]
        self.touched = missing[0]
        seen["fork"] += 1

    # -- merges ------------------------------------------------------------------------

    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        self.merge_of(data, *self.two_branches(data))

    @rule(data=st.data())
    def diverge(self, data: st.DataObject) -> None:
        """Change schema and rows of two branches, and merge them: that is what this is about."""
        names = self.two_branches(data)
        for name in names:
            ways = st.sampled_from([self.change, self.load])
            for way in data.draw(st.lists(ways, min_size=1, max_size=3), name):
                way(data, name)
        self.merge_of(data, *names)

    @rule(data=st.data())
    def add_alike(self, data: st.DataObject) -> None:
        """Add a property to two branches, often the same, and merge them."""
        names = self.two_branches(data)
        states = [self.history.state(name) for name in names]
        shared = sorted(states[0].schema.keys() & states[1].schema.keys())
        if not shared:
            return
        number = data.draw(st.sampled_from(shared), "type")
        taken = set().union(*(self.taken(number, one.schema, {}) for one in states))
        free = number_free(taken, NAMES)
        if not free:
            return
        found = self.property(data, data.draw(st.sampled_from(free), "new property"))
        for name, state in zip(names, states, strict=True):
            one = replace(found, number=next(self.numbers))
            if data.draw(st.integers(0, 2), "other default") == 0:
                one = self.other_default(data, one)
            type_ = state.schema[number].with_property(one)
            self.apply(data, name, state, {**state.schema, number: type_})
            self.load(data, name)
        self.merge_of(data, *names)

    def two_branches(self, data: st.DataObject) -> tuple[str, str]:
        if len(self.history.heads) < 2:
            self.fork(data)
        first, second = data.draw(st.permutations(sorted(self.history.heads)), "sides")[:2]
        return first, second

    def merge_of(self, data: st.DataObject, source: str, target: str) -> None:
        self.touched = target
        resolve = data.draw(st.sampled_from([None, None, "source", "target"]), "resolve")
        expected = merge_branches(self.history, source, target, resolve)
        graph = self.handle(data)
        if expected.is_open:
            # What a resolution makes of it is not said; what stands without one is.
            resolve = None
            expected = merge_branches(self.history, source, target)
        if data.draw(st.integers(0, 3), "dry") == 0:
            done = graph.branches.merge(source, target, resolve=resolve, dry_run=True)
            assert (done.outcome, done.commit) == (expected.outcome, None)
            if not (expected.may_be_refused and done.conflicts):
                check_conflicts(done.conflicts, expected)
            seen["dry merge"] += 1
        head, ours = self.history.heads[source], self.history.heads[target]
        try:
            done = graph.branches.merge(source, target, resolve=resolve)
        except errors.MergeConflicts as refused:
            if not expected.may_be_refused:
                check_conflicts(refused.conflicts, expected)
            assert graph.snapshot(target).commit_id == ours
            seen["merge refused"] += 1
            for one in refused.conflicts:
                seen[f"conflict: {one.kind}"] += 1
            return
        assert expected.is_clean, expected
        assert done.outcome == expected.outcome
        seen[f"merge: {done.outcome}"] += 1
        if done.commit is None:
            assert done.outcome == "already_up_to_date"
            return
        assert expected.state is not None
        assert bool(done.resolved) == bool(expected.settled), (done.resolved, expected.settled)
        seen["conflicts settled"] += expected.settled
        before = self.history.states[self.history.base(head, ours)].schema
        both = self.history.states[head].schema != before != self.history.states[ours].schema
        seen["schemas of both sides merged"] += both
        self.history.commit(target, done.commit, expected.state, head)
        self.history.pairs[done.commit.id] = expected.pairs
        again = graph.branches.merge(source, target)
        assert (again.outcome, again.commit) == ("already_up_to_date", None)
        # What was there before shows what it showed.
        for commit_id in (head, ours):
            self.check_commit(commit_id)

    @rule(data=st.data(), what=st.sampled_from(["cleanup", "index", "optimize"]))
    def manage(self, data: st.DataObject, what: str) -> None:
        """What changes no row: nothing goes that any commit needs."""
        if what == "cleanup":
            report = self.handle(data).cleanup(10_000, grace=timedelta(0))
            assert report.errors == {}
            seen["cleanup"] += 1
            return
        branch, graph = self.branch(data), self.handle(data)
        if what == "index":
            commit_id = graph.ensure_indices(branch).commit_id
        else:
            # Columns of dropped properties leave the files, too.
            commit_id = graph.optimize(branch, cluster=data.draw(st.booleans())).commit_id
        if commit_id is not None:
            made = self.handle(data).commits.list(branch)[0]
            assert made.id == commit_id
            self.history.commit(branch, made, self.history.state(branch))
        seen[what] += 1

    def forget_unreachable(self) -> None:
        """What was made on a branch that is gone, and on no other, cannot be read any more.

        A merge may still need it.
        """
        left: set[str] = set()
        for head in self.history.heads.values():
            while head not in left:
                left.add(head)
                head = next(iter(self.history.parents[head]), head)  # noqa: PLW2901 - a chain
        self.gone = self.history.states.keys() - left

    # -- comparing ---------------------------------------------------------------------

    @invariant()
    def same_rows(self) -> None:
        if not self.graphs:
            return
        seen["steps"] += 1
        self.steps += 1
        graph = self.graphs[self.steps % 2]
        assert graph.branches.list() == sorted(self.history.heads)
        state = self.history.state(self.touched)
        assert graph.snapshot(self.touched).commit_id == self.history.heads[self.touched]
        assert shown(graph, self.touched) == state.named(), self.touched
        self.check_filter(graph, state, branch=self.touched)
        # One commit of the past at each step, all of them in the end.
        commits = self.commits()
        self.check_commit(commits[self.steps * 7 % len(commits)])

    def commits(self) -> list[str]:
        """Every commit that can be read."""
        return sorted(self.history.states.keys() - self.gone)

    def check_commit(self, commit_id: str) -> None:
        """A commit shows what it showed, under the schema that it had."""
        state, graph = self.history.states[commit_id], self.graphs[self.steps % 2]
        assert shown(graph, snapshot=commit_id) == state.named()
        self.check_filter(graph, state, snapshot=commit_id)
        seen["commits read back"] += 1

    def check_filter(self, graph: og.Graph, state: State, **where: str) -> None:
        """Some property of some nodes, asked for by its value."""
        choices = [
            (type_, one)
            for type_ in state.schema.values()
            for one in type_.properties.values()
            if not type_.is_edge and not one.is_key
        ]
        if not choices:
            return
        type_, property_ = choices[self.steps % len(choices)]
        rows = state.rows[type_.number]
        value = values_of(property_)[self.steps % len(values_of(property_))]
        wanted = sorted(id_ for id_, row in rows.items() if row[property_.number] == value)
        kind = "String" if property_.is_text else property_.type
        text = (
            f"query q($v: {kind}) {{ match {{ $p: {type_.name} $p.{property_.name} = $v }} "
            "return { $p.@id as id } order { $p.@id } }"
        )
        found = graph.query(text, params={"v": value}, **where)  # type: ignore[arg-type]
        assert [row["id"] for row in found.rows] == wanted, text


def check_conflicts(found: tuple[errors.MergeConflict, ...], expected: Merged) -> None:
    """The same conflicts of schemas, or else of rows, or else some rule that is broken."""
    schemas = [one for one in found if one.kind.startswith("schema_")]
    told = {(one.kind, one.type_name, one.property) for one in schemas}
    assert told == expected.schema, f"{found} and {expected}"
    if schemas:
        return
    rows = {
        (one.kind, one.type_name, one.entity_id, one.property)
        for one in found
        if one.kind in ROW_KINDS
    }
    if expected.rows or not expected.rules:
        assert rows == expected.rows, f"{found} and {expected}"
    assert bool(found) == (not expected.is_clean), f"{found} and {expected}"


def _fitting(property_: Property) -> Property:
    """A property whose default lies in its range: another is no schema."""
    default, low, high = property_.default, property_.low, property_.high
    if default is None or property_.is_text or property_.type == "Bool":
        return property_
    is_outside = (low is not None and default < low) or (high is not None and default > high)
    return replace(property_, default=None) if is_outside else property_
