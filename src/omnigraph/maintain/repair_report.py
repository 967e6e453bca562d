"""What repairing a graph did, or would do, and what cannot be mended. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from omnigraph.maintain.verify.report import VerifyReport

Classification = Literal["no_drift", "foreign_drift"]
Action = Literal["none", "rebuild_indexes"]


@dataclass(frozen=True, slots=True)
class DatasetRepair:
    """One table of main: whether others have written to it, and what is done about its indexes."""

    type_key: str
    published_dataset_version: int
    lance_head_version: int
    classification: Classification
    action: Action = "none"
    operations: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Rescue:
    """A branch that has lost something, and the newest of its commits that is whole.

    ``kept_as`` is the branch that was made of it.
    """

    branch: str
    commit_id: str | None
    kept_as: str | None = None


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was mended, or for a preview what would be, and what cannot be."""

    confirm: bool
    graph_manifest_version: int | None
    datasets: tuple[DatasetRepair, ...] = ()
    repaired: tuple[str, ...] = ()
    """What was done besides, or would be, in words."""
    rescues: tuple[Rescue, ...] = ()
    found: VerifyReport = field(default_factory=lambda: VerifyReport(deep=False))

    @property
    def is_whole(self) -> bool:
        """Whether nothing is lost that cannot be made again."""
        return not self.rescues
