"""S3 through obstore: the store of a bucket, and whether anything there answers as S3 does.

Owns the first question to a server, which is short, and the words for what came back. Never
asks twice for what has answered once.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from omnigraph.errors import StorageError, StorageKind
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.errors import is_panic, storage_errors
from omnigraph.storage.objects.location import Location, s3_options
from omnigraph.storage.objects.s3_limits import S3Limits

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

STORES = 64
# How long the first question may take at the most.
FIRST_MS = 8_000
_PATIENCE_MS = 2_000
_ABSENT = "__probe/absent"
# What has answered in the life of this process.
_reached: set[tuple[str, ...]] = set()

_IS_HTML = "it answers with HTML and is no S3 server"
_HTML = re.compile(r"<(!doctype html|html|head|body)\b", re.IGNORECASE)
# What the debug dump of an error tells, in the order in which it is looked at.
_CAUSES: tuple[tuple[str, StorageKind, str], ...] = (
    (r"ConnectionRefused", "transient", "nothing listens there (connection refused)"),
    (r"dns error|failed to lookup", "transient", "its host name is not known"),
    (r"kind: Timeout|TimedOut", "transient", "it does not answer"),
    (r"InvalidContentType|CorruptMessage", "configuration", "it does not speak TLS: write http://"),
    (r"certificate", "configuration", "its certificate is not trusted"),
    (r"NoSuchBucket", "configuration", "there is no such bucket"),
    (
        r"(?P<code>InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken)",
        "configuration",
        "it does not know these keys ({code}): check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    (
        r"169\.254\.169\.254|169\.254\.170\.2",
        "configuration",
        "there are no keys for it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    (
        r"AccessDenied|status: 40[13]\b|PermissionDenied|Unauthenticated",
        "configuration",
        "it does not allow this with these keys: check them and what they may do",
    ),
)


def s3_store(bucket: str | None, prefix: str = "", limits: S3Limits | None = None) -> S3Store:
    """The store of a bucket, or of what is below a prefix in it.

    The same for as long as the environment says the same of it: it holds connections.
    """
    options = tuple(sorted(s3_options().items()))
    return _store(bucket, prefix, options, limits or S3Limits.of_environment())


@lru_cache(maxsize=STORES)
def _store(
    bucket: str | None, prefix: str, options: tuple[tuple[str, str], ...], limits: S3Limits
) -> S3Store:
    from obstore.store import S3Store

    config = cast("S3Config", {**dict(options), **limits.client_options})
    return S3Store(bucket, prefix=prefix or None, config=config, retry_config=limits.retry_config)


def require_reachable(location: Location) -> None:
    """Ask S3 something small, once in the life of a process, before something large waits for it.

    Lance repeats a listing that fails six times, whatever it is told about retries.
    """
    if location.is_local:
        return
    options = s3_options()
    key = (str(location.bucket), *options.values())
    if key in _reached:
        return
    limits = S3Limits.of_environment()
    short = replace(
        limits,
        read_timeout_ms=min(limits.read_timeout_ms, FIRST_MS),
        retry_ms=min(limits.retry_ms, _PATIENCE_MS),
    )
    server = options.get("aws_endpoint", "S3")
    try:
        with storage_errors(f"reaching {location}"):
            answers = _answers(location, short)
    except StorageError as error:
        raise _explained(location, server, error) from error.__cause__
    if not answers:
        raise _failure(location, server, "configuration", _IS_HTML)
    _reached.add(key)


def _answers(location: Location, limits: S3Limits) -> bool:
    """Whether what answers is S3: a page of HTML is no listing, and taken for an empty one."""
    import obstore

    store = s3_store(location.bucket, location.prefix, limits)
    meter.count("list")
    if next(iter(obstore.list(store, chunk_size=1)), None):
        return True
    meter.count("get")
    try:
        found = bytes(obstore.get(store, _ABSENT).bytes())[:1024]
    except FileNotFoundError as error:
        return not _HTML.search(str(error))
    return not _HTML.search(found.decode(errors="replace"))


def _explained(location: Location, server: str, error: StorageError) -> StorageError:
    cause = error.__cause__
    if cause is None or is_panic(cause):
        return error
    text = str(cause)
    if _HTML.search(text):
        return _failure(location, server, "configuration", _IS_HTML)
    for pattern, kind, reason in _CAUSES:
        if found := re.search(pattern, text):
            return _failure(location, server, kind, reason.format(**found.groupdict()))
    return error


def _failure(location: Location, server: str, kind: StorageKind, reason: str) -> StorageError:
    advice = "" if ": " in reason else ": check AWS_ENDPOINT_URL_S3 and the name of the bucket"
    return StorageError(
        f"cannot reach {location} at {server}: {reason}{advice}",
        kind=kind,
        details={"action": "reaching", "endpoint": server},
    )
