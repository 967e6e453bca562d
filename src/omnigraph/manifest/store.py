"""The manifest of one graph: reading its states, and the way in for publishing.

Owns what is known of each branch: keeps the newest state it has seen, and
proves it fresh with one version probe. What a publish does is publisher.py.
"""

from __future__ import annotations

from threading import Lock

from omnigraph.errors import BranchNotFound, ChangeFeedGap, NotFound, StorageError
from omnigraph.manifest.branch_names import native_name
from omnigraph.manifest.changes import PublishRequest
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.publisher import Publisher
from omnigraph.manifest.rows import from_table
from omnigraph.manifest.stamp import check_stamp
from omnigraph.manifest.state import fold
from omnigraph.manifest.view import View, commits_of, find_commit
from omnigraph.storage.headlog import BranchRef, HeadLog
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ControlObjects

MANIFEST_NAME = "__manifest"


class Manifest:
    """Reads and publishes the manifest below one graph root."""

    def __init__(self, root: Location) -> None:
        self.location = root.join(MANIFEST_NAME)
        self.root_objects = ControlObjects(root)
        """The control objects of the graph, on one connection for as long as the handle lives."""
        self._views: dict[str, View] = {}
        self._objects = ControlObjects(self.location)
        self._lock = Lock()

    # -- reading ---------------------------------------------------------------------

    def view(self, branch: str = MAIN) -> View:
        """The newest state of a branch."""
        known = self._views.get(branch)
        if known is not None and self._is_fresh(known):
            return known
        return self.load(branch)

    def view_at(self, commit: Commit) -> View:
        """The state a commit published; ChangeFeedGap when cleanup has reclaimed it."""
        branch = commit.branch or MAIN
        try:
            view = self.view_of(branch, commit.manifest_version)
        except StorageError as error:
            if error.kind != "not_found":
                raise
            if find_commit(self.view(branch), commit.id) is None:
                raise _gone(commit, "its version of the manifest is not there") from error
            raise _reclaimed(commit) from error
        if view.state.head_commit_id != commit.id:
            raise _gone(commit, f"branch {branch} was deleted and created anew")
        return view

    def view_of(self, branch: str, version: int) -> View:
        """The state of a branch at a version of its manifest; a StorageError if there is none."""
        identifier = self.identifier(branch)
        log = HeadLog.open(self.location, native_name(branch), version)
        return self._read(log, branch, identifier)

    def _is_fresh(self, view: View) -> bool:
        branch = view.state.branch
        if self.identifier(branch) != view.identifier:
            return False
        return view.log.latest_version() == view.log.version

    def load(self, branch: str) -> View:
        """The newest state of a branch, read anew."""
        identifier = self.identifier(branch)
        log = HeadLog.open(self.location, native_name(branch))
        view = self._read(log, branch, identifier)
        self.remember(view)
        return view

    def _read(self, log: HeadLog, branch: str, identifier: str | None) -> View:
        check_stamp(log.metadata)
        state = fold(from_table(log.head()), version=log.version, branch=branch)
        return View(log, state, identifier)

    def remember(self, view: View) -> None:
        """Keep a state unless a newer one of the same branch is known."""
        with self._lock:
            known = self._views.get(view.state.branch)
            same = known is not None and known.identifier == view.identifier
            if not same or known is None or known.log.version <= view.log.version:
                self._views[view.state.branch] = view

    # -- lineage ---------------------------------------------------------------------

    def commits(self, branch: str = MAIN) -> list[Commit]:
        """The commits reachable on a branch, newest first."""
        return commits_of(self.view(branch))

    def find_commit(self, commit_id: str) -> Commit:
        """A commit of any branch by its id."""
        for branch in (MAIN, *sorted(self.branches())):
            try:
                view = self.view(branch)
            except BranchNotFound:
                continue  # deleted since it was listed
            commit = find_commit(view, commit_id)
            if commit is not None:
                return commit
        raise NotFound(f"there is no commit {commit_id}", details={"commit_id": commit_id})

    # -- publishing --------------------------------------------------------------------

    def publish(self, branch: str, request: PublishRequest) -> View:
        """Make a request visible in one step, or say why not."""
        return Publisher(self, branch, request).run()

    def known(self, branch: str) -> View | None:
        """The newest state seen of a branch, which may be out of date."""
        return self._views.get(branch)

    # -- branches --------------------------------------------------------------------

    def branches(self) -> dict[str, BranchRef]:
        """The branches besides main, by name."""
        return self._main_log().branches()

    def create_branch(self, name: str, source: str) -> None:
        """Fork a branch from the head of another."""
        view = self.view(source)
        view.log.create_branch(name)

    def delete_branch(self, name: str) -> None:
        """Remove a branch; what other branches share with it stays."""
        self._main_log().delete_branch(name)
        with self._lock:
            self._views.pop(name, None)

    def has_storage_of(self, name: str) -> bool:
        """Whether storage holds something for a branch: it exists, or is just being made."""
        try:
            HeadLog.open(self.location, native_name(name))
        except StorageError as error:
            if error.kind == "not_found":
                return False
            raise
        return True

    def _main_log(self) -> HeadLog:
        known = self._views.get(MAIN)
        return known.log if known is not None else HeadLog.open(self.location)

    def identifier(self, branch: str) -> str | None:
        """What tells the branch of this name from others; None for main, which never changes."""
        if branch == MAIN:
            return None
        reference = HeadLog.find_branch(self._objects, branch) or self.branches().get(branch)
        if reference is None:
            raise BranchNotFound(f"there is no branch {branch}", details={"branch": branch})
        return reference.identifier


def _gone(commit: Commit, reason: str) -> NotFound:
    return NotFound(f"commit {commit.id} is gone: {reason}", details={"commit_id": commit.id})


def _reclaimed(commit: Commit) -> ChangeFeedGap:
    return ChangeFeedGap(
        f"commit {commit.id} is listed, but cleanup has reclaimed what it showed: read a newer "
        "commit or the branch as it is now, and let cleanup keep more commits in future",
        details={"first_unreadable_commit_id": commit.id, "commit_id": commit.id},
    )
