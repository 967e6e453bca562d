"""Explaining: rows that were left out, told with their file, line and text.

Owns reading the splits of such rows once more: where a row stands in the input is not kept
while all goes well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from omnigraph.embed.providers import stand_in
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.load.check.violations import RejectedRows, SetRule
from omnigraph.pipeline.load.stage.decode import sifted_blocks
from omnigraph.pipeline.load.stage.messages import StageJob
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.write.change.change_set import type_key
from omnigraph.write.load.rejects import Reject
from omnigraph.write.rules.violations import SourceLocation, Violation

Why = tuple[SetRule, str]


@dataclass(frozen=True, slots=True)
class ExplainJob:
    """One split, and which of its accepted rows were left out later, by type and number.

    ``first_line`` counts the lines of the file before the split. With ``early`` the rows
    that were never accepted are told too.
    """

    job: StageJob
    split: Split
    first_line: int
    late: Mapping[str, Mapping[int, Why]]
    early: bool = True


@dataclass(frozen=True, slots=True)
class Explained:
    """The rejects of a split in the order of their lines: as a file, and the first of them."""

    file: str
    count: int
    first: tuple[Reject, ...]


def explain(job: ExplainJob, shown: int = 100) -> Explained:
    """Tell the rejects of one split."""
    rejects = sorted(_rejects(job), key=lambda reject: reject.line)
    encoder = msgspec.json.Encoder()
    text = b"".join(encoder.encode(reject) + b"\n" for reject in rejects)
    name = job.job.area.write_bytes(f"rejects-{job.split.number}", text)
    return Explained(name, len(rejects), tuple(rejects[:shown]))


def _rejects(job: ExplainJob) -> Iterator[Reject]:
    # The vectors are made and paid for; why a row was left out can be told without them.
    embedder = stand_in(job.job.embedding)
    seen: dict[str, int] = {}
    for block in sifted_blocks(job.split, job.job.catalog, embedder):
        violations = list(block.violations) if job.early else []
        for sifted in block.batches:
            key = type_key(sifted.batch.type)
            first = seen.get(key, 0)
            seen[key] = first + sifted.batch.rows.num_rows
            wanted = job.late.get(key, {})
            for number in range(first, seen[key]) if wanted else ():
                if number in wanted:
                    line = int(sifted.lines[number - first])
                    violations.append(_violation(job.split, key, line, wanted[number]))
        for reject in block.explain(violations):
            yield replace(reject, line=job.first_line + reject.line)


def _violation(split: Split, key: str, line: int, why: Why) -> Violation:
    rule, message = why
    return Violation(
        rule.code, message, key, rule.property, place=SourceLocation(split.file.name, line)
    )


def late_rows(
    left_out: RejectedRows, staged: Mapping[str, StagedType]
) -> dict[int, dict[str, dict[int, Why]]]:
    """By split and type, the accepted rows that were left out later, and why."""
    found: dict[int, dict[str, dict[int, Why]]] = {}
    for key, every in left_out.rejected.items():
        for blamed in every:
            origins = staged[key].origins(blamed.addresses)
            for (split, number), message in zip(origins, blamed.messages.to_pylist(), strict=True):
                found.setdefault(split, {}).setdefault(key, {})[number] = (blamed.rule, message)
    return found


def first_lines(splits: Sequence[Split], lines: Mapping[int, int]) -> dict[int, int]:
    """How many lines of the same name stand before each split, given the lines of every split."""
    before: dict[str | None, int] = {}
    found: dict[int, int] = {}
    for split in splits:
        found[split.number] = before.get(split.file.name, 0)
        before[split.file.name] = found[split.number] + lines[split.number]
    return found
