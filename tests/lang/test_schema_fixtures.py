"""The schema language, by cases from fixture files.

Inputs of a case: `schema` (one text), or `accepted` and `desired` (versions of one
graph's schema; several accepted versions are separated by a line `~~~`, and
`options` may say `allow_data_loss`). `edit` changes the accepted IR as JSON before
it is read back (`path.to.field = json`); `state` edits do the same to the sealed
state. `rows` are rows of the edge types of `schema`, without any of its node types;
`values` are single scalars.
All other sections are expectations.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import LanguageError, OmniGraphError, SchemaChangeRefused
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.literals import parse_date, parse_datetime
from omnigraph.lang.schema.catalog import EdgeType, EntityKind, NodeType
from omnigraph.lang.schema.compile import (
    CompiledSchema,
    check_schema_source,
    check_state,
    compile_schema,
    shape_of_source,
    state_from_json,
)
from omnigraph.lang.schema.ir.document import compact
from omnigraph.lang.schema.ir.identity import table_path
from omnigraph.lang.schema.ir.ir import IRInterface, IRNode, SchemaIR, ir_from_json
from omnigraph.lang.schema.keys import canonical_scalar, keyed_edge_id, keyed_node_id
from omnigraph.lang.schema.migration.effects import Column, DataCheck, Effect
from omnigraph.lang.schema.migration.facts import KnownFacts
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.types import Scalar, ValueType
from tests.lang.bless import bless
from tests.lang.fixture_file import Case, load_cases
from tests.lang.sealing import state_of

ROOT = Path(__file__).parent / "fixtures"
PATHS = sorted(ROOT.glob("schema/*.txt")) + sorted(ROOT.glob("migration/*.txt"))
CASES = [(path, case) for path in PATHS for case in load_cases(path)]
INPUTS = ("schema", "accepted", "desired", "options", "facts", "edit", "rows", "values", "stored")
DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize(
    ("path", "case"), CASES, ids=[f"{path.stem}:{case.name}" for path, case in CASES]
)
def test_case(path: Path, case: Case, request: pytest.FixtureRequest) -> None:
    expected = {name: text for name, text in case.sections.items() if name not in INPUTS}
    actual = outcome(case)
    if request.config.getoption("--bless"):
        bless(path, case.name, {name: actual.get(name, "") for name in expected})
        return
    for failure in ("errors", "error"):
        # A case that fails must say how, even when it expects something else.
        assert actual.get(failure, "") == expected.get(failure, "")
    for name, text in expected.items():
        assert text.strip(), f"the section {name!r} expects nothing"
        assert actual[name] == text


def test_the_cases_are_many_and_their_names_differ() -> None:
    names = [(path, case.name) for path, case in CASES]
    assert len(set(names)) == len(names)
    assert sum(path.parent.name == "schema" for path, _ in CASES) >= 170
    assert sum(path.parent.name == "migration" for path, _ in CASES) >= 70


# -- what a case does ----------------------------------------------------------------


def outcome(case: Case) -> dict[str, str]:
    """Everything a case may expect, as text."""
    sections = case.sections
    try:
        if "values" in sections:
            return {"ids": "".join(f"{value_id(line)}\n" for line in lines(sections["values"]))}
        if "rows" in sections:
            return {"ids": row_ids(sections["schema"], sections["rows"])}
        if "stored" in sections:
            return {
                "hash": shape_of_source(sections["stored"], stored=True).schema_shape_hash + "\n"
            }
        if "schema" in sections:
            return schema_outcome(sections)
        return migration_outcome(sections)
    except LanguageError as error:
        return failure_of(error)


def failure_of(error: LanguageError) -> dict[str, str]:
    found = error.details.get("diagnostics")
    if found is None:
        return {"error": f"{error.code} {error.message}\n"}
    return {
        "errors": "".join(
            f"{each['code']} {each['line']}:{each['column']} "
            f"{each['message'].split(' error: ', 1)[1]}\n"
            for each in found
        )
    }


def lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def schema_outcome(sections: dict[str, str]) -> dict[str, str]:
    # The runner's own line break at the end would move what is reported there.
    text = sections["schema"].removesuffix("\n")
    found = check_schema_source(text)
    if found:
        with pytest.raises(LanguageError) as raised:
            compile_schema(text)
        assert len(raised.value.details["diagnostics"]) == len(found)
        return {
            "errors": "".join(map(error_line, found)),
            "hints": "".join(map(hint_line, (each for each in found if each.hint))),
            "report": raised.value.report + "\n",
        }
    compiled = compile_schema(text, domain=DOMAIN)
    result = compiled_outcome(compiled)
    if "edit" in sections:
        document = edited(compiled.ir.to_json(), sections["edit"], "ir.")
        sealed = edited(state_of(compiled.shape, compiled.ir).to_json(), sections["edit"], "state.")
        ir = ir_from_json(json.dumps(document))
        check_state(state_from_json(json.dumps(sealed)), ir, compiled.shape)
    return result


def error_line(found: Diagnostic) -> str:
    assert 0 <= found.span.start <= found.span.end <= len(found.source.text)
    line, column = found.position
    return f"{found.stable_code} {line}:{column} {found.message}\n"


def hint_line(found: Diagnostic) -> str:
    line, column = found.position
    return f"{line}:{column} {found.hint}\n"


def migration_outcome(sections: dict[str, str]) -> dict[str, str]:
    accepted: SchemaIR | None = None
    for version in sections["accepted"].split("~~~\n"):
        accepted = compile_schema(version, accepted=accepted, domain=DOMAIN).ir
    assert accepted is not None
    if "edit" in sections:
        accepted = ir_from_json(json.dumps(edited(accepted.to_json(), sections["edit"], "ir.")))
    desired = compile_schema(sections["desired"], accepted=accepted)
    # What is stored is what is read back: planning works on either.
    assert ir_from_json(desired.ir.render()) == desired.ir
    loss = "allow_data_loss" in sections.get("options", "")
    facts = facts_of(sections.get("facts", ""), accepted)
    plan = plan_migration(accepted, desired.ir, allow_data_loss=loss, facts=facts)
    document = plan.to_json()
    result = compiled_outcome(desired)
    result["effects"] = "".join(map(effect_line, plan.effects))
    result["checks"] = "".join(map(effect_line, plan.checks))
    result["text"] = f"{plan}\n"
    result["plan"] = f"supported: {json.dumps(document['supported'])}\n" + "".join(
        f"{compact(step)}\n" for step in document["steps"]
    )
    result["refusal"] = refusal(plan.require_supported)
    return result


def facts_of(text: str, accepted: SchemaIR) -> KnownFacts:
    """Facts from lines like `A 3` (rows of a type) and `A.a empty` or `A.a filled`."""
    rows: dict[int, int] = {}
    empty: dict[tuple[int, int], bool] = {}
    tables = {table.name: table for table in accepted.tables()}
    for line in lines(text):
        name, _, fact = line.partition(" ")
        type_name, _, member = name.partition(".")
        table = tables[type_name]
        if member:
            (id_,) = (p.property_id for p in table.properties if p.name == member)
            empty[table.type_id, id_] = {"empty": True, "filled": False}[fact]
        else:
            rows[table.type_id] = int(fact)
    return KnownFacts(rows, empty)


def effect_line(effect: Effect | DataCheck) -> str:
    """An effect or a check, the place of its step first."""
    values = [
        f"{each.name}={shown(getattr(effect, each.name))}"
        for each in fields(effect)
        if each.name not in ("step", "type_id")
    ]
    return (
        f"{effect.step} {type(effect).__name__} {effect.type_id} {' '.join(values)}".rstrip() + "\n"
    )


def shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    if isinstance(value, Column):
        return f"{value.property_id}:{value.type}"
    return str(value) if isinstance(value, ValueType) else repr(value)


def refusal(require: Callable[[], None]) -> str:
    try:
        require()
    except SchemaChangeRefused as error:
        return f"{error.code} {error.message}\n"
    return ""


def edited(document: dict[str, Any], edits: str, prefix: str) -> dict[str, Any]:
    """The document after lines like `ir.nodes.0.type_id = 0`; `= gone` removes a field."""
    for line in lines(edits):
        path, _, value = line.partition(" = ")
        if not path.startswith(prefix):
            continue
        *parents, last = path.removeprefix(prefix).split(".")
        place: Any = document
        for step in parents:
            place = place[int(step) if isinstance(place, list) else step]
        if value == "gone":
            del place[last]
        else:
            place[int(last) if isinstance(place, list) else last] = json.loads(value)
    return document


# -- results as text -----------------------------------------------------------------


def compiled_outcome(compiled: CompiledSchema) -> dict[str, str]:
    shape, ir = compiled.shape, compiled.ir
    assert shape_of_source(compiled.source) == shape
    return {
        "shape": documents(shape.to_json()),
        "ir": documents(ir.to_json()),
        "hash": f"{shape.schema_shape_hash}\n{ir.schema_ir_hash}\n",
        "state": state_of(shape, ir).render(),
        "catalog": catalog_text(compiled),
        "identity": identity_text(ir),
        "reports": "".join(f"{r.code} {r.entity} {r.former}\n" for r in compiled.reports),
    }


def documents(document: dict[str, Any]) -> str:
    """One line for the scalars of a document, then one per declaration."""
    kinds = ("interfaces", "nodes", "edges")
    scalars = {name: value for name, value in document.items() if name not in kinds}
    found = [compact(scalars)] if scalars else []
    found += [f"{kind} {compact(each)}" for kind in kinds for each in document[kind]]
    return "".join(f"{line}\n" for line in found)


def identity_text(ir: SchemaIR) -> str:
    """The ids of everything, in a form a person can check."""
    found = [f"next {ir.next_identity_id}"]
    for each in ir.types():
        line = f"{each.kind} {each.name} {each.type_id}"
        if not isinstance(each, IRInterface):
            kind: EntityKind = "node" if isinstance(each, IRNode) else "edge"
            line += f" {table_path(kind, each.type_id, each.table_incarnation_id)}"
        found.append(line)
        found += [f"  {p.name} {p.property_id}" for p in each.properties]
    return "".join(f"{line}\n" for line in found)


def catalog_text(compiled: CompiledSchema) -> str:
    """The catalog, leaving out whatever is at its default."""
    catalog = compiled.catalog
    assert catalog.schema_hash == compiled.ir.schema_ir_hash
    found: list[str] = [f"interface {name}" for name in catalog.interfaces]
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    for each in types:
        facts = [f"{each.kind} {each.name}"]
        for name, value in ((f.name, getattr(each, f.name)) for f in fields(each)):
            if name not in ("name", "properties", "type_id", "incarnation") and value:
                facts.append(f"{name}={value}")
        found.append(" ".join(facts))
        for p in each.properties.values():
            facts = [f"  {p.name}: {p.type}"]
            facts += [f"default={p.default!r}"] if p.default is not None else []
            facts += [f"embedding={p.embedding}"] if p.embedding is not None else []
            facts += [f"description={p.description!r}"] if p.description else []
            facts += ["required"] if p.is_required else []
            found.append(" ".join(facts))
    return "".join(f"{line}\n" for line in found)


# -- keys ----------------------------------------------------------------------------


def value_id(line: str) -> str:
    """The canonical text of a line like `F32 0.1`, or why it has none."""
    scalar, _, text = line.partition(" ")
    try:
        return canonical_scalar(typed(json.loads(text), Scalar(scalar)), Scalar(scalar))
    except (OmniGraphError, ValueError) as error:
        return f"! {error}"


def row_ids(schema: str, rows: str) -> str:
    catalog = compile_schema(schema).catalog
    types: list[NodeType | EdgeType] = [*(catalog.edges or catalog.nodes).values()]
    return "".join(f"{row_id(each, line)}\n" for line in lines(rows) for each in types)


def row_id(type_: NodeType | EdgeType, line: str) -> str:
    row = {
        name: typed(value, type_.properties[name].type.scalar)
        if name in type_.properties
        else value
        for name, value in json.loads(line).items()
    }
    try:
        return (
            keyed_node_id(type_, row) if isinstance(type_, NodeType) else keyed_edge_id(type_, row)
        )
    except OmniGraphError as error:
        return f"! {error}"


def typed(value: Any, scalar: Scalar) -> Any:
    if isinstance(value, str) and scalar is Scalar.DATE:
        return parse_date(value)
    if isinstance(value, str) and scalar is Scalar.DATETIME:
        return parse_datetime(value)
    return value
