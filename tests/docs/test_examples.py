"""Every example in the documentation does what the page says it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo.plan_text import render_plan
from omnigraph.lang.diagnostics import Diagnostic, render_all
from omnigraph.lang.query.compile import compile_query
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import check_schema_source, compile_schema
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.schema.syntax.format import format_schema
from omnigraph.lang.source import Source
from tests.docs.examples import (
    ROLES,
    Block,
    Example,
    blocks_of,
    examples_of,
    load_examples,
    pages_of,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = load_examples(ROOT)


def named(examples: list[Example]) -> list[object]:
    return [pytest.param(example, id=example.block.place) for example in examples]


def select(language: str, role: str) -> list[object]:
    return named([e for e in EXAMPLES if (e.block.language, e.block.role) == (language, role)])


def source(block: Block) -> Source:
    return Source(block.text, "schema.pg" if block.language == "pg" else "query.gq")


def catalog(example: Example) -> Catalog:
    assert example.schema is not None, f"{example.block.place}: no `pg` block before this one"
    return compile_schema(source(example.schema)).catalog


def canonical(block: Block) -> str:
    return (format_schema if block.language == "pg" else format_queries)(source(block))


def diagnostics(example: Example) -> tuple[Diagnostic, ...]:
    if example.block.language == "pg":
        return check_schema_source(source(example.block))
    return lint_queries(source(example.block), catalog(example)).diagnostics


@pytest.mark.parametrize("example", named(EXAMPLES))
def test_the_fence_is_understood(example: Example) -> None:
    assert example.block.role in ROLES[example.block.language]


@pytest.mark.parametrize(
    "example", named([e for e in EXAMPLES if e.block.role in ("", "loose", "next")])
)
def test_sound_examples_pass(example: Example) -> None:
    assert render_all(diagnostics(example)) == ""


@pytest.mark.parametrize("example", named([e for e in EXAMPLES if e.block.role in ("", "next")]))
def test_examples_are_canonical(example: Example) -> None:
    assert canonical(example.block) == example.block.text


@pytest.mark.parametrize("example", named([e for e in EXAMPLES if e.block.role == "loose"]))
def test_loose_examples_are_formatted_as_shown(example: Example) -> None:
    shown = example.following
    assert shown is not None
    assert shown.info == example.block.language
    assert shown.text == canonical(example.block)


@pytest.mark.parametrize("example", select("pg", "error") + select("gq", "error"))
def test_errors_read_as_shown(example: Example) -> None:
    shown = example.following
    assert shown is not None
    assert shown.info == "text", "the output of the compiler follows in a `text` block"
    assert shown.text == render_all(diagnostics(example)) + "\n"


@pytest.mark.parametrize(
    "example",
    named([e for e in EXAMPLES if e.following is not None and e.following.info == "plan"]),
)
def test_plans_read_as_shown(example: Example) -> None:
    compiled = compile_query(example.block.text, catalog(example))
    assert example.following is not None
    assert example.following.text == render_plan(compiled.plan) + "\n"


@pytest.mark.parametrize("example", select("pg", "next"))
def test_migrations_are_planned_as_shown(example: Example) -> None:
    assert example.schema is not None
    assert example.following is not None
    accepted = compile_schema(source(example.schema)).ir
    desired = compile_schema(source(example.block), accepted=accepted).ir
    assert json.loads(example.following.text) == plan_migration(accepted, desired).to_json()


# -- the reading of pages ----------------------------------------------------------

PAGE = """\
```pg
node A {}
```
``` { .gq .error }
query
```
~~~text
```gq
~~~
"""


def test_blocks_and_what_belongs_to_them() -> None:
    schema, query, output = blocks_of(PAGE, "page.md")
    assert (schema.language, schema.role, schema.place) == ("pg", "", "page.md:1")
    assert (query.language, query.role, query.text) == ("gq", "error", "query\n")
    assert (output.language, output.text) == ("text", "```gq\n")
    first, second = examples_of([schema, query, output])
    assert first == Example(schema, None, query)
    assert second == Example(query, schema, output)


def test_an_open_block_is_refused() -> None:
    with pytest.raises(ValueError, match=r"page\.md:1"):
        blocks_of("```pg\nnode A {}\n", "page.md")


def test_no_fence_of_our_languages_is_overlooked() -> None:
    """A misspelt info string would make an example that nothing runs."""
    for path in pages_of(ROOT):
        for block in blocks_of(path.read_text(encoding="utf-8"), path.name):
            mentions = {"pg", "gq"} & set(block.info.replace(".", " ").split())
            assert not mentions or block.language in mentions, block.place
