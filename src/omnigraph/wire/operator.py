"""What a person has configured for the command line: profiles, and tokens by their names alone.

Owns the names of these bodies. A token is in none of them.
"""

from __future__ import annotations

from omnigraph.wire.body import Body


class ProfileBody(Body, frozen=True):
    """A named scope; one that cannot be used says why."""

    name: str
    binding: str | None
    scope_kind: str
    target: str | None
    valid: bool
    error: str | None
    default_graph: str | None
    active: bool


class ProfilesBody(Body, frozen=True):
    """All of them, by name."""

    profiles: list[ProfileBody]


class ProfileShownBody(Body, frozen=True):
    """What a profile, or what is meant without one, comes down to."""

    name: str
    scope_kind: str
    target: str | None
    endpoint: str | None
    default_graph: str | None
    output_format: str


class LoginBody(Body, frozen=True):
    """Whose token was kept, and in which file."""

    name: str
    path: str


class LogoutBody(Body, frozen=True):
    """Whose token was forgotten, if there was one."""

    name: str
    removed: bool
