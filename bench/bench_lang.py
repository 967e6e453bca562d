"""How fast the compilers are: against Python's own parser, and as texts grow.

Owns the ratios of the language layer. Caches are by-passed: what is measured
is the compiler.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from bench.ratio import Ratio, interleaved
from omnigraph.lang.diagnostics import Reporter, as_error
from omnigraph.lang.query.compile import check_query
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.source import Source

COMPILE_LIMIT = 15.0
GROWTH_LIMIT = 12.0
TYPES = 30
LINES = 100
SMALL, LARGE = 100_000, 1_000_000

QUERY = """\
query find_{n}($name: String, $least: I32?, $tags: [String]) @description("Numbered {n}") {{
    match {{
        $p: Item{n} {{ name: $name }}
        $p links{n}{{1,3}} $q
        $p $w:links{n} $r
        $w.weight >= 0.5
        $q.size > $least
        any {{ $q.label in $tags }} or {{ $q.label starts_with "a" }}
        not {{ $q links{n} $p }}
        optional {{ $r links{n} $s }}
    }}
    return {{ $p.name, count($q) as reached, avg($w.weight) as weight }}
    order {{ reached desc, $p.name }}
    limit 10
}}
"""

PYTHON = '''\
def find_{n}(name: str, least: int | None, tags: list[str]) -> list[dict[str, object]]:
    """Numbered {n}."""
    found = []
    for item in items(kind={n}, name=name):
        for other in reachable(item, "links{n}", 1, 3):
            if other.size > least and (other.label in tags or other.label.startswith("a")):
                found.append({{"name": item.name, "weight": weight(item, other)}})
    return sorted(found, key=lambda row: (-row["weight"], row["name"]))[:10]


'''


def schema_text(types: int) -> str:
    """A schema of so many node types, each with an edge type to itself."""
    return "\n".join(
        f"node Item{n} {{\n    name: String @key\n    label: String @index\n    size: I32?\n}}\n"
        f"edge Links{n}: Item{n} -> Item{n} {{\n    weight: F64\n}}"
        for n in range(types)
    )


def repeated(template: str, *, until: int) -> str:
    """Numbered copies of a text until it has at least so many characters."""
    parts: list[str] = []
    size = 0
    while size < until:
        parts.append(template.format(n=len(parts) % TYPES))
        size += len(parts[-1])
    return "".join(parts)


def run() -> list[Ratio]:
    """All ratios of the language layer."""
    queries = [repeated(QUERY, until=size) for size in (LARGE, SMALL)]
    # The length of a declaration hardly grows with its number.
    per_type = len(schema_text(TYPES)) / TYPES
    schemas = [schema_text(int(size / per_type)) for size in (LARGE, SMALL)]
    return [
        _compile_ratio(),
        _growth("query", _parse_queries, *queries),
        _growth("schema", _parse_schema, *schemas),
    ]


def _compile_ratio() -> Ratio:
    catalog = compile_schema(schema_text(TYPES)).catalog
    copies = LINES // QUERY.count("\n") + 1
    query = "".join(QUERY.format(n=n) for n in range(copies))
    times = interleaved(
        partial(_compile, query, catalog), partial(ast.parse, python_of_size(len(query))), runs=51
    )
    lines = query.count("\n")
    return Ratio(f"compile {lines} lines of .gq / ast.parse", *times, COMPILE_LIMIT)


def python_of_size(size: int) -> str:
    """Python source of exactly so many bytes; a comment fills the last of them."""
    text = repeated(PYTHON, until=size)
    whole = text[: text.rindex("def ", 0, size)]
    return whole + "#" * (size - len(whole))


def _growth(name: str, parse: Callable[[str], None], large: str, small: str) -> Ratio:
    times = interleaved(partial(parse, large), partial(parse, small), runs=7, pick=min)
    return Ratio(f"{name} parse 1 MB / 100 kB", *times, GROWTH_LIMIT)


def _compile(text: str, catalog: Catalog) -> None:
    source = Source(text)
    reporter = Reporter(source)
    for query in parse_queries(source, reporter).queries:
        compiled, diagnostics = check_query(source, query, catalog)
        if compiled is None:
            raise as_error(diagnostics)
    reporter.raise_if_any()


def _parse_queries(text: str) -> None:
    source = Source(text)
    reporter = Reporter(source)
    parse_queries(source, reporter)
    reporter.raise_if_any()


def _parse_schema(text: str) -> None:
    source = Source(text)
    reporter = Reporter(source)
    parse_schema(source, reporter)
    reporter.raise_if_any()
