from __future__ import annotations

import errno

import pytest
from lance.commit import CommitConflictError
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError

from omnigraph.errors import BadRequest, StorageError, StorageKind
from omnigraph.storage.objects.errors import storage_errors, translate


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(errno.ENOENT, "no such file"), "not_found"),
        (PermissionError(errno.EACCES, "denied"), "configuration"),
        (OSError(errno.EROFS, "read-only"), "configuration"),
        (OSError(errno.ENOSPC, "no space left"), "permanent"),
        (TimeoutError("slow"), "transient"),
        (ConnectionResetError("gone"), "transient"),
        (AlreadyExistsError("there"), "precondition"),
        (PermissionDeniedError("no"), "configuration"),
        (GenericError("Generic S3 error: error sending request"), "transient"),
        (GenericError("Generic S3 error: 503 Service Unavailable"), "transient"),
        (GenericError("the reason is a secret of the server"), "unknown"),
        (FileNotFoundError("404 Not Found: <Code>NoSuchBucket</Code>"), "configuration"),
        (FileNotFoundError("404: <Code>NoSuchKey</Code> <BucketName>b</BucketName>"), "not_found"),
        (OSError("Dataset already exists: /t"), "precondition"),
        (OSError("Too many concurrent writers. Attempted 1 times"), "precondition"),
        (CommitConflictError("preempted"), "precondition"),
        (ValueError("Dataset at path /t was not found"), "not_found"),
        (OSError("LanceError(IO): 403 Forbidden: SignatureDoesNotMatch"), "configuration"),
        (OSError("LanceError(Schema): Field has wrong type"), "permanent"),
        (OSError("something else"), "unknown"),
        # Durations, ports, names and paths are no reasons.
        (ValueError("t was not found: HEAD in 401.5µs - status code: 404 Not Found"), "not_found"),
        (ValueError("HEAD http://h:503/credential/timeout was not found"), "not_found"),
        (OSError("/data/schema/forbidden: something else in 503.7ms"), "unknown"),
        (GenericError("after 0 retries, retry_timeout: 180s - status code: 400 Bad"), "unknown"),
        (OSError("status code: 500 Internal Server Error"), "transient"),
    ],
    ids=str,
)
def test_kinds(error: Exception, kind: StorageKind) -> None:
    assert translate(error).kind == kind


def test_the_message_is_one_line_and_names_the_action() -> None:
    error = translate(
        OSError("broken, /home/runner/work/lance/lance/rust/x.rs:1:2\n\nDebug source: much more"),
        "opening /t",
    )
    assert str(error) == "opening /t: broken"
    assert error.details == {"action": "opening /t", "cause": "OSError", "kind": "unknown"}


def test_a_conflict_says_whether_to_retry() -> None:
    assert translate(CommitConflictError("x", retryable=False)).details["retryable"] is False


def test_a_storage_error_stays_itself() -> None:
    error = StorageError("x", kind="permanent")
    assert translate(error) is error


def test_the_block_keeps_the_cause_and_other_errors() -> None:
    with pytest.raises(StorageError) as raised, storage_errors("reading"):
        raise OSError("x")
    assert isinstance(raised.value.__cause__, OSError)
    with pytest.raises(BadRequest), storage_errors("reading"):
        raise BadRequest("x")
    with pytest.raises(KeyError), storage_errors("reading"):
        raise KeyError("x")


@pytest.mark.parametrize(
    ("text", "raised", "arguments"),
    [
        ("External error: KeyboardInterrupt: ", KeyboardInterrupt, ()),
        ("External error: External error: KeyboardInterrupt: ", KeyboardInterrupt, ()),
        ("External error: SystemExit: 143", SystemExit, (143,)),
        ("External error: SystemExit: enough", SystemExit, ("enough",)),
        ("External error: SystemExit: ", SystemExit, (None,)),
    ],
)
def test_what_a_signal_handler_raised_stays_what_it_is(
    text: str, raised: type[BaseException], arguments: tuple[object, ...]
) -> None:
    with pytest.raises(raised) as caught, storage_errors("reading"):
        raise ValueError(text)
    assert caught.value.args == arguments
    assert str(caught.value.__cause__) == text


@pytest.mark.parametrize(
    "text",
    [
        "the value KeyboardInterrupt: is no number",
        "External error: the file KeyboardInterrupt: is not there",
        "External error: KeyboardInterrupted: ",
    ],
)
def test_a_text_that_only_speaks_of_interrupts_is_a_failure(text: str) -> None:
    with pytest.raises(StorageError), storage_errors("reading"):
        raise ValueError(text)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (PermissionError(13, "Permission denied"), "AWS_* variables"),
        (TimeoutError("timed out"), "then try again"),
        (FileNotFoundError(2, "No such file"), None),
    ],
)
def test_the_message_says_what_can_be_done(error: OSError, advice: str | None) -> None:
    message = translate(error, "opening x").message
    assert (advice in message) if advice is not None else message.endswith("No such file")
