"""The stub of `omnigraph.aio`, made from the source of what it proxies.

A method that says what it needs is awaited; so is a property that does. What goes on reading
while it is looked at becomes a stream. `pytest --bless tests/graph` writes the file anew.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import indent
from typing import TypeGuard

SOURCE = Path(__file__).parents[2] / "src" / "omnigraph"
STUB = SOURCE / "aio" / "__init__.pyi"

STREAMS = ("Export", "BaselineLines", "Diff", "Blob")
"""Results that read on."""
NAMESPACES = ("Branches", "Tags", "Commits", "Changes")
INSIDE = {"__init__", "__getattr__", "_pull"}
"""What the proxies have for themselves."""
HEAD = "# Made from the signatures of omnigraph.graph by tests/graph/aio_stub.py; do not edit.\n"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A module of the product: its classes, and where its names come from."""

    def __init__(self, dotted: str) -> None:
        path = (SOURCE / Path(*dotted.split(".")[1:])).with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        self.origins = dict.fromkeys(self.classes, dotted)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self.origins |= {alias.name: node.module or "" for alias in node.names}
            elif isinstance(node, ast.Import):
                self.origins |= {alias.name: "" for alias in node.names}


class Stub:
    """The stub under construction: its classes as text, and the imports they need."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.reading = Module("omnigraph.graph.reading")
        self.tables = Module("omnigraph.graph.tables")
        self.upkeep = Module("omnigraph.graph.upkeep")
        self.loading = Module("omnigraph.graph.loading")
        self.session = Module("omnigraph.graph.session")
        self.looking_back = Module("omnigraph.graph.looking_back")
        self.networks = Module("omnigraph.graph.networks")
        self.branches = Module("omnigraph.graph.branches")
        self.namespaces = Module("omnigraph.graph.namespaces")
        self.proxies = Module("omnigraph.aio.proxy")
        self.own = {*STREAMS, *NAMESPACES, *self.proxies.classes}

    def text(self) -> str:
        """All of it, formatted."""
        modules = (
            *(self.reading, self.tables, self.looking_back),
            *(self.branches, self.namespaces),
        )
        origins = {name: of for module in modules for name, of in module.origins.items()}
        spaces = {name: one for one in (self.branches, self.namespaces) for name in one.classes}
        parts = [
            '__all__ = ["Graph", "Session", "Stream", "init", "open"]',
            '_T = TypeVar("_T")',
            _class("class Stream(AsyncIterator[_T])", self._plain("Stream")),
        ]
        for name in STREAMS:
            module = Module(origins[name])
            item = _item_of(module.classes[name])
            self._use(module, item)
            members = [*self._attributes(module, name), *self._read_on(module, name)]
            parts.append(_class(f"class {name}(Stream[{ast.unparse(item)}])", members))
        parts += [_class(f"class {name}", self._surface(spaces[name], name)) for name in NAMESPACES]
        session = [
            *(_property(name.lower(), name) for name in NAMESPACES),
            *self._surface(self.looking_back, "LookingBack"),
            *self._surface(self.networks, "Networks"),
            *self._surface(self.reading, "Reading"),
            *self._surface(self.tables, "Tables"),
            *self._surface(self.upkeep, "Upkeep"),
            *self._surface(self.loading, "Loading"),
            *self._surface(self.session, "Session"),
            *self._plain("Session"),
        ]
        graph = [*self._attributes(self.session, "Graph"), *self._plain("Graph")]
        parts += [
            _class("class Session", session),
            _class("class Graph(Session)", graph),
            _class("class Opening", self._plain("Opening")),
            *(self._signature(self.proxies, node) for node in self.proxies.functions),
        ]
        self.imports |= {
            "from typing import TypeVar, overload",
            "from collections.abc import AsyncIterator, Awaitable",
        }
        return _formatted("\n".join([HEAD, *sorted(self.imports), *parts]))

    # -- members ---------------------------------------------------------------------

    def _surface(self, module: Module, name: str) -> Iterator[str]:
        """Methods and properties of a session or a namespace."""
        functions = [node for node in module.classes[name].body if _is_public(node)]
        awaited = {node.name for node in functions if "action" in _decorators(node)}
        for node in functions:
            decorators = _decorators(node)
            if "property" in decorators:
                yield self._read_property(module, node, is_awaited=node.name in awaited)
            elif node.name in awaited:
                is_shown = "overload" in decorators or not _is_overloaded(node, functions)
                if is_shown:
                    yield self._signature(module, node, is_async=True)

    def _read_on(self, module: Module, name: str) -> Iterator[str]:
        """Methods and properties of a result that reads on."""
        for node in module.classes[name].body:
            if not _is_public(node):
                continue
            if {"property", "cached_property"} & _decorators(node):
                yield self._read_property(module, node, is_awaited=True)
            elif any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in ast.walk(node)):
                item = _argument(node.returns)
                self._use(module, item)
                given = ast.unparse(node.args)
                yield f"def {node.name}({given}) -> Stream[{ast.unparse(item)}]: ..."
            else:
                yield self._signature(module, node, is_async=True)

    def _plain(self, name: str) -> Iterator[str]:
        """Methods that are written in the proxy itself."""
        for node in self.proxies.classes[name].body:
            if isinstance(node, Function) and node.name not in INSIDE:
                is_async = isinstance(node, ast.AsyncFunctionDef)
                yield self._signature(self.proxies, node, is_async=is_async)

    def _attributes(self, module: Module, name: str) -> Iterator[str]:
        """The public attributes that a class sets, with their types."""
        for node in ast.walk(module.classes[name]):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Attribute):
                continue
            if not node.target.attr.startswith("_"):
                self._use(module, node.annotation)
                yield f"{node.target.attr}: {ast.unparse(node.annotation)}"

    def _read_property(self, module: Module, node: Function, *, is_awaited: bool) -> str:
        self._use(module, node.returns)
        type_ = ast.unparse(_known(node.returns))
        return _property(node.name, f"Awaitable[{type_}]" if is_awaited else type_)

    def _signature(self, module: Module, node: Function, *, is_async: bool = False) -> str:
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            self._use(module, argument.annotation)
        for rest in (arguments.vararg, arguments.kwarg):
            self._use(module, rest.annotation if rest is not None else None)
        self._use(module, node.returns)
        arguments.defaults = [_default(value) for value in arguments.defaults]
        arguments.kw_defaults = [value and _default(value) for value in arguments.kw_defaults]
        start = "@overload\n" if "overload" in _decorators(node) else ""
        word = "async def" if is_async else "def"
        returns = ast.unparse(_known(node.returns))
        return f"{start}{word} {node.name}({ast.unparse(arguments)}) -> {returns}: ..."

    def _use(self, module: Module, annotation: ast.expr | None) -> None:
        """Import what an annotation names."""
        if annotation is None:
            return
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name) and node.id in module.origins.keys() - self.own:
                origin = module.origins[node.id]
                self.imports.add(
                    f"from {origin} import {node.id}" if origin else f"import {node.id}"
                )


def _class(head: str, members: Iterable[str]) -> str:
    return "\n".join([f"{head}:", *(indent(member, "    ") for member in members)])


def _is_public(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")


def _decorators(node: ast.stmt) -> set[str]:
    if not isinstance(node, Function):
        return set()
    calls = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return {ast.unparse(one) for one in calls}


def _is_overloaded(node: ast.FunctionDef, functions: list[ast.FunctionDef]) -> bool:
    return any(other.name == node.name and "overload" in _decorators(other) for other in functions)


def _item_of(node: ast.ClassDef) -> ast.expr:
    """What iterating over a result gives."""
    for base in node.bases:
        if isinstance(base, ast.Subscript):
            return base.slice
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__iter__":
            return _argument(inner.returns)
    raise AssertionError(f"{node.name} gives nothing")


def _argument(annotation: ast.expr | None) -> ast.expr:
    if not isinstance(annotation, ast.Subscript):
        raise AssertionError("an iterator says of what it is one")
    return annotation.slice


def _known(annotation: ast.expr | None) -> ast.expr:
    if annotation is None:
        raise AssertionError("every method of the surface has a return type")
    return annotation


def _default(value: ast.expr) -> ast.expr:
    """Constants are shown, names are left open."""
    return value if isinstance(value, ast.Constant) else ast.Constant(...)


def _property(name: str, type_: str) -> str:
    return f"@property\ndef {name}(self) -> {type_}: ..."


def _formatted(text: str) -> str:
    for command in (["check", "--quiet", "--fix", "--select", "I"], ["format", "--quiet"]):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", STUB, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


def aio_stub() -> str:
    """The stub as it has to be."""
    return Stub().text()
