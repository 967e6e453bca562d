"""The smallest change: it asks the manifest for what it is told, and for nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import omnigraph as og
from omnigraph.manifest.entries import Commit, SchemaContract
from omnigraph.manifest.publish_request import DropTable, PendingCommit, PublishRequest, TableChange
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Target, run
from omnigraph.write.recovery.intents import WriterKind
from tests.faults import reach


@dataclass(slots=True)
class Asked(Change[Commit | None]):
    """A change of tables and of the schema that stages nothing."""

    kind: ClassVar[WriterKind] = "SchemaApply"

    changes: tuple[TableChange, ...] = ()
    schema: SchemaContract | None = None
    dropped: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=lambda: {"operation": "asked"})
    commit: PendingCommit = field(default_factory=lambda: PendingCommit.mint("asker"))
    prepared: int = 0

    def prepare(self, txn: WriteTxn) -> bool:
        self.prepared += 1
        txn.reads.depend_on("edge:Knows")
        return True

    def stage(self, txn: WriteTxn) -> Effects:
        txn.files.begin(txn.base.snapshot.tables, txn.base)
        reach("table_staged", "nothing")
        return ()

    def publish(self, base: Base, effects: Effects) -> PublishRequest:
        request = Change.publish(self, base, effects)
        dropped = [base.table(key) for key in self.dropped]
        drops = tuple(DropTable(found.identity, found.version) for found in dropped)
        return replace(request, changes=(*self.changes, *drops), schema=self.schema)

    def result(self, written: WriteOutcome) -> Commit | None:
        return written.commit


def ask(graph: og.Graph, asked: Asked, branch: str = "main") -> Commit:
    """Run it; it makes a commit."""
    commit = run(asked, Target(graph.location, graph.manifest, branch))
    assert commit is not None
    return commit
