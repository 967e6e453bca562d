"""Access: one graph as one actor may use it.

Owns the one decision whether an actor may do something, and the way from a branch or a commit
to the snapshot and the types that a session sees. Never changes anything by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from omnigraph.errors import PolicyDenied, StorageError
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.catalogs import catalog_of
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.graph_handle import GraphHandle
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.write.publish.driver import Target

ATTEMPTS = 8
T = TypeVar("T")

Action = Literal[
    "read",
    "export",
    "change",
    "branch_create",
    "branch_delete",
    "branch_merge",
    "schema_apply",
    "invoke_query",
    "admin",
]
"""What can be allowed or denied."""


class Policy(Protocol):
    """Who may do what."""

    def authorize(self, actor: str, action: Action, branch: str | None, target: str | None) -> None:
        """Return if it is allowed; raise `PolicyDenied` if not.

        ``branch`` is where something is read or changed, ``target`` the branch that is made,
        deleted or merged into. Names are normalised; None is an action on no single branch.
        """


@dataclass(frozen=True, slots=True)
class Access:
    """A handle, who uses it, and what that actor is bound by; without a policy by nothing."""

    handle: GraphHandle
    actor: str | None = None
    policy: Policy | None = None

    def authorize(self, action: Action, branch: str | None, target: str | None) -> None:
        """Ask the policy; where there is one, nobody acts without a name."""
        if self.policy is None:
            return
        if self.actor is None:
            raise PolicyDenied(f"policy denied action '{action}': nobody is named as its actor")
        self.policy.authorize(self.actor, action, branch, target)

    # -- what is shown ---------------------------------------------------------------

    def view(self, branch: str = MAIN, commit: str | None = None) -> tuple[Snapshot, Catalog]:
        """What a branch shows now, or what a commit showed, and the types to read it with."""
        shown = self.snapshot(branch, commit)
        # Old data is read with the schema of today.
        return shown, catalog_of(shown.schema) if commit is None else self.catalog

    def snapshot(self, branch: str = MAIN, commit: str | None = None) -> Snapshot:
        """The same without the types."""
        manifest = self.handle.manifest
        if commit is not None:
            return manifest.view_at(manifest.find_commit(commit)).snapshot
        return manifest.view(normalise_branch(branch)).snapshot

    @property
    def catalog(self) -> Catalog:
        """The types of today."""
        return catalog_of(self.handle.manifest.view().state.schema)

    def read(
        self,
        work: Callable[[Snapshot, Catalog], T],
        branch: str = MAIN,
        commit: str | None = None,
    ) -> T:
        """Read what a branch shows now, or what a commit showed.

        A cleanup may take away what is being read, if nobody has given readers time: then a
        branch is read again as it is by then, and of a commit it is said that it is gone.
        """
        for _ in range(ATTEMPTS):
            shown, catalog = self.view(branch, commit)
            try:
                return work(shown, catalog)
            except StorageError as error:
                if error.kind != "not_found" or self._shows(shown, branch, commit):
                    raise
        return work(*self.view(branch, commit))

    def _shows(self, shown: Snapshot, branch: str, commit: str | None) -> bool:
        """Whether a state that was read is what there is to read; told when it was reclaimed."""
        if commit is None:
            return self.snapshot(branch).commit_id == shown.commit_id
        manifest = self.handle.manifest
        manifest.require_retained(manifest.find_commit(commit))
        return True

    # -- what is changed -------------------------------------------------------------

    def target(
        self, branch: str, *, if_commit: str | None = None, fork_from: str | None = None
    ) -> Target:
        """Where a change goes: a branch, which is forked from another if that is given."""
        base = None if fork_from is None else normalise_branch(fork_from)
        handle = self.handle
        return Target(
            handle.location, handle.manifest, normalise_branch(branch), if_commit, fork_from=base
        )
