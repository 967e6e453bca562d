"""Checking what was staged: rounds until nothing is wrong, and files written again without rejects.

Owns when a load is refused. The rules are those of set_rules.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import KeyConflict, OmniGraphError, ValidationError
from omnigraph.pipeline.load.check.key_index import Rows
from omnigraph.pipeline.load.check.set_rules import CheckRound, SetRules
from omnigraph.pipeline.load.check.violations import (
    EVERY,
    Explained,
    ExplainJob,
    RejectedRows,
    RuleViolations,
    explain,
    first_messages,
    late_rows,
)
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.stage_input import Staged, added
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.pipeline.spark.tasks import TaskRunner
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.write_rows import WrittenRows, write_rows
from omnigraph.write.load.operation import LoadOptions
from omnigraph.write.load.rejects import copy_rejects, too_many
from omnigraph.write.load.skip_rounds import skip_rounds
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import has_blobs
from omnigraph.write.rules.violations import SHOWN, Violation, report

OF_EACH_KIND = 10
_VALUES = ("range", "check", "enum")


@dataclass(frozen=True, slots=True)
class Checked:
    """What is right: all that is staged, but for the rows left out.

    ``codes`` count the rows that were rejected, ``rejects_file`` lists them.
    """

    found: CheckRound
    left_out: RejectedRows
    codes: dict[str, int]
    rejects_file: str | None


def check_staged(staged: Staged, base: Base, options: LoadOptions, runner: TaskRunner) -> Checked:
    """Leave out rows until nothing is wrong, or stop at the first thing that is."""
    fails = options.on_error == "fail"
    if fails and staged.codes:
        raise _refusal(_explained(staged, RejectedRows(), runner), staged.codes)
    area, left_out = staged.job.area, RejectedRows()
    rules = SetRules(
        runner.run,
        area,
        base,
        staged.types,
        options.mode,
        staged.touched,
        SHOWN if fails else EVERY,
    )

    def leave_out(found: CheckRound) -> None:
        verdicts = found.verdicts
        strays = [verdict for verdict in verdicts if verdict.strays]
        if fails:
            blamed = RejectedRows()
            blamed.reject(area, (verdict for verdict in verdicts if not verdict.strays))
            explained = _explained(staged, blamed, runner)
            raise _refusal(explained, _counts(verdicts), verdicts, area)
        if strays:
            raise _refusal([], _counts(strays), strays, area)
        left_out.reject(area, verdicts)

    found = skip_rounds(lambda: rules.look(left_out), leave_out)
    codes = dict(sorted(added([staged.codes, left_out.counts()]).items()))
    listed = _list_rejects(staged, left_out, codes, options, runner) if codes else None
    return Checked(found, left_out, codes, listed)


def _counts(verdicts: Sequence[RuleViolations]) -> dict[str, int]:
    return added({verdict.rule.code: verdict.count} for verdict in verdicts)


def _explained(staged: Staged, left_out: RejectedRows, runner: TaskRunner) -> list[Explained]:
    """The rows that are wrong by themselves and those left out, with file and line."""
    late = late_rows(left_out, staged.types)
    before, early = staged.first_lines(), staged.rejecting
    jobs = [
        ExplainJob(staged.job, split, before[split.number], late.get(split.number, {}))
        for split in staged.splits
        if split.number in late or split.number in early
    ]
    return runner.run("explain", explain, jobs)


def _list_rejects(
    staged: Staged,
    left_out: RejectedRows,
    codes: dict[str, int],
    options: LoadOptions,
    runner: TaskRunner,
) -> str | None:
    """Write down what was left out; too much is an error, and listed all the same."""
    limit, listed = options.max_rejects, None
    is_too_much = limit is not None and sum(codes.values()) > limit
    if options.rejects is None and not is_too_much:
        return None
    explained = _explained(staged, left_out, runner)
    if options.rejects is not None:
        area = staged.job.area
        texts = (area.read_bytes(found.file) for found in explained)
        listed = str(copy_rejects(options.rejects, area.operation_id, texts))
    if limit is not None and is_too_much:
        raise too_many(limit, codes, [one for found in explained for one in found.first])
    return listed


def _refusal(
    explained: Sequence[Explained],
    codes: Mapping[str, int],
    verdicts: Sequence[RuleViolations] = (),
    area: StagingArea | None = None,
) -> OmniGraphError:
    """What is raised for rows that are wrong; those of verdicts on stored rows have no line."""
    found = [reject.as_violation() for one in explained for reject in one.first]
    if area is not None:
        found += _stored(area, [verdict for verdict in verdicts if verdict.strays])
    shown = _first_of_each_kind(_in_order(found, verdicts))
    total = sum(codes.values())
    listed = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    summary = f"{total} problems ({listed})" if total > 1 else None
    text = report(list(map(str, shown)), total, summary)
    details: dict[str, Any] = {
        "total": total,
        "codes": dict(codes),
        "violations": [violation.body() for violation in shown],
    }
    if set(codes) == {"key_conflict"}:
        details["type_key"] = shown[0].type_key
        return KeyConflict(text, details=details)
    return ValidationError(text, rule=shown[0].rule, details=details)


def _in_order(found: Sequence[Violation], verdicts: Sequence[RuleViolations]) -> list[Violation]:
    """By rule and then by line; what cannot be read comes before values that break a rule."""
    orders = {
        (rule.type_key, rule.code, rule.property): rule.order
        for rule in sorted((verdict.rule for verdict in verdicts), key=lambda rule: -rule.order)
    }

    def place(violation: Violation) -> tuple[int, str, int]:
        key = violation.type_key or ""
        if verdicts:
            return orders[key, violation.rule, violation.property or ""], "", 0
        if violation.rule not in _VALUES:
            return -1, "", 0
        return 0, key.partition(":")[2], _VALUES.index(violation.rule)

    return sorted(found, key=place)


def _stored(area: StagingArea, strays: Sequence[RuleViolations]) -> list[Violation]:
    return [
        Violation(one.rule.code, message, one.rule.type_key, one.rule.property, entity)
        for one, rows in first_messages(area, strays)
        for message, entity in zip(
            rows.column("message").to_pylist(), rows.column("entity").to_pylist(), strict=True
        )
        if message is not None
    ]


def _first_of_each_kind(found: Sequence[Violation]) -> list[Violation]:
    """The first few of every code, in their order."""
    seen: Counter[str] = Counter()
    chosen = []
    for violation in found:
        seen[violation.rule] += 1
        if seen[violation.rule] <= OF_EACH_KIND:
            chosen.append(violation)
    return chosen


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """One fragment, and the rows to leave out of it."""

    table: Table
    part: FragmentPart
    left_out: Rows


def rewrite(job: RewriteJob) -> WrittenRows:
    """The fragment without those rows; nothing is written when none are left."""
    names = tuple(job.table.schema.names)
    blobs = has_blobs(job.table.schema)
    batches = list(stream_parts(job.table, names, (job.part,), with_blobs=blobs))
    kept = np.ones(job.part.rows, dtype=bool)
    kept[job.left_out] = False
    rows = pa.Table.from_batches(batches).filter(pa.array(kept))
    return write_rows(job.table, None, rows)


def rewrites(staged: StagedType, left_out: Mapping[int, Rows]) -> list[RewriteJob]:
    """The fragments of a type that hold rows that were left out."""
    return [
        RewriteJob(staged.table, part, left_out[part.number])
        for part in staged.parts
        if part.number in left_out
    ]


def resolved(staged: StagedType, rewritten: Mapping[int, WrittenRows]) -> tuple[WrittenRows, ...]:
    """The files of a type in order, with those that were written again in place of the old."""
    return tuple(
        rewritten.get(part.number, rows.written)
        for part, rows in zip(staged.parts, staged.rows, strict=True)
    )
