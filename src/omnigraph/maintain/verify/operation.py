"""Verifying a graph: everything that is published and kept, looked at in storage itself.

Owns the order, the verdict on every branch, and that nothing is called damage which a cleanup
or a deletion has removed meanwhile: then all is looked at again. Must never write.
"""

from __future__ import annotations

from omnigraph.errors import NotFound, OmniGraphError, StorageError
from omnigraph.maintain.verify.files import FileCheck
from omnigraph.maintain.verify.indexes import IndexCheck
from omnigraph.maintain.verify.lineage import BranchLook, Lineage
from omnigraph.maintain.verify.report import (
    BranchVerdict,
    Finding,
    Looked,
    VerifyReport,
)
from omnigraph.maintain.verify.rows import RowCheck
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.root_copies import lagging_copies
from omnigraph.manifest.snapshot import MANIFEST_NAME
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import reading_storage
from omnigraph.write.recovery.intents import DIRECTORY, REVOKED, microseconds, parse_intent
from omnigraph.write.recovery.sweep import MARGIN

ATTEMPTS = 5


def verify(root: Location, *, deep: bool = False, branch: str | None = None) -> VerifyReport:
    """Look at all branches of a graph, or at one; what is damaged is told and not raised."""
    only = None if branch is None else normalise_branch(branch)
    _require_graph(root)
    with reading_storage():
        report, lineage = _look(root, deep=deep, only=only)
        for _ in range(ATTEMPTS - 1):
            if report.is_sound or not lineage.has_moved():
                break
            report, lineage = _look(root, deep=deep, only=only)
    return report


def _require_graph(root: Location) -> None:
    if next(ControlObjects(root).walk(MANIFEST_NAME), None) is None:
        raise NotFound(f"there is no graph at {root}")


def _look(root: Location, *, deep: bool, only: str | None) -> tuple[VerifyReport, Lineage]:
    lineage = Lineage.of(Manifest(root), only)
    files = FileCheck(root, lineage, deep)
    files.run()
    rows = RowCheck(root, lineage)
    rows.run()
    indexes = IndexCheck(lineage, deep, rows.readable)
    indexes.run()
    _look_beside(root, lineage)
    findings = tuple(sorted(lineage.findings, key=_order))
    looked = Looked(
        len(lineage.branches),
        len(lineage.commits),
        files.versions,
        files.files,
        rows.rows,
        indexes.values,
        files.checksums,
        files.unverified,
    )
    verdicts = tuple(_verdict(branch, lineage, findings) for branch in lineage.branches)
    return VerifyReport(deep, findings, verdicts, looked), lineage


def _order(finding: Finding) -> tuple[bool, str, str, str]:
    return finding.severity == "note", finding.kind, finding.path or "", finding.message


def _verdict(branch: BranchLook, lineage: Lineage, findings: tuple[Finding, ...]) -> BranchVerdict:
    damage = [one for one in findings if one.severity == "damage" and branch.name in one.branches]
    head = None if branch.view is None else branch.view.state.head_commit_id
    hurt = lineage.hurt
    whole = next((one.id for one in branch.line if one.id not in hurt), None)
    return BranchVerdict(branch.name, not damage, head, whole, len(branch.line))


# -- beside the manifest -----------------------------------------------------------------


def _look_beside(root: Location, lineage: Lineage) -> None:
    """Copies of the schema, and the intents of writers that are gone."""
    objects = ControlObjects(root)
    main = next((one.view for one in lineage.branches if one.name == MAIN), None)
    try:
        if main is not None:
            for name in lagging_copies(objects, main.state.schema):
                text = f"{name} is not what the manifest says: opening the graph rewrites it"
                lineage.report(Finding("copy_lags", text, name))
        _look_at_intents(objects, lineage)
    except StorageError as error:
        text = f"the files beside the manifest cannot be read: {error.message}"
        lineage.report(Finding("intent_unreadable", text, DIRECTORY))


def _look_at_intents(objects: ControlObjects, lineage: Lineage) -> None:
    names = objects.list(DIRECTORY)
    for name in names:
        if name.endswith(REVOKED) or not name.endswith(".json"):
            continue
        data = objects.read(name)
        if data is None:
            continue
        try:
            intent = parse_intent(name, data)
        except OmniGraphError as error:
            lineage.report(Finding("intent_unreadable", error.message, name))
            continue
        if intent.expires_at + microseconds(MARGIN) < microseconds_now():
            text = (
                f"operation {intent.operation_id} ({intent.writer_kind}) has died: opening the "
                "graph finishes its story"
            )
            lineage.report(Finding("intent_expired", text, name))
