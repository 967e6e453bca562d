"""Verdicts: which staged rows break a rule that looks at other rows, and what is said of each.

Owns their shape and how those of all tasks are put together: a row is left out once, for the
first rule it breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.errors import Rule
from omnigraph.pipeline.load.check.key_index import Addresses, Rows
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.tables.row_address import fragments_of, rows_of

SCHEMA = pa.schema([("address", pa.uint64()), ("message", pa.string()), ("entity", pa.string())])
EVERY = 1 << 62


@dataclass(frozen=True, slots=True)
class SetRule:
    """A rule, and where it stands among those of its load: the first one broken is told."""

    order: int
    code: Rule
    type_key: str
    property: str


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
