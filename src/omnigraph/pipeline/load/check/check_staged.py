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
import pyarrow.compute as pc

from omnigraph.errors import KeyConflict, OmniGraphError, ValidationError
from omnigraph.pipeline.load.check.explain import Explained, ExplainJob, explain, late_rows
from omnigraph.pipeline.load.check.key_source import RowList, addresses_in, rows_in
from omnigraph.pipeline.load.check.left_out import REJECTED, RejectedRows, keep_rejected
from omnigraph.pipeline.load.check.set_rules import CheckRound, SetRules
from omnigraph.pipeline.load.check.wrong_rows import ENTITY, MESSAGE, SetRule, WrongRows
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.stage_input import Staged, added
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.pipeline.task_runner import TaskRunner
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.storage.tables.write_rows import WrittenRows, write_rows
from omnigraph.write.change.results import RejectSample
from omnigraph.write.load.operation import LoadOptions
from omnigraph.write.load.rejects import copy_rejects, samples_of, too_many
from omnigraph.write.load.skip_rounds import skip_rounds
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import has_blobs
from omnigraph.write.rules.violations import SHOWN, Violation, report

OF_EACH_KIND = SHOWN
EVERY = 1 << 62
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
    samples: tuple[RejectSample, ...] = ()


def check_staged(staged: Staged, base: Base, options: LoadOptions, runner: TaskRunner) -> Checked:
    """Leave out rows until nothing is wrong, or stop at the first thing that is."""
    fails = options.on_error == "fail"
    if fails and staged.codes:
        raise _refusal(_explained(staged, RejectedRows(), runner, of_each=SHOWN), staged.codes)
    area, left_out = staged.job.area, RejectedRows()
    tells = options.rejects is not None or options.max_rejects is not None
    rules = SetRules(
        runner.run,
        area,
        base,
        staged.types,
        options.mode,
        staged.touched,
        shown=SHOWN if fails else EVERY if tells else 0,
        lists_all=not fails,
        share=runner.share,
    )

    def leave_out(found: CheckRound) -> None:
        strays = [one for one in found.wrong if one.strays]
        if fails:
            blamed = _first_wrong(area, [one for one in found.wrong if not one.strays])
            explained = _explained(staged, blamed, runner)
            raise _refusal(explained, _counts(found.wrong), found.wrong, area)
        if strays:
            raise _refusal([], _counts(strays), strays, area)
        left_out.reject(runner.run, area, found.wrong)

    found = skip_rounds(lambda: rules.look(left_out), leave_out)
    codes = dict(sorted(added([staged.codes, left_out.counts()]).items()))
    if not codes:
        return Checked(found, left_out, codes, None)
    listed, samples = _list_rejects(staged, left_out, codes, options, runner)
    return Checked(found, left_out, codes, listed, samples)


def _rule(found: WrongRows) -> SetRule:
    if found.rule is None:
        raise AssertionError("what is wrong breaks a rule")
    return found.rule


def _counts(wrong: Sequence[WrongRows]) -> dict[str, int]:
    return added({_rule(one).code: one.count} for one in wrong)


def _first_wrong(area: StagingArea, wrong: Sequence[WrongRows]) -> RejectedRows:
    """The first rows of each kind, as if they alone were left out."""
    room: Counter[str] = Counter()
    known: dict[str, list[int]] = {}
    places: dict[tuple[str, int], list[pa.Table]] = {}
    first = RejectedRows()
    for one in sorted(wrong, key=lambda one: (_rule(one).order, one.group)):
        rule = _rule(one)
        if room[rule.code] >= SHOWN:
            continue
        rows = one.read(area)
        told = known.setdefault(rule.type_key, [])
        fresh = pc.invert(pc.is_in(rows.column(ROW_ADDRESS), pa.array(told, pa.uint64())))
        rows = rows.filter(fresh).slice(0, SHOWN - room[rule.code])
        if rows.num_rows:
            room[rule.code] += rows.num_rows
            told += rows.column(ROW_ADDRESS).to_pylist()
            first.rules[rule.order] = rule
            orders = pa.array([rule.order] * rows.num_rows, pa.int64())
            table = pa.table([rows.column(ROW_ADDRESS), orders, rows.column(MESSAGE)], REJECTED)
            places.setdefault((rule.type_key, one.group), []).append(table)
    for (key, group), tables in places.items():
        part = keep_rejected(area, pa.concat_tables(tables), first.rules)
        first.rejected.setdefault(key, {})[group] = part
    return first


def _explained(
    staged: Staged, left_out: RejectedRows, runner: TaskRunner, *, of_each: int | None = None
) -> list[Explained]:
    """The rows that are wrong by themselves and those left out, with file and line.

    Where so many ``of_each`` kind are enough, only the first splits are read that have them.
    """
    late = late_rows(left_out, staged.types)
    before, early = staged.first_lines(), staged.rejecting
    chosen = {*late, *early}
    if of_each is not None:
        chosen = set(late) | staged.first_rejecting(of_each)
    jobs = [
        ExplainJob(
            staged.job,
            split,
            before[split.number],
            tuple(late.get(split.number, ())),
            left_out.rules,
        )
        for split in staged.splits
        if split.number in chosen
    ]
    return runner.run("explain", explain, jobs)


