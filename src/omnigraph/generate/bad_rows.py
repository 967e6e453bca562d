"""Bad rows: broken rows, planted between good ones that stay as they are.

Owns the ways a row can be broken, which format can carry which, and where they go. No good row
depends on a planted one: whoever leaves the planted rows out has exactly the clean graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, Literal, get_args

import numpy as np

from omnigraph.errors import BadRequest, Rule
from omnigraph.generate.draws import Draws, Integers
from omnigraph.generate.entities import EntityRows
from omnigraph.generate.lines import csv_line, json_line

Format = Literal["jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

Row = dict[str, Any]

# Stands for bytes that are no UTF-8 until the line is encoded.
_BAD_BYTES: Final = "\ue000"


@dataclass(frozen=True, slots=True)
class DirtKind:
    """One way to break a row, and the rule of a load that it breaks."""

    name: str
    rule: Rule
    formats: tuple[Format, ...]
    values: Mapping[str, Row]
    """By type: what the broken row has instead of the good values; types not named are spared."""


_TEXT: tuple[Format, ...] = ("jsonl", "csv")
_KEYS = {"Person": "handle", "Company": "slug", "Document": "slug"}
_ANY: Mapping[str, Row] = {name: {} for name in (*_KEYS, "Knows", "WorksAt", "Wrote", "Mentions")}

KINDS: Mapping[str, DirtKind] = {
    kind.name: kind
    for kind in (
        DirtKind("malformed", "format", _TEXT, _ANY),
        DirtKind(
            "missing_required",
            "required",
            FORMATS,
            {
                "Person": {"born": None},
                "Company": {"founded": None},
                "Document": {"published": None},
                "Knows": {"since": None},
                "WorksAt": {"since": None},
                "Mentions": {"times": None},
            },
        ),
        DirtKind(
            "wrong_type",
            "type",
            _TEXT,
            {
                "Person": {"active": "perhaps"},
                "Company": {"founded": "long ago"},
                "Document": {"words": "many"},
                "Knows": {"weight": "strong"},
                "WorksAt": {"since": True},
                "Mentions": {"times": "twice"},
            },
        ),
        DirtKind(
            "bad_date",
            "type",
            _TEXT,
            {
                "Person": {"born": "1987-02-30"},
                "Document": {"published": "2019-13-01"},
                "Knows": {"since": "last summer"},
                "WorksAt": {"since": "2021-06-31"},
            },
        ),
        DirtKind("unknown_property", "format", ("jsonl",), {n: {"shoe_size": 42} for n in _ANY}),
        DirtKind("unknown_type", "format", ("jsonl",), _ANY),
        DirtKind("duplicate_member", "format", ("jsonl",), {n: {} for n in _ANY if n != "Wrote"}),
        DirtKind("bad_utf8", "format", _TEXT, _ANY),
        DirtKind("bad_enum", "enum", FORMATS, {"Company": {"industry": "alchemy"}}),
        DirtKind(
            "out_of_range",
            "range",
            FORMATS,
            {"Person": {"score": 250.5}, "Company": {"founded": 1066}},
        ),
        DirtKind("duplicate_key", "unique", FORMATS, {name: {} for name in _KEYS}),
        DirtKind("duplicate_pair", "unique", FORMATS, {"Wrote": {}}),
        DirtKind(
            "missing_endpoint",
            "endpoint",
            FORMATS,
            {
                "Knows": {"dst": "nobody-nowhere"},
                # Somebody who exists would have two employers.
                "WorksAt": {"src": "nobody-nowhere"},
                "Wrote": {"dst": "unwritten-work"},
                "Mentions": {"dst": "unheard-of"},
            },
        ),
    )
}


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """One planted row: it stands behind a good one, and was made from another."""

    type_name: str
    kind: DirtKind
    after: int
    values: Row

    def text(self, format_: Format, entity_kind: Literal["node", "edge"]) -> bytes:
        """The line of the row."""
        name = "Nonsense" if self.kind.name == "unknown_type" else self.type_name
        if format_ == "csv":
            line = csv_line(self.values)
        else:
            line = json_line(name, entity_kind, self._members())
        if self.kind.name == "malformed":
            line = line.removesuffix("\n")
            line = line[:-2] + "\n" if format_ == "jsonl" else line + ",one cell more\n"
        elif self.kind.name == "duplicate_member":
            first = next(name for name in self.values if name not in ("src", "dst"))
            line = line.replace('"data":{', f'"data":{{"{first}":null,')
        return line.encode().replace(_BAD_BYTES.encode(), b"\xff\xfe")

    def _members(self) -> Row:
        # Some say null, some say nothing.
        says_null = self.after % 2 == 0 and self.kind.name == "missing_required"
        return {
            name: value
            for name, value in self.values.items()
            if value is not None or (says_null and name in self.kind.values[self.type_name])
        }


class BadRows:
    """The broken rows of one type: where they are, and what they hold."""

    def __init__(
        self, rows: EntityRows, draws: Draws, rate: float, kinds: Sequence[DirtKind]
    ) -> None:
        self._rows = rows
        self._draws = draws
        # Kinds of few types come first, so that even a small type has those that need it.
        carried = (kind for kind in kinds if rows.name in kind.values)
        self._kinds = sorted(carried, key=lambda kind: len(kind.values))
        count = ceil(rows.count * rate) if self._kinds else 0
        numbers = np.arange(count, dtype=np.int64)
        fractions = draws.unit(f"{rows.name}.dirt", numbers)
        places = ((numbers + fractions) / max(count, 1) * rows.count).astype(np.int64)
        self.after: Integers = np.minimum(places, rows.count - 1)
        """The good rows that have a broken one behind them, in order."""

    def between(self, start: int, stop: int) -> list[BrokenRow]:
        """The broken rows behind the good ones of a range."""
        first, end = np.searchsorted(self.after, [start, stop]).tolist()
        numbers = np.arange(first, end, dtype=np.int64)
        if not len(numbers):
            return []
        after = self.after[first:end]
        # Of an earlier row, so that the broken one is the one that repeats it.
        origins = self._draws.unit(f"{self._rows.name}.dirt origin", numbers) * (after + 1)
        made = self._rows.make(origins.astype(np.int64)).to_pylist()
        kinds = [self._kinds[number % len(self._kinds)] for number in numbers.tolist()]
        return [
            BrokenRow(self._rows.name, kind, place, self._broken(kind, row, number))
            for number, kind, place, row in zip(
                numbers.tolist(), kinds, after.tolist(), made, strict=True
            )
        ]

    def _broken(self, kind: DirtKind, row: Row, number: int) -> Row:
        name = self._rows.name
        text = _KEYS.get(name, "src")
        if name in _KEYS and kind.name != "duplicate_key":
            row[text] = f"stray-{name.lower()}-{number}"
        if kind.name == "bad_utf8":
            row[text] += _BAD_BYTES
        row |= kind.values[name]
        if kind.name == "missing_endpoint":
            # Each its own: two employers of one nobody would break one more rule.
            row |= {end: f"{value}-{number}" for end, value in kind.values[name].items()}
        return row


def dirt_kinds(format_: Format, names: Sequence[str] | None = None) -> list[DirtKind]:
    """The kinds that a format can carry, or those of them that are named."""
    carried = [kind for kind in KINDS.values() if format_ in kind.formats]
    if names is None:
        return carried
    known = {kind.name: kind for kind in carried}
    for name in names:
        if name not in known:
            raise BadRequest(
                f"{format_} files have no broken rows of the kind {name!r}: choose from"
                f" {', '.join(known)}"
            )
    return [known[name] for name in names]
