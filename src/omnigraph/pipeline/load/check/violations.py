"""Verdicts: which staged rows break a rule that looks at other rows, and what is said of each.

Owns their shape, how those of all tasks are put together (a row is left out once, for the first
rule it breaks), and telling each with its file, line and text: for that its split is read once
more, since where a row stands is not kept while all goes well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.embed.providers import stand_in
from omnigraph.errors import Rule
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.load.check.key_index import Addresses, Rows
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.decode import sifted_blocks
from omnigraph.pipeline.load.stage.staged_types import StagedType, StageJob
from omnigraph.storage.tables.row_address import fragments_of, rows_of
from omnigraph.write.change.change_set import type_key
from omnigraph.write.load.rejects import Reject
from omnigraph.write.rules.violations import SourceLocation, Violation

SCHEMA = pa.schema([("address", pa.uint64()), ("message", pa.string()), ("entity", pa.string())])
EVERY = 1 << 62


@dataclass(frozen=True, slots=True)
class SetRule:
    """A rule, and where it stands among those of its load: the first one broken is told."""

    order: int
    code: Rule
    type_key: str
    property: str


Why = tuple[SetRule, str]


@dataclass(frozen=True, slots=True)
class RuleViolations:
    """Rows that break a rule; ``file`` lists them, or as many as were asked for.

    ``strays`` are stored rows that no staged one is to blame for.
    """

    rule: SetRule
    count: int
    file: str | None
    strays: bool = False


def verdict(
    area: StagingArea,
    rule: SetRule,
    found: pa.Table,
    shown: int,
    *,
    strays: bool = False,
) -> RuleViolations | None:
    """Keep the rows that break a rule; None if there are none."""
    if not found.num_rows:
        return None
    rows = found.select(SCHEMA.names).slice(0, shown).cast(SCHEMA)
    name = area.write_table(f"verdict-{rule.order}", rows)
    return RuleViolations(rule, found.num_rows, name, strays)


@dataclass(frozen=True, slots=True)
class RejectGroup:
    """Rows of one type that are left out, by address, with the rule and the message of each."""

    rule: SetRule
    addresses: Addresses
    messages: pa.Array


@dataclass(slots=True)
class RejectedRows:
    """The staged rows that are left out: rejected, or superseded by a later row of their id."""

    rejected: dict[str, list[RejectGroup]] = field(default_factory=dict)
    superseded: dict[str, Addresses] = field(default_factory=dict)

    def reject(self, area: StagingArea, verdicts: Iterable[RuleViolations]) -> None:
        """Add the rows of verdicts, those of the first rules first."""
        for found in sorted(verdicts, key=lambda one: one.rule.order):
            if found.file is None:
                continue
            table = area.read_table(found.file)
            addresses = table.column("address").to_numpy().astype(np.uint64)
            known = self.addresses(found.rule.type_key, with_superseded=False)
            _, firsts = np.unique(addresses, return_index=True)
            fresh = np.sort(firsts[~np.isin(addresses[firsts], known)])
            if len(fresh):
                messages = table.column("message").take(pa.array(fresh)).combine_chunks()
                blamed = RejectGroup(found.rule, addresses[fresh], messages)
                self.rejected.setdefault(found.rule.type_key, []).append(blamed)

    def addresses(self, type_key: str, *, with_superseded: bool = True) -> Addresses:
        """The rows of a type that are left out."""
        found = [blamed.addresses for blamed in self.rejected.get(type_key, ())]
        if with_superseded and type_key in self.superseded:
            found.append(self.superseded[type_key])
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.uint64)

    def counts(self) -> dict[str, int]:
        """How many rows were rejected, by code."""
        counts: dict[str, int] = {}
        for blamed in (one for every in self.rejected.values() for one in every):
            code = blamed.rule.code
            counts[code] = counts.get(code, 0) + len(blamed.addresses)
        return counts


def by_fragment(addresses: Addresses) -> dict[int, Rows]:
    """Rows by the number of their fragment."""
    fragments, rows = fragments_of(addresses), rows_of(addresses)
    return {
        int(fragment): np.sort(rows[fragments == fragment]) for fragment in np.unique(fragments)
    }


def first_messages(
    area: StagingArea, verdicts: Sequence[RuleViolations]
) -> list[tuple[RuleViolations, pa.Table]]:
    """The rows that verdicts list, those of the first rules first."""
    ordered = sorted(verdicts, key=lambda one: one.rule.order)
    return [(one, area.read_table(one.file)) for one in ordered if one.file is not None]


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
