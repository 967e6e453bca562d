"""Policy files: text in, rules out, or one error that says everything that is wrong.

Owns what may stand in a policy file and what goes together. Knows no graph: whether a type or a
branch exists is nobody's business here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from omnigraph.errors import BadRequest
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.limits import Grant
from omnigraph.policy.compiled import CompiledPolicy
from omnigraph.policy.rules import (
    ACTIONS,
    SCOPED_BY,
    SCOPES,
    PolicyFile,
    PolicyKind,
    Rule,
    Scope,
    ScopeKey,
    kind_of,
)
from omnigraph.yaml_values import FileErrors, Value, read_values

_FILE = ("version", "groups", "protected_branches", "rules")
_RULE = ("id", "allow")
_SCOPES: tuple[ScopeKey, ...] = ("branch_scope", "target_branch_scope")
_LIMITS = ("types", "hide", "rows")
_ALLOW = ("actors", "actions", *_SCOPES, "queries", *_LIMITS)


def load(path: str | Path, kind: PolicyKind | None = None) -> CompiledPolicy:
    """The policy of a file, ready to be asked; ``kind`` is what its actions have to be on."""
    file = read_policy(path)
    if kind is not None and file.rules and file.kind != kind:
        raise BadRequest(
            f"{path}: its actions are on a {file.kind}, and a policy of a {kind} is asked for"
        )
    return CompiledPolicy.of(file)


def parse_policy(source: str, name: str = "policy") -> CompiledPolicy:
    """The policy of a text, ready to be asked; ``name`` is what the bundle is called."""
    return CompiledPolicy.of(parse_rules(source, name=name))


def read_policy(path: str | Path) -> PolicyFile:
    """The rules of a file."""
    return parse_rules(text_of(path), str(path), Path(path).stem)


def text_of(path: str | Path) -> str:
    """The text of a file that somebody wrote."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not UTF-8 text (byte {error.start})") from None


def parse_rules(source: str, file: str = "<policy>", name: str = "policy") -> PolicyFile:
    """The rules of a text; ``file`` is what errors call it, ``name`` what the bundle is called."""
    errors = FileErrors(file)
    found = read_values(file, source, errors).known(_FILE, required=("version", "rules"))
    require_version(found.get("version"))
    groups = _groups(found.get("groups"))
    parser = _Rules(groups, errors)
    for rule in found["rules"].items() if "rules" in found else ():
        parser.add(rule)
    protected = _protected(found.get("protected_branches"))
    errors.raise_if_any()
    return PolicyFile(name, groups, protected, tuple(parser.rules))


def require_version(value: Value | None) -> None:
    """Refuse a file of another version than 1."""
    if value is not None and (text := value.text()) is not None and text != "1":
        value.say(f"version {text} is not known: write `version: 1`")


