"""Where blobs may lie outside of a graph: the allow list of a declaration.

Owns what a base may be. Asks no storage whether it is there.
"""

from __future__ import annotations

from typing import cast

from omnigraph.config.cluster.document import BlobBase, BlobScope
from omnigraph.config.cluster.yaml_tree import Tree

_SCOPES = ("server_safe", "embedded_only")
_MOST = 65_536


def read_bases(value: Tree) -> tuple[BlobBase, ...]:
    """The bases of `external_blobs`; none of them may lie in another."""
    if not value.is_mapping:
        if not value.is_empty:
            value.error(
                "invalid_external_blob_policy",
                "write `allow:` with a list of {base, scope}, or leave external_blobs out",
            )
        return ()
    allow = value.known(("allow",)).get("allow")
    if allow is None:
        return ()
    found: list[BlobBase] = []
    for item in allow.items():
        base = _base(item)
        if base is None:
            continue
        for other in found:
            if _within(base.base, other.base) or _within(other.base, base.base):
                item.error(
                    "invalid_external_blob_policy",
                    f"{base.base} and {other.base} overlap: keep the wider one",
                )
        found.append(base)
    return tuple(found)


def _base(item: Tree) -> BlobBase | None:
    members = item.known(("base", "scope"))
    if "base" not in members or "scope" not in members:
        item.error("invalid_external_blob_policy", "an entry has a `base` and a `scope`")
        return None
    text, scope = members["base"].text(), members["scope"].text()
    if text is None or scope is None:
        return None
    if scope not in _SCOPES:
        members["scope"].error(
            "invalid_external_blob_policy", f"a scope is {' or '.join(_SCOPES)}, not `{scope:.40}`"
        )
        return None
    problem = _problem(text, scope)
    if problem is not None:
        members["base"].error("invalid_external_blob_base", problem)
        return None
    scheme, _, rest = text.partition("://")
    return BlobBase(f"{scheme.lower()}://{rest.rstrip('/')}/", cast("BlobScope", scope))


def _problem(text: str, scope: str) -> str | None:
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in ("s3", "file"):
        return "a base is s3://bucket/prefix/, or file:///directory/ for embedded use"
    if scheme == "file" and scope == "server_safe":
        return "a file:// base is for embedded use only: its scope is embedded_only"
    if len(text.encode()) > _MOST:
        return f"a base has {_MOST:,} bytes at the most"
    if any(mark in rest for mark in "@?#\\%") or not rest.isprintable() or " " in rest:
        return "a base has no user, query, fragment, backslash, percent sign or blank"
    parts = rest.rstrip("/").split("/")
    names = parts[1:] if scheme == "file" else parts
    if not names or any(part in ("", ".", "..") for part in names):
        return "the parts of a base are names: none is empty, `.` or `..`"
    if (scheme == "file" and parts[0]) or (scheme == "s3" and ":" in parts[0]):
        return "a base names a bucket or an absolute directory, and no host or port"
    return None


def _within(inner: str, outer: str) -> bool:
    return inner.startswith(outer)
