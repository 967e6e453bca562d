"""The configuration of one person: who they are, which servers they know, what they mean.

Owns reading `config.yaml` of their directory, and which scope a profile or the defaults name.
Nothing is refused before it is used. Never holds a token: `credentials` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from omnigraph.config.keys import NAMED, OPERATOR, CellLayout, Output, children
from omnigraph.config.project import Alias
from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import did_you_mean

if TYPE_CHECKING:
    import yaml

ScopeKind = Literal["server", "cluster", "store"]
HOME = "OMNIGRAPH_HOME"
PROFILE = "OMNIGRAPH_PROFILE"
FILE = "config.yaml"
MIN_WIDTH = 8
_DEEPEST = 3
"""So deep do keys stand: `servers.prod.url`."""

_SCOPES: tuple[ScopeKind, ...] = get_args(ScopeKind)


@dataclass(frozen=True, slots=True)
class Profile:
    """A named scope: what it binds to, which has to be one thing when it is used."""

    name: str
    target: Mapping[ScopeKind, str]
    default_graph: str | None = None

    @property
    def problem(self) -> str | None:
        """Why it cannot be used."""
        if len(self.target) == 1:
            return None
        found = ", ".join(self.target) or "none of them"
        return f"profile '{self.name}' has to name one of {', '.join(_SCOPES)}, and has {found}"

    @property
    def binding(self) -> tuple[ScopeKind, str]:
        """What it binds to."""
        if self.problem is not None:
            raise BadRequest(f"{self.problem}: correct {FILE}")
        return next(iter(self.target.items()))


@dataclass(frozen=True, slots=True)
class Defaults:
    """What is meant where nothing is said."""

    output: Output | None = None
    table_max_column_width: int | None = None
    table_cell_layout: CellLayout | None = None
    server: str | None = None
    store: str | None = None
    default_graph: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """What a person has written, and what in it is not known."""

    path: Path
    actor: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    """The addresses of servers, by name."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    defaults: Defaults = Defaults()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def server_url(self, name: str) -> str:
        """The address of a server by its name."""
        url = self.servers.get(name)
        if url is None:
            hint = did_you_mean(name, self.servers) or (
                f"{self.path} has {', '.join(sorted(self.servers))}"
                if self.servers
                else f"write it under `servers:` of {self.path}, or give its URL"
            )
            raise BadRequest(f"there is no server {name!r}: {hint}")
        return url

    def profile(self, name: str) -> Profile:
        """A profile by its name."""
        found = self.profiles.get(name)
        if found is None:
            hint = did_you_mean(name, self.profiles) or f"see `profiles:` of {self.path}"
            raise BadRequest(f"there is no profile {name!r}: {hint}")
        return found


def operator_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a person's files are."""
    given = environment.get(HOME, "").strip()
    return Path(given).expanduser() if given else Path.home() / ".omnigraph"


