"""The page of the Python reference, made from signatures and docstrings.

Owns how they are written down. Must not know anything about what it shows.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from omnigraph.errors import OmniGraphError
from tests.docs.reference.members import Function, attributes, methods, signature
from tests.docs.reference.shown import PARTS, Class, Functions

_OPENING = """\
# Python reference

Every public name, as its docstring says it. The examples are run by the tests: `graph` is the one
of [CSV to first answer in two minutes](two-minutes.md), with a branch `draft` on which ann has put
*John Wick* into the year 2015. How things belong together is told by the guides; the same names on
the command line have [a page](cli.md) of their own.

```python
from pathlib import Path

import omnigraph as og

graph = og.open("film.omni")
```
"""
_ERRORS = """\
## Errors

All are in `omnigraph.errors` and derive from `OmniGraphError`, which has `code`, `message` and
`details`: [what they mean](errors.md).

| Class | Code | When |
|---|---|---|
"""
_EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)


def reference_page() -> str:
    """The whole page."""
    return "\n".join([_OPENING, *_chapters(), _errors()])


def example_of(function: Function) -> str:
    """The example of a docstring; nothing if it has none."""
    text = inspect.getdoc(function) or ""
    begins = _EXAMPLE.search(text)
    return "" if begins is None else text[begins.start() :].rstrip()


def _chapters() -> Iterator[str]:
    for part in PARTS:
        yield f"## {part.title}\n"
        if part.text:
            yield f"{part.text}\n"
        for item in part.items:
            if isinstance(item, Functions):
                for function in item.functions:
                    yield from _function(item.module, function.__name__, function, "###")
            else:
                yield from _class(item)


def _class(item: Class) -> Iterator[str]:
    heading = item.title or f"`{item.name or item.type.__name__}`"
    found, called = attributes(item), methods(item)
    if item.name and not found and not called:
        return
    yield f"### {heading}\n"
    if not item.title:
        yield f"{_prose(inspect.getdoc(item.type) or '')}\n"
    if found:
        yield _table([[f"`{one.name}`", _code(one.type), _prose(one.text)] for one in found])
    for name, function in called.items():
        yield from _function(item.name or item.type.__name__, name, function, "####")


def _function(owner: str, name: str, function: Function, level: str) -> Iterator[str]:
    text = inspect.getdoc(function) or ""
    example = example_of(function)
    yield f"{level} `{owner}.{name}`\n"
    yield f"```python\n{name}{signature(function)}\n```\n"
    yield f"{_prose(text.removesuffix(example).rstrip() if example else text)}\n"
    if example:
        yield f"``` {{ .pycon .docstring }}\n{example}\n```\n"


def _table(rows: list[list[str]]) -> str:
    """What attributes are; without a column for what they mean, if none says that."""
    width = 3 if any(row[-1] for row in rows) else 2
    lines = [["Attribute", "Type", "Meaning"][:width], ["---"] * width]
    lines += [[_cell(text) for text in row[:width]] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _errors() -> str:
    rows: list[str] = []
    classes = [OmniGraphError]
    while classes:
        error = classes.pop(0)
        classes += [one for one in error.__subclasses__() if one.__module__ == error.__module__]
        first = (inspect.getdoc(error) or "").partition("\n\n")[0]
        rows.append(f"| `{error.__name__}` | `{error.default_code}` | {_cell(_prose(first))} |")
    return _ERRORS + "\n".join(rows) + "\n"


def _prose(text: str) -> str:
    """A docstring as Markdown: code has one backtick there, and two here."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\|", " ".join(text.split()))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
