"""The branches and tags of a session: the names that a graph gives to its commits.

Owns their public methods, each written once. The rules are those of the manifest and of history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.errors import BranchNotFound, Conflict, OmniGraphError
from omnigraph.graph.access import Surface, action, began_at, made_on, shows_the_same
from omnigraph.history.merge.conflicts import MergeResult, Resolve
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.revisions import commit_to_begin_at, find_revision
from omnigraph.manifest.root_copies import refresh_copies

if TYPE_CHECKING:
    from omnigraph.history.merge.replay import Verb


class Branches(Surface):
    """The branches of a graph."""

    @action("read", hides=True)
    def list(self) -> list[str]:
        """Every branch by name, main included.

        >>> graph.branches.list()
        ['draft', 'main']
        """
        return self._refs().list()

    @action("branch_create", branch=began_at("from_branch"), target="name", hides=shows_the_same)
    def create(self, name: str, from_branch: str = MAIN, actor: str | None = None) -> str:
        """Fork a branch from the head of another, or from any commit; returns its normal name.

        >>> graph.branches.create("review")
        'review'
        >>> graph.branches.create("before", from_branch="main~1")
        'before'
        """
        manifest, actor = self._access.handle.manifest, actor or self._access.actor
        commit = commit_to_begin_at(manifest, from_branch)
        if commit is not None:
            return self._refs().keep(name, commit.id, actor)
        return self._refs().create(name, from_branch, actor)

    @action("branch_create", branch="old", target="new", hides=shows_the_same)
    @action("branch_delete", target="old", hides=True)
    def rename(self, old: str, new: str, actor: str | None = None) -> str:  # noqa: ARG002 - see below
        """Give a branch another name, under which it goes on; returns its normal name.

        Names record nobody; ``actor`` is who has to be allowed to do it.

        >>> graph.branches.rename("draft", "review")
        'review'
        """
        return self._refs().rename(old, new)

    @action("read", branch=made_on("to"))
    @action("change", branch="name", dry_run_looks=True)
    @action("branch_delete", target="name", dry_run_looks=True)
    def reset(
        self,
        name: str,
        to: str,
        *,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult:
        """Have a branch show what a commit showed, schema and all, as one new commit.

        Nothing of its history goes: what it is put back from is one commit before.

        >>> graph.branches.reset("draft", to="main").outcome
        'reset'
        """
        return self._replay(
            "reset", to, name, dry_run=dry_run, run_id=run_id, message=message, actor=actor
        )

    @action("read", branch=made_on("commit"))
    @action("change", branch="onto", dry_run_looks=True)
    def revert(
        self,
        commit: str,
        onto: str = MAIN,
        *,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult:
        """Undo on a branch what one commit did, as a new commit; conflicts are as in a merge.

        A merge is undone as a whole: back to what its branch was before it.

        >>> graph.branches.revert("draft", onto="draft").outcome
        'reverted'
        """
        return self._replay(
            "revert",
            commit,
            onto,
            resolve=resolve,
            dry_run=dry_run,
            run_id=run_id,
            message=message,
            actor=actor,
        )

    @action("read", branch=made_on("commit"))
    @action("change", branch="onto", dry_run_looks=True)
    def cherry_pick(
        self,
        commit: str,
        onto: str = MAIN,
        *,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult:
        """Do on a branch what one commit did elsewhere; conflicts are as in a merge.

        Of a merge that is all it brought to its branch.

        >>> graph.branches.cherry_pick("draft", onto="main").outcome
        'picked'
        """
        return self._replay(
            "cherry_pick",
            commit,
            onto,
            resolve=resolve,
            dry_run=dry_run,
            run_id=run_id,
            message=message,
            actor=actor,
        )

    @action("branch_delete", target="name", hides=True)
    def delete(self, name: str, actor: str | None = None) -> str:  # noqa: ARG002 - see below
        """Remove a branch; commits that only it had are gone. Returns its normal name.

        A name that is gone records nobody; ``actor`` is who has to be allowed to do it.

        >>> graph.branches.delete("draft")
        'draft'
        """
        return self._refs().delete(name)

    @action("branch_merge", branch="source", target="into", dry_run_looks=True)
    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        delete_source: bool = False,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult:
        """Merge a branch into another, as one commit with two parents.

        ``resolve`` says which side wins in a conflict: `"source"` or `"target"`, or a mapping
        from kinds of conflict, or entities such as `"Person:ann"`, to a side. Conflicts that it
        does not settle raise `MergeConflicts`, all of them at once, and nothing is merged. A
        ``dry_run`` changes nothing and returns them. ``delete_source`` deletes the source
        afterwards; should that fail, the result says why. A merge that is repeated under its
        ``run_id`` gives the first result, whatever became of the source since.

        >>> done = graph.mutate('create Film { title: "Speed", year: 1994 }')
        >>> merged = graph.branches.merge("draft", delete_source=True, message="The right year")
        >>> merged.outcome, merged.commit.message, graph.branches.list()
        ('merged', 'The right year', ['main'])
        """
        from omnigraph.history.merge.operation import merge_branch

        result = merge_branch(
            self._access.handle,
            source,
            into,
            resolve=resolve,
            delete_source=delete_source,
            dry_run=dry_run,
            run_id=run_id,
            message=message,
            actor=actor or self._access.actor,
        )
        self._mend_copies(result)
        if not delete_source or result.is_dry_run:
            return result
        try:
            if not result.repeats_run or self._is_left(result):
                self.delete(result.source, actor)
        except OmniGraphError as error:
            return result.with_deletion(error.message)
        return result.with_deletion(None)

    def _replay(
        self,
        verb: Verb,
        commit: str,
        onto: str,
        *,
        resolve: Resolve = None,
        dry_run: bool,
        run_id: str | None,
        message: str | None,
        actor: str | None,
    ) -> MergeResult:
        from omnigraph.history.merge.replay import replay

        handle = self._access.handle
        result = replay(
            handle,
            verb,
            find_revision(handle.manifest, commit),
            onto,
            resolve=resolve,
            dry_run=dry_run,
            run_id=run_id,
            message=message,
            actor=actor or self._access.actor,
        )
        self._mend_copies(result)
        return result

    def _mend_copies(self, result: MergeResult) -> None:
        """The copies of the schema in the root, where main has another one now."""
        if result.commit is not None and result.target == MAIN and result.schema.steps:
            handle = self._access.handle
            refresh_copies(handle.location, handle.manifest.view(MAIN).state.schema)

    def _is_left(self, merged: MergeResult) -> bool:
        """Whether the source of a merge is there still that was to be deleted after it.

        Another branch may have its name by now; and what was written to it since then must
        not go with it.
        """
        try:
            view = self._access.handle.manifest.view(merged.source)
        except BranchNotFound:
            return False
        if view.branch_id != merged.source_id:
            return False
        commit = merged.commit
        if commit is not None and view.state.head_commit_id != commit.merged_parent_id:
            raise Conflict(f"branch {merged.source} has commits that this merge did not bring")
        return True

    def _refs(self) -> BranchRefs:
        return BranchRefs(self._access.handle.manifest)


class Tags(Surface):
    """The tags of a graph: names of commits, which cleanup leaves readable."""

    @action("read", hides=True)
    def list(self) -> dict[str, str]:
        """Every tag by name, with the id of its commit.

        >>> done = graph.tags.create("v1")
        >>> list(graph.tags.list())
        ['v1']
        """
        manifest = self._access.handle.manifest
        views = ((name, manifest.tag(name)) for name in self._refs().tags())
        return {name: view.state.head_commit_id for name, view in views if view is not None}

    @action("branch_create", branch=made_on("ref"), target="name", hides=shows_the_same)
    def create(self, name: str, ref: str = MAIN, actor: str | None = None) -> str:
        """Name a commit, which stays readable as long as it has a tag; returns the normal name.

        >>> graph.tags.create("v1", "main~1")
        'v1'
        >>> graph.query("match { $f: Film } return { $f.title }", snapshot="v1").rows
        []
        """
        commit = find_revision(self._access.handle.manifest, ref)
        return self._refs().tag(name, commit.id, actor or self._access.actor)

    @action("branch_delete", target="name", hides=True)
    def delete(self, name: str, actor: str | None = None) -> str:  # noqa: ARG002 - see below
        """Remove a tag; returns its normal name.

        A name that is gone records nobody; ``actor`` is who has to be allowed to do it.

        >>> done = graph.tags.create("v1")
        >>> graph.tags.delete("v1")
        'v1'
        """
        return self._refs().untag(name)

    def _refs(self) -> BranchRefs:
        return BranchRefs(self._access.handle.manifest)
