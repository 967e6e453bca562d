"""Failures: what the libraries below raise, as a StorageError with a kind.

Owns the classification. Must never swallow an error or guess "transient"
for what a retry cannot cure: what is not recognised is "unknown".
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import OmniGraphError, StorageError, StorageKind
from omnigraph.storage.objects.processes import require_usable

_BY_ERRNO: dict[int, StorageKind] = {
    errno.EACCES: "configuration",
    errno.EPERM: "configuration",
    errno.EROFS: "configuration",
    errno.ENOTDIR: "configuration",
    errno.EISDIR: "configuration",
    errno.EXDEV: "configuration",
    errno.ENOENT: "not_found",
    errno.EEXIST: "precondition",
    errno.ENOSPC: "permanent",
    errno.EDQUOT: "permanent",
    errno.EAGAIN: "transient",
    errno.EINTR: "transient",
    errno.EMFILE: "transient",
    errno.ETIMEDOUT: "transient",
}
# obstore has a class per cause; its base class is for the rest.
_BY_CLASS: dict[str, StorageKind] = {
    "NotFoundError": "not_found",
    "AlreadyExistsError": "precondition",
    "PreconditionError": "precondition",
    "NotModifiedError": "precondition",
    "PermissionDeniedError": "configuration",
    "UnauthenticatedError": "configuration",
    "UnknownConfigurationKeyError": "configuration",
    "InvalidPathError": "configuration",
    "NotSupportedError": "configuration",
}
# Lance reports most causes as OSError or ValueError with a text only. The order matters: a text
# about a missing bucket or key also says "not found".
_CONFIGURATION = (
    r"NoSuchBucket|bucket (was )?(not found|does not exist)|AccessDenied|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|ExpiredToken|permission denied|unauthorized|forbidden"
    r"|status code: 40[13]|read-only file system|not a directory|missing region|credential"
    r"|unknown scheme|no object store provider|invalid (certificate|url)"
    r"|URL scheme is not allowed|hard link"
)
_PRECONDITION = (
    r"already exists|commit ?conflict|concurrent (transaction|writer)"
    r"|precondition ?failed|status code: (409|412)|preempted"
)
_TRANSIENT = (
    r"timed out|(?<!retry_)timeout|connection (refused|reset|closed|aborted)"
    r"|error sending request|client error \(connect\)|dns error|broken pipe"
    r"|temporarily unavailable|SlowDown|too many requests|InternalError"
    r"|internal server error|service unavailable|bad gateway|status code: (429|5\d\d)"
)
_NOT_FOUND = r"not found|no such file|NoSuchKey|does not exist|status code: 404"
_PERMANENT = (
    r"no space left|quota|corrupt|checksum|invalid magic|not a lance|invalid user input"
    r"|schema|type mismatch|null|unsupported|internal error"
)
_BY_TEXT: tuple[tuple[StorageKind, re.Pattern[str]], ...] = (
    ("configuration", re.compile(_CONFIGURATION, re.IGNORECASE)),
    ("precondition", re.compile(_PRECONDITION, re.IGNORECASE)),
    ("transient", re.compile(_TRANSIENT, re.IGNORECASE)),
    ("not_found", re.compile(_NOT_FOUND, re.IGNORECASE)),
    ("permanent", re.compile(_PERMANENT, re.IGNORECASE)),
)

# Arrow carries what a signal handler raised through a stream of rows as a text.
_RAISED_BY_A_SIGNAL = re.compile(r"(?:External error: )+(KeyboardInterrupt|SystemExit): ?(.*)")

_ADVICE: dict[StorageKind, str] = {
    "configuration": "check the location, its permissions and, for S3, the AWS_* variables",
    "transient": "the storage may not be reachable now: check the address, then try again",
}


def translate(error: BaseException, action: str = "storage") -> StorageError:
    """The StorageError for an error of a library; one that is a StorageError stays itself."""
    if isinstance(error, StorageError):
        return error
    reason = _one_line(error)
    kind: StorageKind = "permanent" if is_panic(error) else classify(error)
    if is_panic(error):
        reason = f"the storage library broke down ({reason}): a file may be damaged"
    details: dict[str, object] = {"action": action, "cause": type(error).__name__}
    retryable = getattr(error, "retryable", None)
    if isinstance(retryable, bool):
        details["retryable"] = retryable
    advice = f" ({_ADVICE[kind]})" if kind in _ADVICE else ""
    return StorageError(f"{action}: {reason}{advice}", kind=kind, details=details)


def classify(error: BaseException) -> StorageKind:
    """Whether, and how, trying again could help."""
    name = type(error).__name__
    if name == "CommitConflictError":
        return "precondition"
    if "NoSuchBucket" in str(error):
        return "configuration"
    if type(error).__module__.startswith("obstore") and name in _BY_CLASS:
        return _BY_CLASS[name]
    if isinstance(error, OSError) and error.errno in _BY_ERRNO:
        return _BY_ERRNO[error.errno]
    if isinstance(error, FileNotFoundError):
        return "not_found"
    if isinstance(error, TimeoutError | ConnectionError):
        return "transient"
    text = _words(error)
    for kind, pattern in _BY_TEXT:
        if pattern.search(text):
            return kind
    return "unknown"


@contextmanager
def storage_errors(action: str) -> Iterator[None]:
    """Turn what the libraries raise within the block into a StorageError.

    Errors of the product pass unchanged, and so do programming errors
    (TypeError, KeyError, …), which no caller should handle as a storage fault. An
    interrupt stays one. Every call of these libraries stands in such a block: it is
    refused where it would hang.
    """
    require_usable()
    from obstore.exceptions import BaseError as ObstoreError

    try:
        yield
    except OmniGraphError:
        raise
    except (OSError, ValueError, RuntimeError, ObstoreError) as error:
        raise (interrupt_of(error) or translate(error, action)) from error
    except BaseException as error:
        if is_panic(error):
            raise translate(error, action) from error
        raise


def is_panic(error: BaseException) -> bool:
    """Whether a library below gave up in its own language, which is no `Exception` in Python."""
    return type(error).__name__ == "PanicException" and not isinstance(error, Exception)


def interrupt_of(error: BaseException) -> KeyboardInterrupt | SystemExit | None:
    """What a signal handler raised in the middle of a call, if that is what the error tells."""
    found = _RAISED_BY_A_SIGNAL.fullmatch(str(error).strip())
    if found is None:
        return None
    raised, argument = found.groups()
    if raised == "KeyboardInterrupt":
        return KeyboardInterrupt()
    return SystemExit(int(argument) if re.fullmatch(r"-?\d+", argument) else argument or None)


def _words(error: BaseException) -> str:
    """The text without markup, addresses and paths: names of the user's own say nothing."""
    return re.sub(r"\S*/\S*", " ", re.sub(r"</?\w[^<>]*>", " ", str(error)))


def _one_line(error: BaseException) -> str:
    """The first line: obstore adds a debug dump, Lance the place in its own source."""
    text = str(error) or type(error).__name__
    first = next((line.strip() for line in text.splitlines() if line.strip()), text)
    return re.sub(r",? ?(rust/|/root/|/home/|/rustc/)\S+\.rs:\d+:\d+$", "", first).rstrip(" ,")
