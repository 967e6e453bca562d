"""Changes for people: what was added, changed and removed, property by property.

Owns the layout and the colours. Works through changes one after the other and never holds
them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.render.output import write_text
from omnigraph.cli.render.tables import time_text, value_text
from omnigraph.read.output.cells import printable

if TYPE_CHECKING:
    from omnigraph.history.changes import Cause, Change

_MARKS = {"insert": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red")}
_WORDS = {"insert": "added", "update": "changed", "delete": "removed"}
_WRITTEN = 256

NO_OTHER_DIFFERENCES = "no other differences"


class ChangeText:
    """The text of some changes, and a count of those that it has shown."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._type: str | None = None

    def write(self, changes: Iterable[Change]) -> None:
        """Print changes as they come."""
        rest = iter(changes)
        while shown := list(islice(rest, _WRITTEN)):
            write_text("\n".join(line for change in shown for line in self._lines(change)))

    @property
    def summary(self) -> str:
        """What was shown, in one line."""
        counted = [f"{n} {word}" for op, word in _WORDS.items() if (n := self.counts[op])]
        return ", ".join(counted) or "no differences"

    def _lines(self, change: Change) -> Iterator[str]:
        heading = f"{change.kind} {change.type.name}"
        if heading != self._type:
            self._type = heading
            yield click.style(heading, bold=True)
        self.counts[change.op] += 1
        mark, colour = _MARKS[change.op]
        yield click.style(f"  {mark} {printable(change.id)}{_ends(change)}", fg=colour)
        for name, text in _facts(change):
            yield f"      {name}: {text}"


def cause_line(cause: Cause) -> str:
    """The commit that made changes, in one line."""
    author = "" if cause.actor_id is None else f" by {printable(cause.actor_id)}"
    line = f"commit {cause.graph_commit_id} of {time_text(cause.authored_at)}{author}"
    return click.style(f"{line} on {cause.authored_branch}", fg="cyan")


def _ends(change: Change) -> str:
    if change.endpoints is None:
        return ""
    ends = change.endpoints
    source = _node(ends.source, ends.source_type)
    return f" ({source} → {_node(ends.target, ends.target_type)})"


def _node(id_: str, type_name: str | None) -> str:
    """A node at an end; with its type where that may be one of several."""
    return printable(id_) if type_name is None else f"{type_name} {printable(id_)}"


def _quoted_node(id_: str, type_name: str | None) -> str:
    """The same where it is the value of an end."""
    return value_text(id_) if type_name is None else f"{type_name} {value_text(id_)}"


def _facts(change: Change) -> Iterator[tuple[str, str]]:
    """What an added entity says, or what of a changed one is different."""
    before, after = change.before, change.after
    if after is None:
        return
    if before is None:
        for name, value in after.properties.items():
            if value is not None:
                yield name, value_text(value)
        return
    was, now = before.endpoints, after.endpoints
    if was is not None and now is not None:
        for word, left, right in (
            ("from", (was.source, was.source_type), (now.source, now.source_type)),
            ("to", (was.target, was.target_type), (now.target, now.target_type)),
        ):
            if left != right:
                yield word, f"{_quoted_node(*left)} → {_quoted_node(*right)}"
    for name in change.changed:
        yield name, _step(change.was(name), change.now(name))


def _step(was: Any, now: Any) -> str:
    return f"{value_text(was)} → {value_text(now)}"


def patch_lines(change: Change) -> Iterator[str]:
    """A change with what was and what is, one below the other; long texts line by line."""
    heading = f"{change.kind} {change.type.name} {printable(change.id)}{_ends(change)}"
    yield click.style(heading, bold=True)
    images = [image.properties for image in (change.before, change.after) if image is not None]
    for name in change.changed if len(images) > 1 else images[0]:
        was, now = change.was(name), change.now(name)
        if isinstance(was, str) and isinstance(now, str) and "\n" in f"{was}{now}":
            yield f"  {name}:"
            compared = unified_diff(was.splitlines(), now.splitlines(), lineterm="", n=2)
            for line in islice(compared, 2, None):
                is_place = line.startswith("@@")
                text = line if is_place else f"{line[0]} {printable(line[1:])}"
                yield _marked(line[0], f"  {text}")
            continue
        if was is not None:
            yield _marked("-", f"  - {name}: {value_text(was)}")
        if now is not None:
            yield _marked("+", f"  + {name}: {value_text(now)}")


def _marked(mark: str, line: str) -> str:
    colour = {"-": "red", "+": "green"}.get(mark)
    return line if colour is None else click.style(line, fg=colour)
