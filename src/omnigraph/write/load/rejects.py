"""Rejects: rows of input that were left out, told in full, and where rows came from.

Owns their list as a file. A batch may become smaller: its rows still know their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import BadRequest, Rule, ValidationError
from omnigraph.write.change.results import RejectSample
from omnigraph.write.load.columns.texts import shown_row
from omnigraph.write.load.ndjson.lines import NdjsonSource
from omnigraph.write.rules.violations import SHOWN, SourceLocation, SourceMap, Violation, report

# Of each kind, in a report.
SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Reject:
    """One row that was left out; ``offset`` is the byte its line begins at."""

    file: str | None
    line: int
    offset: int | None
    code: Rule
    message: str
    raw: str
    type: str | None = None
    property: str | None = None

    def as_violation(self) -> Violation:
        """The same as a violation."""
        place = SourceLocation(self.file, self.line)
        return Violation(self.code, self.message, self.type, self.property, None, place)

    def as_sample(self) -> RejectSample:
        """The same for a report."""
        return RejectSample(self.code, self.file, self.line, self.message, self.raw)


def samples_of(rejects: Iterable[Reject]) -> tuple[RejectSample, ...]:
    """The first few of every kind."""
    seen: Counter[str] = Counter()
    chosen = []
    for reject in rejects:
        seen[reject.code] += 1
        if seen[reject.code] <= SAMPLES:
            chosen.append(reject.as_sample())
    return tuple(chosen)


def rejects_of_lines(
    violations: Iterable[Violation], sources: Sequence[NdjsonSource], first: int = 0
) -> Iterator[Reject]:
    """The lines that violations are about; ``first`` is the byte that the sources begin at."""
    by_name: Mapping[str | None, NdjsonSource] = {source.name: source for source in sources}
    for found in violations:
        place = _place(found)
        source = by_name[place.source]
        yield Reject(
            place.source,
            place.line,
            first + source.start(place.line),
            found.rule,
            found.text,
            source.line(place.line).rstrip("\r"),
            found.type_key,
            found.property,
        )


def rejects_of_rows(violations: Iterable[Violation], table: pa.Table) -> Iterator[Reject]:
    """The rows of a table that violations are about, written as JSON."""
    for found in violations:
        place = _place(found)
        yield Reject(
            place.source,
            place.line,
            None,
            found.rule,
            found.text,
            msgspec.json.encode(shown_row(table, place.line - 1), enc_hook=str).decode(),
            found.type_key,
            found.property,
        )


def _place(violation: Violation) -> SourceLocation:
    if violation.place is None:
        raise AssertionError("a row that is left out has a place")
    return violation.place


def write_rejects(directory: str, name: str, rejects: Iterable[Reject]) -> Path:
    """List rejects in a new file of a directory, one JSON object per line."""
    encoder = msgspec.json.Encoder()
    return copy_rejects(directory, name, (encoder.encode(one) + b"\n" for one in rejects))


def copy_rejects(directory: str, name: str, texts: Iterable[bytes]) -> Path:
    """List rejects that are written as lines already."""
    place = Path(directory).expanduser()
    path = place / f"rejects-{name}.jsonl"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(texts)
    except OSError as error:
        raise BadRequest(f"cannot write the rejects to {path}: {error.strerror or error}") from None
    return path


def count_codes(rejects: Iterable[Reject]) -> dict[str, int]:
    """How many there are of each code."""
    return dict(sorted(Counter(reject.code for reject in rejects).items()))


def too_many(limit: int, codes: Mapping[str, int], first: Sequence[Reject]) -> ValidationError:
    """What is said when more rows are wrong than may be left out."""
    total = sum(codes.values())
    shown = [reject.as_violation() for reject in first[:SHOWN]]
    summary = f"{total} rows are wrong, at most {limit} may be"
    return ValidationError(
        report(shown, total, summary),
        rule=first[0].code,
        details={
            "total": total,
            "max_rejects": limit,
            "codes": dict(codes),
            "violations": [violation.body() for violation in shown],
        },
    )


@dataclass(frozen=True, slots=True)
class NumberedPlaces:
    """The rows of a table, some of which may be missing: each has the number it is known by."""

    name: str
    numbers: npt.NDArray[np.int64]

    def place(self, row: int, member: str | None) -> SourceLocation | None:  # noqa: ARG002 - the protocol
        """The number, counted from 1; the columns of a table have names, not numbers."""
        return SourceLocation(self.name, int(self.numbers[row]) + 1, row=row)


@dataclass(frozen=True, slots=True)
class ChosenPlaces:
    """The places of some rows of a batch.

    ``row`` of a place is the row among the chosen, or with ``by_batch`` the row of the
    batch that they were chosen from.
    """

    places: SourceMap
    rows: npt.NDArray[np.int64]
    by_batch: bool = False

    def place(self, row: int, member: str | None) -> SourceLocation | None:
        """The place of the row that was chosen there."""
        at = int(self.rows[row])
        found = self.places.place(at, member)
        if found is None:
            return None
        return replace(found, row=at if self.by_batch else row)