def _groups(value: Value | None) -> Mapping[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for name, members in ({} if value is None else value.mapped()).items():
        actors = tuple(dict.fromkeys(actor for actor, _ in members.texts()))
        if members.node.value == []:
            members.say("a group has at least one actor")
        groups[name] = actors
    return groups


def _protected(value: Value | None) -> frozenset[str]:
    found: set[str] = set()
    for branch, item in [] if value is None else value.texts():
        try:
            found.add(normalise_branch(branch))
        except BadRequest as error:
            item.say(error.message)
    return frozenset(found)


@dataclass(slots=True)
class _Rules:
    """Takes rules up, one after the other."""

    groups: Mapping[str, tuple[str, ...]]
    errors: FileErrors
    rules: list[Rule]

    def __init__(self, groups: Mapping[str, tuple[str, ...]], errors: FileErrors) -> None:
        self.groups, self.errors, self.rules = groups, errors, []
        self._ids: set[str] = set()
        self._kind: PolicyKind | None = None

    _ids: set[str]
    _kind: PolicyKind | None

    def add(self, value: Value) -> None:
        """One more rule."""
        found = value.known(_RULE, required=_RULE)
        id_ = found["id"].text() if "id" in found else None
        if id_ is not None and id_ in self._ids:
            found["id"].say(f"there is another rule `{id_}`")
        if "allow" not in found:
            return
        allow = found["allow"].known(_ALLOW, required=("actors", "actions"))
        group = self._group(allow.get("actors"))
        actions = self._actions(allow.get("actions"))
        scope_key, scope = self._scope(allow, actions)
        queries = self._queries(allow.get("queries"), actions)
        grant = self._grant(allow, actions)
        if id_ is None or group is None or not actions:
            return
        self._ids.add(id_)
        self.rules.append(Rule(id_, group, actions, scope, scope_key, queries, grant))

    def _group(self, value: Value | None) -> str | None:
        if value is None:
            return None
        found = value.known(("group",), required=("group",))
        if "group" not in found:
            return None
        if not self.groups:
            found["group"].say("there is no such group: the file has no `groups`")
            return None
        return found["group"].choice(list(self.groups))

    def _actions(self, value: Value | None) -> tuple[str, ...]:
        if value is None:
            return ()
        items = list(value.items())
        if not items and value.node.value == []:
            value.say("a rule lists at least one action")
        found = {action: item for item in items if (action := item.choice(ACTIONS)) is not None}
        kinds = {kind_of(action) for action in found}
        if len(kinds) > 1:
            value.say("actions on a graph and actions on a server cannot be in one rule")
        elif kinds and self._kind not in (None, *kinds):
            value.say(
                f"the rules before are on a {self._kind}: put actions on a {kinds.pop()} into a "
                "file of their own"
            )
        elif kinds:
            self._kind = kinds.pop()
        return tuple(found)

    def _scope(
        self, allow: Mapping[str, Value], actions: tuple[str, ...]
    ) -> tuple[ScopeKey | None, Scope]:
        keys = [key for key in _SCOPES if key in allow]
        if len(keys) > 1:
            allow[keys[1]].say("a rule has one scope: `branch_scope` or `target_branch_scope`")
        if not keys:
            return None, "any"
        key, value = keys[0], allow[keys[0]]
        for action in actions:
            if SCOPED_BY.get(action) != key:
                value.say(f"`{action}` takes no `{key}`{_instead(action)}")
        return key, cast("Scope", value.choice(SCOPES) or "any")

    def _queries(self, value: Value | None, actions: tuple[str, ...]) -> tuple[str, ...] | None:
        if value is None:
            return None
        if actions and actions != ("invoke_query",):
            value.say("`queries` goes with `invoke_query` alone: other actions need other rules")
        names = tuple(dict.fromkeys(name for name, _ in value.texts()))
        if value.node.value == []:
            value.say("name at least one query, or leave `queries` out for all of them")
        return names

    def _grant(self, allow: Mapping[str, Value], actions: tuple[str, ...]) -> Grant:
        for key in _LIMITS:
            if key in allow and actions and "read" not in actions:
                allow[key].say(f"`{key}` limits what `read` shows, and this rule does not allow it")
        types: frozenset[str] | None = None
        if "types" in allow:
            types = frozenset(name for name, _ in allow["types"].texts())
            if allow["types"].node.value == []:
                allow["types"].say("name at least one type, or leave `types` out for all of them")
        hide: dict[str, frozenset[str]] = {}
        rows: dict[str, str] = {}
        if "hide" in allow:
            for name, value in allow["hide"].mapped().items():
                self._require_shown(name, value, types)
                hide[name] = frozenset(property_ for property_, _ in value.texts())
        if "rows" in allow:
            for name, value in allow["rows"].mapped().items():
                self._require_shown(name, value, types)
                condition = value.text()
                if condition is not None:
                    rows[name] = condition
        return Grant(types, tuple(sorted(hide.items())), tuple(sorted(rows.items())))

    def _require_shown(self, name: str, value: Value, types: frozenset[str] | None) -> None:
        if types is not None and name not in types:
            self.errors.say(
                value.name or value.node, value.path, f"{name} is not among the `types` of the rule"
            )


def _instead(action: str) -> str:
    key = SCOPED_BY.get(action)
    return f": its scope is `{key}`" if key else ", or any other scope"
