"""What is configured, as programs read it: every effective value and who says it.

Owns the names of these bodies. What a variable with a secret holds is in none of them.
"""

from __future__ import annotations

from typing import Any

from omnigraph.wire.body import Body


class SettingBody(Body, frozen=True):
    """One value, and where it is said."""

    key: str
    value: Any
    source: str


class SettingsBody(Body, frozen=True):
    """All of them, the files they are from, and what nobody knows in those."""

    project: str | None
    operator: str
    older: bool
    values: list[SettingBody]
    warnings: list[str]


class ConfigProblemBody(Body, frozen=True):
    """What is wrong, and where."""

    place: str
    message: str


class ConfigCheckBody(Body, frozen=True):
    """Whether a project is in order."""

    ok: bool
    file: str
    problems: list[ConfigProblemBody]
    warnings: list[str]


class MigratedBody(Body, frozen=True):
    """A file in version 1, and what was changed for that."""

    file: str
    changes: list[str]
    written: bool
    text: str
