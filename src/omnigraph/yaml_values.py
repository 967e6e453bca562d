"""The values of a YAML file, each with its line and column, and what is wrong with them.

Owns reading YAML for files that people write: unknown keys, keys written twice and values of
the wrong shape are noted with their place, all of them. Knows nothing of what a file means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint

_NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(slots=True)
class FileErrors:
    """Everything that is wrong with a file, so that a person can mend it at once."""

    file: str
    found: list[tuple[int, int, str, str]] = field(default_factory=list)
    """Line and column from 1, the path of the value, and what is said of it."""

    def say(self, node: yaml.Node, path: str, message: str) -> None:
        """Note what is wrong with a value."""
        mark = node.start_mark
        problem = (mark.line + 1, mark.column + 1, path, message)
        if problem not in self.found:
            self.found.append(problem)

    def raise_if_any(self) -> None:
        """One error for all of them, in the order of the text."""
        if not self.found:
            return
        found = sorted(self.found)
        lines = [
            f"{self.file}:{line}:{column}: {path}: {message}"
            if path
            else f"{self.file}:{line}:{column}: {message}"
            for line, column, path, message in found
        ]
        if len(lines) > 1:
            lines.append(f"{len(lines)} problems")
        problems = [
            {"line": line, "column": column, "path": path, "message": message}
            for line, column, path, message in found
        ]
        raise BadRequest("\n".join(lines), details={"file": self.file, "problems": problems})


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a file."""

    node: yaml.Node
    path: str
    errors: FileErrors = field(compare=False)
    name: yaml.Node | None = None
    """The key that it is written under."""

    def say(self, message: str) -> None:
        """Note what is wrong with it."""
        self.errors.say(self.node, self.path, message)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written there."""
        node = self.node
        return (
            isinstance(node, yaml.ScalarNode)
            and node.style is None
            and node.value.strip() in _NULLS
        )

    def text(self) -> str | None:
        """A scalar as it was written, without blanks around it; None, and an error, otherwise."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.say(f"this must be a text, and is a {_kind(self.node)}")
            return None
        text = str(self.node.value).strip()
        if self.is_empty or not text:
            self.say("this must not be blank")
            return None
        return text

    def choice(self, choices: Collection[str]) -> str | None:
        """One of some words."""
        text = self.text()
        if text is None or text in choices:
            return text
        hint = name_hint(text, choices)
        known = f": known are {', '.join(f'`{choice}`' for choice in sorted(choices))}"
        self.say(f"`{text}` is not known here{known if hint is None else f'; {hint}'}")
        return None

    def members(self) -> dict[str, Value]:
        """The members of a mapping, by name; none, and an error, for anything else."""
        if not isinstance(self.node, yaml.MappingNode):
            self.say(f"this must be a mapping (name: value), and is a {_kind(self.node)}")
            return {}
        found: dict[str, Value] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.errors.say(key, self.path, "a name must be a text")
                continue
            name = str(key.value).strip()
            path = f"{self.path}.{name}" if self.path else name
            if name in found:
                self.errors.say(key, path, "this is written twice")
                continue
            found[name] = Value(value, path, self.errors, key)
        return found

    def known(self, names: Collection[str], required: Collection[str] = ()) -> dict[str, Value]:
        """The members of a mapping that may only have these; the others are errors."""
        found = self.members()
        for name, value in found.items():
            if name not in names and value.name is not None:
                hint = name_hint(name, names)
                self.errors.say(value.name, value.path, f"there is no key `{name}` here; {hint}")
        if isinstance(self.node, yaml.MappingNode):
            for name in required:
                if name not in found:
                    self.say(f"the key `{name}` is missing")
        return {name: value for name, value in found.items() if name in names}

    def items(self) -> Iterator[Value]:
        """The items of a list; none, and an error, for anything else."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.say(f"this must be a list, and is a {_kind(self.node)}")
            return
        for at, value in enumerate(self.node.value):
            yield Value(value, f"{self.path}[{at}]", self.errors)

    def texts(self) -> list[tuple[str, Value]]:
        """The texts of a list, each with its place."""
        return [(text, item) for item in self.items() if (text := item.text()) is not None]

    def mapped(self) -> Mapping[str, Value]:
        """The members of a mapping whose names are those of somebody else; none may be blank."""
        found = self.members()
        for name, value in found.items():
            if not name and value.name is not None:
                self.errors.say(value.name, self.path, "a name must not be blank")
        return {name: value for name, value in found.items() if name}


def read_values(file: str, source: str, errors: FileErrors) -> Value:
    """The whole of a file."""
    try:
        # The loader that takes every scalar for text, and makes no objects of any kind.
        root = yaml.compose(source, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise BadRequest(f"{file} is not YAML: {_one_line(error)}") from None
    except RecursionError:
        raise BadRequest(f"{file} nests too deeply to be read") from None
    if root is None:
        raise BadRequest(f"{file} is empty")
    return Value(root, "", errors)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "mapping"
    return "list" if isinstance(node, yaml.SequenceNode) else "text"


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return said if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {said}"