def _list_rejects(
    staged: Staged,
    left_out: RejectedRows,
    codes: dict[str, int],
    options: LoadOptions,
    runner: TaskRunner,
) -> tuple[str | None, tuple[RejectSample, ...]]:
    """Write down what was left out; too much is an error, and listed all the same."""
    limit, listed = options.max_rejects, None
    is_too_much = limit is not None and sum(codes.values()) > limit
    if options.rejects is None and options.report is None and not is_too_much:
        return None, ()
    explained = _explained(staged, left_out, runner)
    if options.rejects is not None:
        area = staged.job.area
        texts = (area.read_bytes(found.file) for found in explained)
        listed = str(copy_rejects(options.rejects, area.operation_id, texts))
    if limit is not None and is_too_much:
        raise too_many(limit, codes, [one for found in explained for one in found.first])
    return listed, samples_of(one for found in explained for one in found.first)


def _refusal(
    explained: Sequence[Explained],
    codes: Mapping[str, int],
    wrong: Sequence[WrongRows] = (),
    area: StagingArea | None = None,
) -> OmniGraphError:
    """What is raised for rows that are wrong; stored rows have no line."""
    found = [reject.as_violation() for one in explained for reject in one.first]
    if area is not None:
        found += _stored(area, [one for one in wrong if one.strays])
    shown = _first_of_each_kind(_in_order(found, wrong))
    total = sum(codes.values())
    listed = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    summary = f"{total} problems ({listed})" if total > 1 else None
    text = report(shown, total, summary)
    details: dict[str, Any] = {
        "total": total,
        "codes": dict(codes),
        "violations": [violation.body() for violation in shown],
    }
    if set(codes) == {"key_conflict"}:
        details["type_key"] = shown[0].type_key
        return KeyConflict(text, details=details)
    return ValidationError(text, rule=shown[0].rule, details=details)


def _in_order(found: Sequence[Violation], wrong: Sequence[WrongRows]) -> list[Violation]:
    """By rule and then by line; what cannot be read comes before values that break a rule."""
    orders = {
        (rule.type_key, rule.code, rule.property): rule.order
        for rule in sorted(map(_rule, wrong), key=lambda rule: -rule.order)
    }

    def place(violation: Violation) -> tuple[int, str, int]:
        key = violation.type_key or ""
        if wrong:
            return orders[key, violation.rule, violation.property or ""], "", 0
        if violation.rule not in _VALUES:
            return -1, "", 0
        return 0, key.partition(":")[2], _VALUES.index(violation.rule)

    return sorted(found, key=place)


def _stored(area: StagingArea, strays: Sequence[WrongRows]) -> list[Violation]:
    """Stored rows that would be wrong, the first of each kind."""
    found: list[Violation] = []
    told: Counter[str] = Counter()
    for one in sorted(strays, key=lambda one: (_rule(one).order, one.group)):
        rule = _rule(one)
        if told[rule.code] >= SHOWN:
            continue
        rows = one.read(area)
        told[rule.code] += rows.num_rows
        messages, entities = rows.column(MESSAGE).to_pylist(), rows.column(ENTITY).to_pylist()
        found += (
            Violation(rule.code, message, rule.type_key, rule.property, entity)
            for message, entity in zip(messages, entities, strict=True)
            if message is not None
        )
    return found


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
    """One fragment, and the lists of rows to leave out of its group."""

    table: Table
    part: FragmentPart
    left_out: tuple[RowList, ...]


def rewrite(job: RewriteJob) -> WrittenRows | None:
    """The fragment without those rows, None if it has none; nothing is written of no rows."""
    gone = rows_in(addresses_in(job.left_out), job.part.number)
    if not len(gone):
        return None
    names = tuple(job.table.schema.names)
    blobs = has_blobs(job.table.schema)
    batches = list(stream_parts(job.table, names, (job.part,), with_blobs=blobs))
    kept = np.ones(job.part.rows, dtype=bool)
    kept[gone] = False
    rows = pa.Table.from_batches(batches).filter(pa.array(kept))
    return write_rows(job.table, None, rows)


def rewrites(staged: StagedType, left_out: RejectedRows, area: StagingArea) -> list[RewriteJob]:
    """The fragments of a type that may hold rows that were left out."""
    jobs = []
    for at, group in enumerate(staged.groups):
        lists = left_out.lists(area, staged.type_key, at)
        jobs += [RewriteJob(staged.table, part, lists) for part in group.parts if lists]
    return jobs


def resolved(staged: StagedType, rewritten: Mapping[int, WrittenRows]) -> tuple[WrittenRows, ...]:
    """The files of a type in order, with those that were written again in place of the old."""
    return tuple(
        rewritten.get(part.number, rows.written)
        for part, rows in zip(staged.parts, staged.rows, strict=True)
    )
