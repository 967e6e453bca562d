"""Changes whose rows are in memory: mutations, and loads in this process.

Owns how a change set is checked and staged. What is in it is up to the kind of write.
"""

from __future__ import annotations

from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.change.protocol import Change, Effects, R_co, WriteTxn
from omnigraph.write.publish.staging import stage
from omnigraph.write.rules.check import check_changes
from omnigraph.write.rules.evaluation import Evaluation


class RowsChange(Change[R_co]):
    """A change set on its way; ``changes`` is None until it was prepared."""

    changes: ChangeSet | None

    @property
    def prepared(self) -> ChangeSet:
        """The change set."""
        if self.changes is None:
            raise AssertionError("a write is prepared before it is published")
        return self.changes

    @property
    def repeatable(self) -> bool:
        """As the statements or the mode say."""
        return self.prepared.repeatable

    def check(self, txn: WriteTxn) -> None:
        """Every rule of the schema."""
        check_changes(Evaluation(self.prepared, txn.base, txn.reads))

    def stage(self, txn: WriteTxn) -> Effects:
        """All touched tables, in parallel."""
        base, files = txn.base, txn.files
        files.begin(self.prepared.types, base, self.prepared.size)
        effects = stage(self.prepared, base, files.stamp)
        files.name({effect.type_key: effect.written.files for effect in effects}, base)
        return effects
