"""What the product offers to users, read from the product itself.

Owns the finding of verbs, options, error codes, codes of diagnostics and
environment variables. Must never read the documentation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from omnigraph.errors import OmniGraphError

_ENVIRON_METHODS = {"get", "pop", "setdefault"}

TYPE_CODE = re.compile(r"T[0-9]+")
LINT_CODE = re.compile(r"[LQ][0-9]{3}")
MIGRATION_CODE = re.compile(r"OG-[A-Z]{2}-[0-9]{3}")


def commands(root: click.Group) -> dict[str, list[str]]:
    """Every visible command by its words (the root has none), with its options."""
    return {words: options(command, ctx) for words, command, ctx in walk(root)}


def walk(root: click.Group) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every visible command by its words, with a context for it."""
    yield from _walk(root, "", click.Context(root, **root.context_settings))


def choices(command: click.Command, ctx: click.Context) -> set[str]:
    """What its visible options and its arguments can be, where that is one of a few words."""
    return {
        str(word)
        for param in command.get_params(ctx)
        if isinstance(param.type, click.Choice) and not getattr(param, "hidden", False)
        for word in param.type.choices
    }


def shared(command: click.Command, ctx: click.Context, sort: type[click.Option]) -> set[str]:
    """The spellings of its options that are of a sort."""
    return {
        spelling
        for param in command.get_params(ctx)
        if isinstance(param, sort)
        for spelling in (*param.opts, *param.secondary_opts)
    }


def error_codes(root: type[OmniGraphError] = OmniGraphError) -> dict[str, str]:
    """The name and the code of every error class of the product."""
    found = {root.__name__: root.default_code}
    for subclass in root.__subclasses__():
        if subclass.__module__.startswith("omnigraph."):
            found |= error_codes(subclass)
    return found


def codes(package: Path, pattern: re.Pattern[str]) -> set[str]:
    """The string literals of the modules below a directory that are codes of one sort."""
    return {
        node.value
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and pattern.fullmatch(node.value)
    }


def environment_variables(source: str) -> set[str]:
    """The variables a module reads, by whatever spelling.

    A name that is computed is reported as its source text, so that it cannot
    slip through.
    """
    tree = ast.parse(source)
    constants = _string_constants(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        for name in _environment_reads(node):
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found.add(name.value)
            elif isinstance(name, ast.Name) and name.id in constants:
                found.add(constants[name.id])
            elif isinstance(name, ast.List | ast.Tuple):
                found |= {ast.literal_eval(item) for item in name.elts}
            else:
                found.add(ast.unparse(name))
    return found


def _walk(
    command: click.Command, words: str, ctx: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield words, command, ctx
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            if child is not None and not child.hidden:
                below = click.Context(child, ctx, info_name=name)
                yield from _walk(child, f"{words} {name}".strip(), below)


def options(command: click.Command, ctx: click.Context) -> list[str]:
    """Every spelling of every visible option."""
    return [
        spelling
        for param in command.get_params(ctx)
        if isinstance(param, click.Option) and not param.hidden
        for spelling in (*param.opts, *param.secondary_opts)
    ]


def _environment_reads(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that name a variable, if this node reads the environment."""
    match node:
        case ast.Subscript(value=target, slice=name) if _is_environ(target):
            yield name
        case ast.Compare(left=name, ops=[ast.In() | ast.NotIn()], comparators=[target]) if (
            _is_environ(target)
        ):
            yield name
        case ast.Call(func=ast.Attribute(value=target, attr=method), args=[name, *_]) if (
            method in _ENVIRON_METHODS and _is_environ(target)
        ):
            yield name
        case ast.Call(func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"), args=[name, *_]):
            yield name
        case ast.keyword(arg="envvar", value=name):
            yield name


def _is_environ(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="environ") | ast.Name(id="environ"):
            return True
    return False


def _string_constants(tree: ast.Module) -> dict[str, str]:
    """Module-level names bound to a plain string."""
    found: dict[str, str] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))):
                found[name] = text
    return found