def active_profile(given: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The profile that is meant: the one that was given, else that of the environment."""
    return given if given is not None else environment.get(PROFILE, "").strip() or None


def read_operator_config(directory: Path | None = None) -> OperatorConfig:
    """The configuration of a directory; a file that is not there is an empty one."""
    path = (directory or operator_directory()) / FILE
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return OperatorConfig(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadRequest(f"cannot read {path}: {reason}") from None
    return _Reader(path).read(text)


class _Reader:
    """One file on its way to a configuration."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warnings: list[str] = []
        self._places: dict[str, str] = {}

    def read(self, text: str) -> OperatorConfig:
        import yaml

        try:
            found = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
            what = getattr(error, "problem", None) or "it cannot be read"
            raise BadRequest(f"{self._path} is not YAML: {what}{place}") from None
        self._find(yaml.compose(text, Loader=yaml.SafeLoader), "", _DEEPEST)
        root = self._mapping(found, "")
        self._look(root, (), "")
        config = OperatorConfig(
            self._path,
            self._text(self._section(root, "operator"), "actor", "operator"),
            self._named(root, "servers", "url"),
            self._named(root, "clusters", "root"),
            self._defaults(self._section(root, "defaults")),
            self._profiles(root),
        )
        return replace(config, aliases=self._aliases(root), warnings=tuple(self._warnings))

    def _find(self, node: yaml.Node | None, where: str, depth: int) -> None:
        """Remember where every key stands; of one that is there twice, the first would be lost."""
        import yaml

        if depth == 0 or not isinstance(node, yaml.MappingNode):
            return
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            path = f"{where}.{key.value}" if where else str(key.value)
            is_there = path in self._places
            self._places[path] = f":{key.start_mark.line + 1}:{key.start_mark.column + 1}"
            if is_there:
                raise self._wrong(path, "is written twice")
            self._find(value, path, depth - 1)

    def _section(self, root: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        found = self._mapping(root.get(name), name)
        self._look(found, (name,), name)
        return found

    def _entries(self, root: Mapping[str, Any], name: str) -> dict[str, Mapping[str, Any]]:
        entries = {}
        for key, value in self._mapping(root.get(name), name).items():
            entries[key] = self._mapping(value, f"{name}.{key}")
            self._look(entries[key], (name, NAMED), f"{name}.{key}")
        return entries

    def _named(self, root: Mapping[str, Any], section: str, member: str) -> dict[str, str]:
        found = {}
        for name, entry in self._entries(root, section).items():
            value = self._text(entry, member, f"{section}.{name}")
            if value is None:
                raise self._wrong(f"{section}.{name}", f"needs `{member}:`")
            found[name] = value
        return found

    def _defaults(self, found: Mapping[str, Any]) -> Defaults:
        names = ("server", "store", "default_graph")
        server, store, graph = (self._text(found, name, "defaults") for name in names)
        if store is not None and (server is not None or graph is not None):
            other = "server" if server is not None else "default_graph"
            raise self._wrong("defaults", f"has both `store` and `{other}`: a store is one graph")
        output = self._choice(found, "output", "defaults", get_args(Output))
        layout = self._choice(found, "table_cell_layout", "defaults", get_args(CellLayout))
        width = found.get("table_max_column_width")
        if width is not None and (type(width) is not int or width < MIN_WIDTH):
            raise self._wrong(
                "defaults.table_max_column_width", f"has to be a whole number from {MIN_WIDTH} on"
            )
        return Defaults(
            cast("Output | None", output),
            width,
            cast("CellLayout | None", layout),
            server,
            store,
            graph,
        )

    def _aliases(self, root: Mapping[str, Any]) -> dict[str, Alias]:
        found = {}
        for name, entry in self._entries(root, "aliases").items():
            where = f"aliases.{name}"
            query = self._text(entry, "query", where)
            if query is None:
                raise self._wrong(where, "needs `query:`")
            args = entry.get("args") or []
            if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
                raise self._wrong(f"{where}.args", "has to be a list of the names of parameters")
            found[name] = Alias(
                name,
                query,
                self._text(entry, "name", where),
                tuple(args),
                self._mapping(entry.get("params"), f"{where}.params"),
                self._text(entry, "server", where),
                self._text(entry, "graph", where),
                self._text(entry, "branch", where),
                cast("Output | None", self._choice(entry, "format", where, get_args(Output))),
                source=str(self._path),
            )
        return found

    def _choice(
        self, found: Mapping[str, Any], name: str, where: str, choices: tuple[str, ...]
    ) -> str | None:
        text = self._text(found, name, where)
        if text is not None and text not in choices:
            known = ", ".join(choices)
            hint = did_you_mean(text, choices)
            tail = "" if hint is None else f": {hint}"
            raise self._wrong(f"{where}.{name}", f"is one of {known}, not {text!r:.60}{tail}")
        return text

    def _profiles(self, root: Mapping[str, Any]) -> dict[str, Profile]:
        found = {}
        for name, entry in self._entries(root, "profiles").items():
            where = f"profiles.{name}"
            given = {kind: self._text(entry, kind, where) for kind in _SCOPES}
            target = {kind: text for kind, text in given.items() if text is not None}
            found[name] = Profile(name, target, self._text(entry, "default_graph", where))
        return found

    def _mapping(self, value: Any, where: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self._wrong(where, "has to be a mapping of names")
        return value

    def _text(self, found: Mapping[str, Any], name: str, where: str) -> str | None:
        value = found.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(f"{where}.{name}", "has to be text")
        return value.strip()

    def _look(self, found: Mapping[str, Any], section: tuple[str, ...], where: str) -> None:
        """Remark what nobody knows; it is ignored."""
        known = children(OPERATOR, section)
        for name in found.keys() - known:
            hint = did_you_mean(name, known)
            named = f"{where}.{name}" if where else name
            self._warnings.append(
                f"{self._path}{self._places.get(named, '')}: nobody knows `{named}`, it is ignored"
                + ("" if hint is None else f": {hint}")
            )

    def _wrong(self, where: str, what: str) -> BadRequest:
        place = self._places.get(where, "")
        return BadRequest(f"{self._path}{place}: {where or 'the file'} {what}")
