"""Revisions: the ways to name a commit, from its id to `main~2` and `main@{yesterday}`.

Owns the grammar of these names, and which commit one means. What a commit showed is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from omnigraph.errors import BadRequest, BranchNotFound, NotFound
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.branches import is_missing, normalise_branch
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.snapshot import BranchState, ancestors_of, commits_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now

SHORTEST = 4
"""So many letters of an id are asked for at least."""
LISTED = 4

_GRAMMAR = re.compile(
    r"(?P<name>[^~^@{}]*)(?:@\{(?P<moment>[^{}]*)\})?(?P<steps>(?:~[0-9]{0,6}|\^)*)"
)
_STEP = re.compile(r"~([0-9]*)|\^")
_ID = re.compile(r"[0-9A-Z]+")
_WHOLE_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_AGO = re.compile(r"([0-9]{1,6}) (second|minute|hour|day|week)s? ago")
_WORDS: Mapping[str, Callable[[datetime], datetime]] = {
    "now": lambda now: now,
    "today": lambda now: now.replace(hour=0, minute=0, second=0, microsecond=0),
    "yesterday": lambda now: now - timedelta(days=1),
}
GRAMMAR = (
    "a commit is named by its id or the beginning of one, by a branch or a tag, and from there by "
    "`~2` or `^^` (two commits before) or `@{2026-11-01}`, `@{yesterday}`, `@{2 hours ago}`"
)


@dataclass(frozen=True, slots=True)
class Revision:
    """What stands for a commit: a name, perhaps a moment, and how far to go back from there."""

    text: str
    name: str
    moment: str | None
    steps: int

    @classmethod
    def parse(cls, text: str) -> Revision:
        """The parts of a name; refuses what cannot be one."""
        text = text.strip()
        found = _GRAMMAR.fullmatch(text)
        if found is None or not found["name"]:
            raise BadRequest(f"{text!r:.120} does not name a commit: {GRAMMAR}")
        steps = sum(int(count or 1) for count in _STEP.findall(found["steps"]))
        return cls(text, found["name"].strip(), found["moment"], steps)


def find_revision(manifest: Manifest, text: str) -> Commit:
    """The commit that a name means; of a branch and an id that are spelled alike, the branch."""
    revision = Revision.parse(text)
    view = _named_view(manifest, revision.name)
    if view is None:
        return _stepped(manifest, _commit_by_id(manifest, revision), revision)
    if revision.moment is None and not revision.steps:
        return head_of(manifest, view)
    line = commits_of(view)
    if revision.moment is not None:
        line = _since(line, revision)
    if revision.steps >= len(line):
        raise _too_far(revision, line[-1])
    return line[revision.steps]


def is_relative(text: str) -> bool:
    """Whether a name is written with a time, or with steps to go back."""
    return any(sign in text for sign in "~^@{}")


def exact_id(manifest: Manifest, text: str) -> str:
    """The id that a name means; what is an id already, or names nothing, is left as it is."""
    text = text.strip()
    if _WHOLE_ID.fullmatch(text):
        return text
    try:
        return find_revision(manifest, text).id
    except (NotFound, BadRequest):
        return text


def commit_to_begin_at(manifest: Manifest, text: str) -> Commit | None:
    """The commit that a new branch begins at; None where the name is a branch's, or nothing's."""
    try:
        name = normalise_branch(text)
    except BadRequest:
        return find_revision(manifest, text)
    if not is_missing(manifest, name):
        return None
    try:
        return find_revision(manifest, text)
    except NotFound:
        return None


def head_of(manifest: Manifest, view: BranchState) -> Commit:
    """The newest commit of a state."""
    head = view.state.head_commit_id
    return view.state.known_commits.get(head) or manifest.find_commit(head)


def _named_view(manifest: Manifest, name: str) -> BranchState | None:
    """The state of the branch or tag of that name, if there is one."""
    try:
        name = normalise_branch(name)
    except BadRequest:
        return None
    try:
        return manifest.view(name)
    except BranchNotFound:
        return manifest.tag(name)


def _commit_by_id(manifest: Manifest, revision: Revision) -> Commit:
    """The commit of an id, or the only one whose id begins so."""
    if revision.moment is not None:
        raise NotFound(
            f"there is no branch {revision.name}: a time is looked for on a branch",
            details={"target": revision.text},
        )
    try:
        return manifest.find_commit(revision.name)
    except NotFound:
        start = revision.name.upper()
        if len(start) < SHORTEST or _ID.fullmatch(start) is None:
            raise _unknown(manifest, revision.text) from None
    found = {commit.id: commit for commit in _every_commit(manifest) if commit.id.startswith(start)}
    if not found:
        raise _unknown(manifest, revision.text)
    if len(found) > 1:
        some = ", ".join(sorted(found)[:LISTED])
        raise BadRequest(
            f"{len(found)} commits begin with {revision.name}: {some}"
            f"{', …' if len(found) > LISTED else ''}; give more of the id",
            details={"target": revision.text},
        )
    return next(iter(found.values()))


def _every_commit(manifest: Manifest) -> Iterator[Commit]:
    for view in manifest.views():
        yield from ancestors_of(view).values()


def _stepped(manifest: Manifest, commit: Commit, revision: Revision) -> Commit:
    """So many first parents back."""
    for _ in range(revision.steps):
        if commit.parent_id is None:
            raise _too_far(revision, commit)
        commit = manifest.find_commit(commit.parent_id)
    return commit


def _since(line: list[Commit], revision: Revision) -> list[Commit]:
    """From the newest commit that was there at the moment."""
    wanted = _microseconds(revision)
    for place, commit in enumerate(line):
        if commit.created_at <= wanted:
            return line[place:]
    raise NotFound(
        f"{revision.text} was before the first commit of {revision.name}, {line[-1].id} of "
        f"{datetime.fromtimestamp(line[-1].created_at / 1e6, UTC):%Y-%m-%d %H:%M} UTC",
        details={"target": revision.text},
    )


def _microseconds(revision: Revision) -> int:
    text = " ".join((revision.moment or "").split())
    now = datetime.fromtimestamp(microseconds_now() / 1e6, UTC)
    word = _WORDS.get(text.lower())
    ago = _AGO.fullmatch(text.lower())
    try:
        if word is not None:
            found = word(now)
        elif ago is not None:
            found = now - timedelta(**{f"{ago[2]}s": int(ago[1])})
        else:
            found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise BadRequest(
            f"{revision.moment!r:.80} is not a time: write `2026-11-01`, `2026-11-01T12:30:00Z`, "
            "`yesterday`, `today`, `now` or `3 hours ago` (all in UTC)",
            details={"target": revision.text},
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return int(found.timestamp() * 1_000_000)


def _too_far(revision: Revision, first: Commit) -> NotFound:
    return NotFound(
        f"{revision.text} goes back beyond {first.id}, the first commit there is",
        details={"target": revision.text},
    )


def _unknown(manifest: Manifest, text: str) -> NotFound:
    """What is said of a name that means no commit."""
    hint = did_you_mean(text, [MAIN, *manifest.refs.read().names])
    if text.partition("~")[0].partition("^")[0].upper() == "HEAD":
        hint = f"the newest commit of a branch goes by its name, `{MAIN}`"
    tail = f": {hint}" if hint else ""
    return NotFound(f"there is no commit {text}{tail}", details={"commit_id": text})
