"""Digests: what tells one state of a resource from another.

Owns what goes into each of them. Lower-case hexadecimal SHA-256, without a prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from omnigraph.config.cluster.document import BlobBase

_BOM = b"\xef\xbb\xbf"


def digest_of(content: bytes) -> str:
    """The digest of a file; a byte order mark before its text says nothing."""
    return sha256(content.removeprefix(_BOM)).hexdigest()


def digest_of_text(text: str) -> str:
    """The same of a text."""
    return digest_of(text.encode())


def digest_of_values(value: Any) -> str:
    """The digest of plain values, whatever the order of their names."""
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def blob_policy(bases: Sequence[BlobBase]) -> list[dict[str, str]] | None:
    """Bases as the ledger keeps them; None where nothing is allowed."""
    return [{"base": one.base, "scope": one.scope} for one in bases] or None


def graph_digest(
    id_: str,
    schema: str,
    queries: Mapping[str, str],
    provider: tuple[str, str] | None = None,
    blobs: list[dict[str, str]] | None = None,
) -> str:
    """The digest of a graph: what makes it up, each with its own digest.

    ``provider`` is the address of its embedding provider, and the digest of that.
    """
    parts = ["graph", id_, "schema", schema]
    for name, digest in sorted(queries.items()):
        parts += ["query", name, digest]
    if provider is not None:
        parts += ["embedding_provider", *provider]
    if blobs is not None:
        encoded = msgspec.json.encode(blobs, order="deterministic").decode()
        parts += ["external_blob_policy", encoded]
    return _joined(parts)


def config_digest(parsed: Any, resources: Mapping[str, str]) -> str:
    """The digest of a whole configuration: its file, and every resource."""
    file = msgspec.json.encode(parsed, order="deterministic").decode()
    pairs = [part for pair in sorted(resources.items()) for part in pair]
    return _joined(["cluster-config", file, *pairs])


def _joined(parts: Iterable[str]) -> str:
    return sha256(b"".join(part.encode() + b"\0" for part in parts)).hexdigest()
