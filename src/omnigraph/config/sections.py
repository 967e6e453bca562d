"""The sections of a file that people write: its values, and what is said of unknown keys.

Owns reading single values, of whatever section, with the line of each. Knows where the older
dialect has its values; what a section means is for `project_reader.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from omnigraph.config.keys import PROJECT, children
from omnigraph.config.older_dialect import ENTRIES, MEMBERS, PROVIDER_KIND, SECTIONS
from omnigraph.config.project import QueryFile
from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.yaml_values import FileErrors, Value

_MOST_PARAMS = 10_000
_DEEPEST = 20
_DURATION = re.compile(r"(?P<count>[0-9]{1,6})(?P<unit>[smhdw]?)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SECRETS = frozenset({"token", "bearer_token", "password", "secret", "api_key", "access_key"})


class Sections:
    """One file, its mistakes and its remarks, while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = path.absolute().parent
        self.errors = FileErrors(str(path))
        self.warnings: list[str] = []
        self.lines: dict[str, int] = {}
        self.is_older = False

    # -- sections ------------------------------------------------------------------

    def sections(self, root: Value) -> dict[str, Value]:
        """The sections of the file in the words of version 1; what moved is moved."""
        found = self.known(root, (), keep=SECTIONS)
        for old, new in SECTIONS.items():
            if old in found:
                self.is_older = True
                found.setdefault(new, found.pop(old))
        return found

    def section(self, root: Mapping[str, Value], name: str) -> dict[str, Value]:
        """The members of a section, with those that have moved into it."""
        found = self.known(root[name], (name,)) if is_given(root, name) else {}
        for (old, member), (new, moved) in MEMBERS.items():
            if new == name and is_given(root, old):
                members = members_of(root[old])
                if member in members:
                    self.is_older = True
                    found.setdefault(moved, members[member])
        return found

    def entries(
        self, value: Value, where: tuple[str, ...]
    ) -> Iterator[tuple[str, dict[str, Value]]]:
        """The entries of a section of named things, by name."""
        for name, entry in value.mapped().items():
            found = self.known(entry, (*where, name)) if not entry.is_empty else {}
            for (section, old), new in ENTRIES.items():
                if where[0] == section and old in found:
                    self.is_older = True
                    found.setdefault(new, found.pop(old))
            yield name, found

    def known(
        self, value: Value, where: tuple[str, ...], keep: Collection[str] = ()
    ) -> dict[str, Value]:
        """The members of a mapping that somebody knows; the others are remarked."""
        names = {*children(PROJECT, where), *keep}
        if where[:2] == ("providers", "embedding"):
            names |= {PROVIDER_KIND}
        found = value.members()
        for name, member in found.items():
            if name in names:
                continue
            if name in _SECRETS:
                member.say(
                    "secrets are not written here: name a variable that has it (bearer_token_env, "
                    'or api_key: "${VARIABLE}" of a provider)'
                )
                continue
            hint = name_hint(name, names)
            self.warn(
                member,
                "is a key that nobody knows, it is ignored" + ("" if hint is None else f": {hint}"),
            )
        return {name: member for name, member in found.items() if name in names}

    # -- values --------------------------------------------------------------------

    def note(self, found: Mapping[str, Value], name: str, where: str = "") -> bool:
        """Remember the line of a key; returns whether it is there."""
        if not is_given(found, name):
            return False
        self.lines[f"{where}.{name}" if where else name] = line_of(found[name])
        return True

    def text(self, found: Mapping[str, Value], where: str, name: str) -> str | None:
        """A text, if one is written."""
        return found[name].text() if self.note(found, name, where) else None

    def choice(
        self, found: Mapping[str, Value], where: str, name: str, choices: Collection[str]
    ) -> str | None:
        """One of some words, if one is written."""
        text = found[name].choice(choices) if self.note(found, name, where) else None
        return text if text in choices else None

    def number(self, found: Mapping[str, Value], where: str, name: str, least: int) -> int | None:
        """A whole number that is not too small."""
        text = self.text(found, where, name)
        if text is None:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < least:
            found[name].say(f"this must be a whole number from {least} on, and is `{text:.40}`")
            return None
        return int(text)

    def duration(self, value: Value, text: str) -> timedelta | None:
        """A whole number of seconds, minutes, hours, days or weeks."""
        found = _DURATION.fullmatch(text)
        if found is None:
            value.say("this must be a whole number and one of s, m, h, d, w, such as 30d")
            return None
        return timedelta(**{_UNITS[found["unit"] or "s"]: int(found["count"])})

    def texts(self, found: Mapping[str, Value], where: str, name: str) -> tuple[str, ...] | None:
        """The texts of a list."""
        if not self.note(found, name, where):
            return None
        return tuple(text for text, _ in found[name].texts())

    def path_of(self, found: Mapping[str, Value], where: str, name: str) -> Path | None:
        """A path, which begins at the directory of the file."""
        text = self.text(found, where, name)
        return None if text is None else self.placed(found[name], text)

    def placed(self, value: Value, text: str) -> Path:
        """A path as it is written; what has no end, such as a device, is no file of a project."""
        path = self.directory / text
        try:
            is_odd = path.exists() and not (path.is_file() or path.is_dir())
        except OSError:
            return path  # whoever reads it is told why that cannot be done
        if is_odd:
            value.say("this is neither a file nor a directory")
        return path

    def file(self, found: Mapping[str, Value], where: str, name: str) -> Path | None:
        """A mapping with the one key `file`, or the path alone."""
        if not is_given(found, name):
            return None
        value = found[name]
        self.note(found, name, where)
        if isinstance(value.node, yaml.ScalarNode):
            text = value.text()
            return None if text is None else self.placed(value, text)
        members = value.known({"file"})
        text = members["file"].text() if is_given(members, "file") else None
        return None if text is None else self.placed(members["file"], text)

    def queries(
        self, found: Mapping[str, Value], name: str, where: str = ""
    ) -> tuple[QueryFile, ...]:
        """Stored queries: a path, a list of them, or files by the name of a query."""
        if not self.note(found, name, where):
            return ()
        value = found[name]
        if isinstance(value.node, yaml.MappingNode):
            named = [
                (query, entry.known({"file"}, {"file"})) for query, entry in value.mapped().items()
            ]
            return tuple(
                QueryFile(self.placed(entry["file"], text), query)
                for query, entry in named
                if "file" in entry and (text := entry["file"].text()) is not None
            )
        if isinstance(value.node, yaml.SequenceNode):
            return tuple(QueryFile(self.placed(value, text)) for text, _ in value.texts())
        text = value.text()
        return () if text is None else (QueryFile(self.placed(value, text)),)

    def params(self, entry: Mapping[str, Value], where: str) -> dict[str, Any]:
        """Parameters with their values."""
        if not self.note(entry, "params", where):
            return {}
        left = [_MOST_PARAMS]
        members = entry["params"].mapped()
        return {name: self.value(member, _DEEPEST, left) for name, member in members.items()}

    def value(self, value: Value, depth: int, left: list[int]) -> Any:
        """A parameter as JSON has it: what is quoted is text, and else a number if it can be."""
        left[0] -= 1
        if left[0] < 0 or depth < 0:
            value.say("this is more than parameters can be")
            return None
        if isinstance(value.node, yaml.MappingNode):
            members = value.mapped().items()
            return {name: self.value(member, depth - 1, left) for name, member in members}
        if isinstance(value.node, yaml.SequenceNode):
            return [self.value(item, depth - 1, left) for item in value.items()]
        text = str(value.node.value)
        if getattr(value.node, "style", None) is not None:
            return text
        if value.is_empty:
            return None
        try:
            return json.loads(text)
        except ValueError:
            return text

    def uri(self, value: Value, text: str) -> str:
        """A location; what could be a secret in one is refused."""
        if "://" not in text:
            return str(self.directory / text)
        if re.match(r"[a-z0-9+.-]+://[^/]*@", text, re.IGNORECASE):
            value.say("secrets are not written here: leave what stands before the @ out")
        return text

    def warn(self, value: Value, message: str) -> None:
        """Remark something that is no mistake."""
        node = value.name or value.node
        mark = node.start_mark
        self.warnings.append(
            f"{self.path}:{mark.line + 1}:{mark.column + 1}: `{value.path}` {message}"
        )


def yaml_or_none(text: str, file: str) -> yaml.Node | None:
    """The tree of a text; None for one that says nothing."""
    try:
        found: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
    except RecursionError:
        raise BadRequest(f"{file} nests too deeply to be read") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        said = getattr(error, "problem", None) or "it cannot be read"
        raise BadRequest(f"{file}{place}: this is not YAML: {said}") from None
    return found


def is_given(found: Mapping[str, Value], name: str) -> bool:
    """Whether something is written under a name."""
    return name in found and not found[name].is_empty


def members_of(value: Value) -> dict[str, Value]:
    """Members that are looked at once more: what is wrong with them was said before."""
    if not isinstance(value.node, yaml.MappingNode):
        return {}
    return value.members()


def line_of(value: Value) -> int:
    """The line of a value, from 1."""
    return int((value.name or value.node).start_mark.line) + 1
