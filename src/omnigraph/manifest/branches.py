"""Branches: listing, creating, renaming and deleting them, with every refusal; and their epochs.

Owns what a name may be, and the order of the steps. A branch is written before it is named, so
that a half-made one is seen by nobody and blocks nothing; it is ended before its name goes, so
that a writer inside its commit loses. A write stages its files in one epoch of one branch and
publishes them in that epoch or not at all: so when a branch has a new epoch, what was staged
before and is not published by then never will be.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from msgspec import structs

from omnigraph.errors import BadRequest, BranchNotFound, Conflict, NotFound, StorageError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.entries import MAIN, Head
from omnigraph.manifest.refs import Ref, RefKind, Refs
from omnigraph.manifest.snapshot import BranchState, retained_line
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now, new_id
from omnigraph.storage.objects.faults import reach

ATTEMPTS = 32

SCHEMA_APPLY_LOCK = "__schema_apply_lock__"
MAX_BYTES = 200

_PUNCTUATION = frozenset("._-/")


class EpochMoved(Exception):
    """A collection has begun since the names were read: what was prepared has to be again."""


@dataclass(frozen=True, slots=True)
class BranchRefs:
    """The branches of one manifest."""

    manifest: Manifest

    def list(self) -> list[str]:
        """Every branch by name, main included."""
        return sorted([MAIN, *self.manifest.refs.read().of_kind("branch")])

    def create(self, name: str, source: str = MAIN, actor: str | None = None) -> str:
        """Fork a branch from the head of another; returns its normal name."""
        name, source = normalise_branch(name), normalise_branch(source)
        return self._create(name, lambda refs: self.fork(name, source, refs, actor))

    def keep(self, name: str, commit_id: str, actor: str | None = None) -> str:
        """Fork a branch from a commit that can still be read; returns its normal name."""
        name = normalise_branch(name)

        def fork(refs: Refs) -> str:
            # After the names were read, as the head of a source is.
            return self._fork(name, self._kept(commit_id), refs, actor)

        return self._create(name, fork)

    def keep_state(self, name: str, kept: BranchState, actor: str | None = None) -> str:
        """Fork a branch from a state that no branch leads to: whose newest ones are lost."""
        return self._create(name, lambda refs: self._fork(name, kept, refs, actor))

    def tags(self) -> Sequence[str]:
        """Every tag by name."""
        return self.manifest.refs.read().of_kind("tag")

    def tag(self, name: str, commit_id: str, actor: str | None = None) -> str:
        """Give a commit that can still be read a name that keeps it; returns the normal name."""
        name = normalise_branch(name)

        def fork(refs: Refs) -> str:
            kept = self._kept(commit_id)
            # A tag keeps its commit, and nothing of the time before it.
            head = replace(kept.state.head, oldest_commit_id=commit_id)
            kept = replace(kept, state=replace(kept.state, head=head))
            return self._fork(name, kept, refs, actor, "tag")

        return self._create(name, fork)

    def untag(self, name: str) -> str:
        """Remove a tag; returns its normal name."""
        name = normalise_branch(name)
        names = self.manifest.refs.read().names
        ref = names.get(name)
        if ref is None or ref.kind != "tag":
            tags = [tag for tag, found in names.items() if found.kind == "tag"]
            hint = did_you_mean(name, tags)
            tail = f": {hint}" if hint else ""
            raise NotFound(f"there is no tag {name}{tail}", details={"tag": name})
        self.end(name, ref.id)
        return name

    def rename(self, old: str, new: str) -> str:
        """Give a branch another name; returns that.

        The names are the authority. Whoever knows the branch by its old name is told by the branch
        itself, which is why it says its name, too; until it does, nobody else gets the old one.
        """
        old, new = normalise_branch(old), normalise_branch(new)
        if MAIN in (old, new):
            raise BadRequest("main is always called main")
        branch_id = self.manifest.branch_id(old)
        if old == new:
            return new
        is_tried = False

        def renamed(found: Refs) -> Refs | None:
            nonlocal is_tried
            there = found.names.get(new)
            if is_tried and there is not None and there.id == branch_id:
                return None
            ref = found.names.get(old)
            if ref is None or ref.id != branch_id:
                raise BranchNotFound(f"there is no branch {old}", details={"branch": old})
            others = {name: ref for name, ref in found.names.items() if name != old}
            self._check_free(new, replace(found, names=others))
            is_tried = True
            return replace(
                found, names={**others, new: structs.replace(ref, former=ref.former or old)}
            )

        self.manifest.refs.change(renamed)
        self._finish_rename(new, branch_id)
        return new

    def _finish_rename(self, name: str, branch_id: str) -> None:
        """Have a branch say its name itself."""

        def says(view: BranchState) -> Head | None:
            head = view.state.head
            return None if head.ended or head.branch == name else replace(head, branch=name)

        def told(found: Refs) -> Refs | None:
            ref = found.names.get(name)
            if ref is None or ref.id != branch_id or ref.former is None:
                return None
            return replace(found, names={**found.names, name: structs.replace(ref, former=None)})

        self.manifest.mark(branch_id, says)
        self.manifest.refs.change(told)

    def _kept(self, commit_id: str) -> BranchState:
        """The state that a commit published, with what a branch keeps of the time before it."""
        for view in self._readable():
            for commit in retained_line(view):
                if commit.id == commit_id:
                    found = self.manifest.view_at(commit)
                    oldest = view.state.head.oldest_commit_id
                    head = replace(found.state.head, oldest_commit_id=oldest, ended=False)
                    return replace(found, state=replace(found.state, head=head))
        raise NotFound(
            f"no branch and no tag keeps commit {commit_id}", details={"commit_id": commit_id}
        )

    def _readable(self) -> Iterator[BranchState]:
        """The branches and tags, but for those that cannot be read."""
        for name in self.list():
            with suppress(StorageError, BranchNotFound):
                yield self.manifest.view(name)
        for name in self.tags():
            with suppress(StorageError):
                found = self.manifest.tag(name)
                if found is not None:
                    yield found

    def _create(self, name: str, fork: Callable[[Refs], str]) -> str:
        if name == MAIN:
            raise BadRequest("main exists always and cannot be created")
        refs = self.manifest.refs.seen()
        for _ in range(ATTEMPTS):
            try:
                fork(refs)
            except EpochMoved:
                refs = self.manifest.refs.read()
            except Conflict:
                # By names that may be out of date.
                newest = self.manifest.refs.read()
                if newest.version == refs.version:
                    raise
                refs = newest
            else:
                return name
        raise Conflict(
            f"branch {name} was not created: cleanups begin faster than it can be; retry",
            details={"branch": name, "attempts": ATTEMPTS},
        )

    def fork(self, name: str, source: str, refs: Refs, actor: str | None = None) -> str:
        """Fork a branch, unless a collection has begun since ``refs`` were read; returns its id.

        The head of the source is read after them: whatever that epoch's collection takes
        away, it is nothing that this head needs.
        """
        return self._fork(name, self.manifest.view(source), refs, actor)

    def _fork(
        self,
        name: str,
        view: BranchState,
        refs: Refs,
        actor: str | None,
        kind: RefKind = "branch",
    ) -> str:
        self._check_free(name, refs)
        self.manifest.refs.objects.require_create_only()
        branch_id = new_id()
        try:
            self.manifest.fork(view, name, branch_id, refs.epoch)
        except StorageError as error:
            # A collection may have taken what was just being written for garbage.
            if error.kind != "not_found" or self.manifest.refs.read().epoch == refs.epoch:
                raise
            raise EpochMoved from error
        reach("branch_creating", name)
        ref = Ref(branch_id, view.branch_id, view.state.branch, actor, microseconds_now(), kind)

        is_tried = False

        def named(found: Refs) -> Refs | None:
            nonlocal is_tried
            if found.names.get(name) == ref:
                return None
            # Named by an attempt whose answer got lost, and deleted since.
            if is_tried and self._has_ended(branch_id):
                return None
            is_tried = True
            if found.epoch != refs.epoch:
                raise EpochMoved
            self._check_free(name, found)
            return replace(found, names={**found.names, name: ref})

        self.manifest.refs.change(named, refs)
        reach("branch_created", name)
        return branch_id

    def delete(self, name: str) -> str:
        """Remove a branch; returns its normal name."""
        name = normalise_branch(name)
        if name == MAIN:
            raise BadRequest("main cannot be deleted")
        branch_id = self.manifest.branch_id(name)
        reach("branch_deleting", name)
        self.end(name, branch_id)
        reach("branch_deleted", name)
        return name

    def end(self, name: str, branch_id: str) -> None:
        """End a branch and free its name; goes on where another deletion was cut short."""

        def ended(view: BranchState) -> Head | None:
            return None if view.state.head.ended else replace(view.state.head, ended=True)

        def unnamed(found: Refs) -> Refs | None:
            ref = found.names.get(name)
            if ref is None or ref.id != branch_id:
                return None
            names = {other: ref for other, ref in found.names.items() if other != name}
            return replace(found, names=names)

        # Somebody else may have deleted it since, and it was cleaned up.
        with suppress(BranchNotFound):
            self.manifest.mark(branch_id, ended)
        reach("branch_ended", name)
        self.manifest.refs.change(unnamed)

    def _check_free(self, name: str, refs: Refs) -> None:
        """Refuse a name that a live branch has, or that is a path above or below one."""
        taken = refs.names.get(name)
        if taken is not None and not self._has_ended(taken.id, or_is_gone=True):
            raise Conflict(f"{taken.kind} {name} exists already", details={"branch": name})
        for later, ref in refs.names.items():
            if ref.former == name:
                self._finish_rename(later, ref.id)
        other = path_conflict(name, {MAIN, *refs.names})
        if other is not None:
            raise Conflict(
                f"branch {name} cannot exist beside {other}: one name is a path above the other",
                details={"branch": name, "other": other},
            )

    def _has_ended(self, branch_id: str, *, or_is_gone: bool = False) -> bool:
        try:
            return self.manifest.view_by_id(branch_id).state.head.ended
        except BranchNotFound:
            return or_is_gone
        except StorageError as error:
            # Of one that has no name yet, a collection may have taken a part.
            if error.kind != "not_found" or or_is_gone:
                raise
            return False


def is_missing(manifest: Manifest, name: str) -> bool:
    """Whether a name means no branch that lives."""
    try:
        manifest.view(name)
    except BranchNotFound:
        return True
    return False


Oldest = Callable[[BranchState], str | None]
"""The oldest commit of a branch that can be read from then on; None for all of them."""


def begin_epoch(
    manifest: Manifest,
    branch_id: str,
    oldest: Oldest | None = None,
    on: BranchState | None = None,
) -> BranchState:
    """Begin a new epoch of a branch, unless it has ended; returns its state then.

    ``on`` is what the caller takes for its newest state.
    """

    def begun(view: BranchState) -> Head | None:
        head = view.state.head
        if head.ended:
            return None
        kept = head.oldest_commit_id if oldest is None else oldest(view)
        return replace(head, epoch=head.epoch + 1, oldest_commit_id=kept)

    return manifest.mark(branch_id, begun, on)


def begin_epoch_of_names(manifest: Manifest) -> Refs:
    """Begin a new epoch of the names: no branch is named that was being made before.

    Returns the names at the very moment when it begins.
    """
    return manifest.refs.change(lambda refs: replace(refs, epoch=refs.epoch + 1))


@lru_cache(maxsize=1024)
def normalise_branch(name: str) -> str:
    """The one spelling of a branch name; a name that cannot be one is refused."""
    name = unicodedata.normalize("NFC", name.strip())
    if not name:
        raise BadRequest("a branch name cannot be empty")
    if name.lstrip("/") == SCHEMA_APPLY_LOCK:
        raise BadRequest(f"branch name '{name}' is reserved for the engine")
    complaint = _complaint(name)
    if complaint is not None:
        raise BadRequest(f"'{_shown(name)}' is not a branch name: {complaint}")
    return name


def _complaint(name: str) -> str | None:
    if not all(_is_allowed(character) for character in name):
        return "use letters and digits of any script, and . _ - /"
    length = len(name.encode())
    if length > MAX_BYTES:
        return f"it has {length} bytes, and {MAX_BYTES} is the most"
    if name.startswith("/") or name.endswith("/") or "//" in name:
        return "`/` stands between two parts"
    if "." in name.split("/"):
        return "`.` is not a part"
    if ".." in name:
        return "`..` is not allowed"
    if name.endswith(".lock"):
        return "it cannot end in `.lock`"
    return None


def _is_allowed(character: str) -> bool:
    """Whether it is a letter with its marks, a digit, or one of the few signs."""
    return character in _PUNCTUATION or unicodedata.category(character)[0] in "LMN"


def _shown(name: str) -> str:
    return name if len(name) <= 64 else f"{name[:60]}…"


def path_conflict(name: str, others: Collection[str]) -> str | None:
    """An existing branch that is a path above or below the name, if there is one."""
    parts = name.split("/")
    for length in range(1, len(parts)):
        above = "/".join(parts[:length])
        if above in others:
            return above
    below = f"{name}/"
    # Of a thousand names, one look at a text is many times as fast as one at each.
    if f"\0{below}" not in "\0".join(("", *others)):
        return None
    return next((other for other in others if other.startswith(below)), None)
