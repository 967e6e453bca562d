"""Rewriting a file of the older dialect to version 1, with its comments.

Owns what is moved where. Changes no file by itself; what comes out has to mean what went in, or it
is refused.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from omnigraph.config.older_dialect import ENTRIES, MEMBERS, SECTIONS
from omnigraph.config.project import ProjectFile
from omnigraph.config.project_reader import parse_project
from omnigraph.errors import BadRequest

_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
_ACTOR = "cli.actor is left out: who you are is yours to say, as operator.actor of your own file"


@dataclass(frozen=True, slots=True)
class Migrated:
    """A text in version 1, and what was changed; without a change it is the text that was given."""

    text: str
    changes: tuple[str, ...]


def migrate(text: str, path: Path) -> Migrated:
    """The same project in version 1."""
    before = parse_project(text, path)
    if not before.is_older and "version" in before.lines:
        return Migrated(text, ())
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    root = yaml.load(text)
    if not isinstance(root, CommentedMap):
        root = CommentedMap()
    changes = _rewrite(root, before)
    written = io.StringIO()
    yaml.dump(root, written)
    found = _with_all_comments(text, written.getvalue())
    if _meaning(parse_project(found, path)) != _meaning(before):
        raise BadRequest(
            f"{path} cannot be rewritten without changing what it says: please rewrite it by hand"
        )
    return Migrated(found, tuple(changes))


def _rewrite(root: CommentedMap, before: ProjectFile) -> list[str]:
    changes = []
    if "version" not in root:
        root.insert(0, "version", 1)
        changes.append("version: 1 is said")
    for old, new in SECTIONS.items():
        if old in root and new not in root:
            _rename(root, old, new)
            changes.append(f"{old} is called {new}")
    for (section, old), new in ENTRIES.items():
        for name, entry in _entries(root, section):
            if old in entry and new not in entry:
                _rename(entry, old, new)
                changes.append(f"{section}.{name}.{old} is called {new}")
    for name, entry in _entries(root, "aliases"):
        if "command" in entry:
            _drop(entry, "command")
            changes.append(f"aliases.{name}.command is left out: the query says what it does")
    changes += _move_members(root)
    changes += _move_served(root, before)
    return changes


def _move_members(root: CommentedMap) -> list[str]:
    """What `cli` says to the sections that say it now."""
    changes: list[str] = []
    cli = root.get("cli")
    if not isinstance(cli, CommentedMap):
        return changes
    if "actor" in cli:
        _drop(cli, "actor")
        changes.append(_ACTOR)
    for (section, old), (new, member) in MEMBERS.items():
        if section != "cli" or old not in cli:
            continue
        target = root.get(new)
        if not isinstance(target, CommentedMap):
            target = CommentedMap()
            if new in root:
                root[new] = target
            else:
                root.insert(list(root).index("cli"), new, target)
        if member not in target:
            _move(cli, old, target, member)
            changes.append(f"cli.{old} is called {new}.{member}")
    if not cli:
        _drop(root, "cli")
    return changes


def _move_served(root: CommentedMap, before: ProjectFile) -> list[str]:
    """What was said of the one graph that is served to that graph."""
    changes: list[str] = []
    server = root.get("server")
    if isinstance(server, CommentedMap):
        for old in ("graph", "target"):
            if old in server and "graphs" not in server:
                name = server[old]
                _rename(server, old, "graphs")
                server["graphs"] = _flow([name])
                changes.append(f"server.{old} is called server.graphs, a list")
    served = before.served()
    graphs = root.get("graphs")
    if len(served) != 1 or not isinstance(graphs, CommentedMap):
        return changes
    graph = graphs[served[0].name]
    policy = root.get("policy")
    if before.policy is not None and isinstance(policy, CommentedMap) and "policy" not in graph:
        _move(root, "policy", graph, "policy")
        changes.append(f"policy is that of graphs.{served[0].name}")
    if before.queries and "queries" not in graph:
        _move(root, "queries", graph, "queries")
        changes.append(f"queries are those of graphs.{served[0].name}")
    return changes


# -- mappings and their comments ---------------------------------------------------------


def _entries(root: CommentedMap, section: str) -> list[tuple[str, CommentedMap]]:
    found = root.get(section)
    if not isinstance(found, CommentedMap):
        return []
    return [(name, entry) for name, entry in found.items() if isinstance(entry, CommentedMap)]


def _rename(mapping: CommentedMap, old: str, new: str) -> None:
    at = list(mapping).index(old)
    comments = mapping.ca.items.pop(old, None)
    value = mapping.pop(old)
    mapping.insert(at, new, value)
    if comments is not None:
        mapping.ca.items[new] = comments


def _move(source: CommentedMap, old: str, target: CommentedMap, new: str) -> None:
    comments = source.ca.items.pop(old, None)
    target[new] = source.pop(old)
    if comments is not None:
        target.ca.items[new] = comments


def _drop(mapping: CommentedMap, key: str) -> None:
    mapping.ca.items.pop(key, None)
    del mapping[key]


def _flow(items: list[Any]) -> Any:
    from ruamel.yaml.comments import CommentedSeq

    found = CommentedSeq(items)
    found.fa.set_flow_style()
    return found


def _with_all_comments(before: str, after: str) -> str:
    """The new text; comments that had no place in it any more stand at its beginning."""
    kept = [comment.strip() for comment in _COMMENT.findall(after)]
    lost = []
    for comment in (found.strip() for found in _COMMENT.findall(before)):
        if comment in kept:
            kept.remove(comment)
        else:
            lost.append(comment)
    return "".join(f"{comment}\n" for comment in lost) + after


def _meaning(project: ProjectFile) -> ProjectFile:
    """What a project says, however it is written."""
    served = project.served()
    graphs = dict(project.graphs)
    server = project.server
    if len(served) == 1:
        name = served[0].name
        graphs[name] = replace(
            served[0],
            policy=served[0].policy or project.policy,
            queries=served[0].queries or project.queries,
        )
    aliases = {name: replace(alias, command=None) for name, alias in project.aliases.items()}
    return replace(
        project,
        graphs=graphs,
        server=server,
        aliases=aliases,
        actor=None,
        policy=None if len(served) == 1 else project.policy,
        queries=() if len(served) == 1 else project.queries,
        is_older=False,
        lines={},
        warnings=(),
    )
