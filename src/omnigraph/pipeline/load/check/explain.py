"""Telling rejects: each row that is left out with its file, line and text.

Owns reading splits once more: where a row stands is not kept while all goes well. Which rows are
told is read from the files that list them, split by split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa

from omnigraph.embed.providers import stand_in
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.load.check.left_out import RejectedPart, RejectedRows, read_rejected
from omnigraph.pipeline.load.check.wrong_rows import MESSAGE, RULE, SetRule
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.decode import sifted_blocks
from omnigraph.pipeline.load.stage.staged_types import RowOrigin, StagedType, StageJob
from omnigraph.storage.tables.row_address import fragments_of, rows_of
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.write.change.change_set import type_key
from omnigraph.write.load.rejects import Reject
from omnigraph.write.rules.violations import SHOWN, SourceLocation, Violation

Why = tuple[SetRule, str]


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rejected rows of a split in one fragment: the list they are in, and what came from where."""

    type_key: str
    fragment: int
    rejected: RejectedPart
    runs: tuple[tuple[int, RowOrigin], ...]
    """Rows of the split, each with where they begin in the fragment."""

    def why(self, area: StagingArea, rules: Mapping[int, SetRule]) -> Iterator[tuple[int, Why]]:
        """Which of the accepted rows of the split they are, and why each is left out."""
        table = read_rejected(area, self.rejected)
        here = fragments_of(table.column(ROW_ADDRESS).to_numpy()) == self.fragment
        own = table.filter(pa.array(here))
        rows = rows_of(own.column(ROW_ADDRESS).to_numpy()).tolist()
        told = zip(rows, own.column(RULE).to_pylist(), own.column(MESSAGE).to_pylist(), strict=True)
        for row, rule, message in told:
            for begin, run in self.runs:
                if begin <= row < begin + run.count:
                    yield run.first + row - begin, (rules[rule], message)


@dataclass(frozen=True, slots=True)
class ExplainJob:
    """One split, and which of its accepted rows were left out later.

    ``first_line`` counts the lines of the file before the split. With ``early`` the rows
    that were never accepted are told too.
    """

    job: StageJob
    split: Split
    first_line: int
    late: tuple[LateRows, ...]
    rules: Mapping[int, SetRule]
    early: bool = True


@dataclass(frozen=True, slots=True)
class Explained:
    """The rejects of a split in the order of their lines: as a file, and the first of them."""

    file: str
    count: int
    first: tuple[Reject, ...]


def explain(job: ExplainJob, shown: int = SHOWN) -> Explained:
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
    late: dict[str, dict[int, Why]] = {}
    for rows in job.late:
        late.setdefault(rows.type_key, {}).update(rows.why(job.job.area, job.rules))
    for block in sifted_blocks(job.split, job.job, embedder):
        violations = list(block.violations) if job.early else []
        for sifted in block.batches:
            key = type_key(sifted.batch.type)
            first = seen.get(key, 0)
            seen[key] = first + sifted.batch.rows.num_rows
            wanted = late.get(key, {})
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
) -> dict[int, list[LateRows]]:
    """By split, where its accepted rows are listed that were left out later."""
    found: dict[int, list[LateRows]] = {}
    for key, parts in left_out.rejected.items():
        one = staged[key]
        rows = dict(zip((part.number for part in one.parts), one.rows, strict=True))
        for group, rejected in parts.items():
            for part in one.groups[group].parts:
                if part.number not in rejected.fragments:
                    continue
                by_split: dict[int, list[tuple[int, RowOrigin]]] = {}
                begin = 0
                for run in rows[part.number].runs:
                    by_split.setdefault(run.split, []).append((begin, run))
                    begin += run.count
                for split, runs in by_split.items():
                    late = LateRows(key, part.number, rejected, tuple(runs))
                    found.setdefault(split, []).append(late)
    return found
