"""The codes of changes that data may forbid.

Owns the catalogue, which is a contract with tools. Never decides which change has which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tier = Literal["safe", "validated", "destructive"]
Severity = Literal["error", "warn", "info"]

CANNOT_FILL = "OG-MF-103"
NULLS_REMAIN = "OG-MF-104"
OTHER_TYPE = "OG-MF-106"


@dataclass(frozen=True, slots=True)
class MigrationCode:
    """One entry of the catalogue; ``emitted`` is false for reserved codes."""

    code: str
    tier: Tier
    severity: Severity
    text: str
    emitted: bool = False


MIGRATION_CODES: dict[str, MigrationCode] = {
    entry.code: entry
    for entry in (
        MigrationCode("OG-DS-101", "destructive", "error", "drop a graph type that has rows"),
        MigrationCode("OG-DS-102", "destructive", "warn", "drop a node type"),
        MigrationCode("OG-DS-103", "destructive", "warn", "drop an edge type"),
        MigrationCode("OG-DS-104", "destructive", "warn", "drop a property"),
        MigrationCode("OG-DS-105", "destructive", "error", "drop a vector property that has rows"),
        MigrationCode(
            CANNOT_FILL,
            "validated",
            "error",
            "add a non-nullable property without a `@default` to fill it",
            emitted=True,
        ),
        MigrationCode(
            NULLS_REMAIN,
            "validated",
            "error",
            "make a nullable property non-nullable",
            emitted=True,
        ),
        MigrationCode(
            OTHER_TYPE, "destructive", "error", "change the type of a property", emitted=True
        ),
    )
}
