"""Branch references: listing, creating and deleting them, with every refusal.

Owns the rules. A branch is a native branch of the manifest and costs nothing
else; names are normalised here, once, before anything is decided.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import BadRequest, BranchNotFound, Conflict, StorageError
from omnigraph.manifest.branch_names import SCHEMA_APPLY_LOCK, normalise_branch, path_conflict
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.store import Manifest
from omnigraph.storage.faults import reach


@dataclass(frozen=True, slots=True)
class BranchRefs:
    """The branches of one manifest."""

    manifest: Manifest

    def list(self) -> list[str]:
        """Every public branch by name, main included."""
        return sorted([MAIN, *(name for name in self.manifest.branches() if _is_public(name))])

    def create(self, name: str, source: str = MAIN) -> str:
        """Fork a branch from the head of another; returns its normal name."""
        name, source = normalise_branch(name), normalise_branch(source)
        if name == MAIN:
            raise BadRequest("main exists always and cannot be created")
        known = self.manifest.branches()
        if name in known:
            raise _exists(name)
        if source != MAIN and source not in known:
            raise _missing(source)
        other = path_conflict(name, [MAIN, *known])
        if other is not None:
            raise Conflict(
                f"branch {name} cannot exist beside {other}: one name is a path above the other",
                details={"branch": name, "other": other},
            )
        reach("branch_creating", name)
        try:
            self.manifest.create_branch(name, source)
        except StorageError as error:
            # Of two creators one wins; the other finds the branch there, or half of it.
            if self.manifest.has_storage_of(name):
                raise _exists(name) from error
            raise
        reach("branch_created", name)
        return name

    def delete(self, name: str) -> str:
        """Remove a branch; returns its normal name."""
        name = normalise_branch(name)
        if name == MAIN:
            raise BadRequest("main cannot be deleted")
        self._check_unused(name)
        reach("branch_deleting", name)
        try:
            self.manifest.delete_branch(name)
        except StorageError:
            # Somebody may have deleted it first, or forked from it.
            self._check_unused(name)
            raise
        reach("branch_deleted", name)
        return name

    def _check_unused(self, name: str) -> None:
        known = self.manifest.branches()
        if name not in known:
            raise _missing(name)
        children = [other for other in known if other.startswith(f"{name}/")]
        descendants = [other for other, ref in known.items() if ref.parent == name]
        if children or descendants:
            others = sorted({*children, *descendants})
            raise Conflict(
                f"branch {name} cannot be deleted while {', '.join(others)} depend on it",
                details={"branch": name, "dependents": others},
            )


def _is_public(name: str) -> bool:
    return name != SCHEMA_APPLY_LOCK


def _missing(name: str) -> BranchNotFound:
    return BranchNotFound(f"there is no branch {name}", details={"branch": name})


def _exists(name: str) -> Conflict:
    return Conflict(f"branch {name} exists already or is being created", details={"branch": name})
