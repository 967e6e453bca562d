"""Written values: the parts of a YAML document, each with its path and its line.

Owns reading YAML and telling what is wrong with its shape. All scalars stay the text that
was written: what they mean is the business of whoever asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint

_VARIABLE = re.compile(r"\$\{(?P<name>[^}]*)\}")
_NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class YamlLocation:
    """Where something stands: `nodes.Person.set.born`, and its line from 1."""

    path: str
    line: int

    def __str__(self) -> str:
        return self.path or "the document"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document."""

    spot: YamlLocation
    message: str


@dataclass(slots=True)
class DocumentErrors:
    """Everything that is wrong with a document, so that a person can mend it at once."""

    file: str
    found: list[Problem] = field(default_factory=list)

    def say(self, spot: YamlLocation, message: str) -> None:
        """Add a problem, unless the same one is there already."""
        problem = Problem(spot, message)
        if problem not in self.found:
            self.found.append(problem)

    def raise_if_any(self) -> None:
        """One error for all of them, in the order of the lines."""
        if not self.found:
            return
        found = sorted(self.found, key=lambda problem: problem.spot.line)
        lines = [f"{self.file}:{one.spot.line}: {one.spot}: {one.message}" for one in found]
        if len(lines) > 1:
            lines.append(f"{len(lines)} problems; nothing was loaded")
        problems = [
            {"path": one.spot.path, "line": one.spot.line, "message": one.message} for one in found
        ]
        raise BadRequest("\n".join(lines), details={"file": self.file, "problems": problems})


@dataclass(frozen=True, slots=True)
class YamlNode:
    """One value of a document."""

    node: yaml.Node
    spot: YamlLocation
    problems: DocumentErrors = field(compare=False)

    # -- what it is ------------------------------------------------------------------

    def text(self) -> str | None:
        """A scalar as it was written; None, and a problem, for anything else."""
        value = self.node.value
        if not isinstance(value, str):
            self.say(f"this must be a text, and is a {_kind(self.node)}")
            return None
        if self.is_null:
            self.say("this is empty")
            return None
        return value

    @property
    def is_null(self) -> bool:
        """Whether nothing is written there."""
        return isinstance(self.node.value, str) and (
            not self.node.value.strip() or (not self.is_quoted and self.node.value in _NULLS)
        )

    @property
    def is_quoted(self) -> bool:
        """Whether it stands in quotes, or is a block of text."""
        return getattr(self.node, "style", None) is not None

    @property
    def is_mapping(self) -> bool:
        """Whether it has members with names."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    def members(self) -> dict[str, YamlNode]:
        """The members of a mapping, by name; none, and a problem, for anything else."""
        if self.is_null:
            return {}
        if not self.is_mapping:
            self.say(f"this must be a mapping (name: value), and is a {_kind(self.node)}")
            return {}
        found: dict[str, YamlNode] = {}
        for key, value in self.node.value:
            name = key.value if isinstance(key.value, str) else None
            spot = YamlLocation(self.below(name or "?"), key.start_mark.line + 1)
            if name is None:
                self.problems.say(spot, f"a name is a text, and this is a {_kind(key)}")
            elif _is_remainder(name, value):
                self.problems.say(
                    spot, "this was cut off at a comma: put an expression with commas into quotes"
                )
            elif name in found:
                self.problems.say(spot, f"this is written twice, first in line {found[name].line}")
            else:
                found[name] = YamlNode(value, spot, self.problems)
        return found

    def items(self) -> list[YamlNode]:
        """The items of a list, numbered from 0."""
        values: Sequence[yaml.Node] = self.node.value if self.is_list else ()
        return [
            YamlNode(
                value,
                YamlLocation(f"{self.spot.path}[{at}]", value.start_mark.line + 1),
                self.problems,
            )
            for at, value in enumerate(values)
        ]

    def one_or_more(self) -> list[YamlNode]:
        """The items of a list, or the value alone."""
        return self.items() if self.is_list else [self]

    def known(self, names: Collection[str]) -> dict[str, YamlNode]:
        """The members of a mapping that may only have these; the others are problems."""
        found = self.members()
        for name, value in found.items():
            if name not in names:
                hint = name_hint(name, names)
                value.say(f"there is no such key{f'; {hint}' if hint else ''}")
        return {name: value for name, value in found.items() if name in names}

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.spot.line

    def say(self, message: str) -> None:
        """Note what is wrong with it."""
        self.problems.say(self.spot, message)

    def below(self, name: str) -> str:
        """The path of a member."""
        return f"{self.spot.path}.{name}" if self.spot.path else name


def read_written(file: str, source: str, problems: DocumentErrors) -> YamlNode:
    """The whole of a document."""
    try:
        # The loader that takes every scalar for text, and makes no objects of any kind.
        root = yaml.compose(source, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise BadRequest(f"{file} is no YAML: {_one_line(error)}") from None
    except RecursionError:
        raise BadRequest(f"{file} nests too deeply to be read") from None
    if root is None:
        raise BadRequest(f"{file} is empty: a pipeline has at least `mode`, `sources` and `nodes`")
    return YamlNode(root, YamlLocation("", root.start_mark.line + 1), problems)


def substituted(written: YamlNode, text: str, variables: Mapping[str, str]) -> str:
    """A text with the values of variables for `${NAME}`; a missing one is a problem."""

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in variables:
            written.say(f"the environment variable {name or '${}'} is not set")
            return ""
        return variables[name]

    return _VARIABLE.sub(value, text)


def _is_remainder(name: str, value: yaml.Node) -> bool:
    """Whether a name without a value is the rest of `{ a: f(x, y) }`."""
    return value.value == "" and ")" in name


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "mapping"
    return "list" if isinstance(node, yaml.SequenceNode) else "text"


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return said if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {said}"
