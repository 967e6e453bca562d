"""The page of the functions: every one with an example, which gives what stands beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.functions.signature import Group

PAGE = Path(__file__).parents[2] / "docs/user/functions.md"
BEGIN, END = "<!-- the tables are written by `pytest --bless` -->\n", "<!-- end of the tables -->\n"


def tables() -> str:
    """The tables of the page, as the registry tells them."""
    parts = []
    for group in Group:
        rows = [
            f"| `{function.signature}` | {function.description} | `{_escaped(function.example)}` "
            f"| `{_escaped(function.gives)}` |\n"
            for function in FUNCTIONS.values()
            if function.group is group
        ]
        heading = f"## {group}\n\n| Function | Gives | Example | Result |\n|---|---|---|---|\n"
        parts.append(heading + "".join(rows))
    return "\n".join(parts)


def _escaped(code: str) -> str:
    return code.replace("|", "\\|")


def test_the_page_has_every_function(request: pytest.FixtureRequest) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page = f"{before}{BEGIN}\n{tables()}\n{END}{after}"
    if request.config.getoption("--bless"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def test_every_example_gives_its_result(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "one", schema="node One {\n    n: I64 @key\n}\n")
    graph.load('{"type": "One", "data": {"n": 1}}\n', mode="append")
    columns = ", ".join(
        f"{function.example} as x{number}" for number, function in enumerate(FUNCTIONS.values())
    )
    result = graph.query(f"query all() {{ match {{ $one: One }} return {{ {columns} }} }}")
    (row,) = json.loads(result.json_rows())
    given = {name: row[f"x{number}"] for number, name in enumerate(FUNCTIONS)}
    told = {name: json.loads(function.gives) for name, function in FUNCTIONS.items()}
    assert given == told
    # 3.0 is no 3 on the page.
    assert [json.dumps(one) for one in given.values()] == [json.dumps(o) for o in told.values()]
