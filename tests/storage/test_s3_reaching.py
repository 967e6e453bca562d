"""A server that is not there, does not answer or is no S3: the cause in a line, and soon."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import omnigraph as og
from omnigraph.errors import StorageError
from omnigraph.storage.objects import s3_client
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.s3_limits import S3Limits
from omnigraph.storage.tables.handles import open_alone
from tests.film_graph import SCHEMA
from tests.s3_server import S3Server

DEADLINE = 10
GRAPH = "s3://graphs/g"
SHORT = {
    "OMNIGRAPH_S3_CONNECT_TIMEOUT_MS": "500",
    "OMNIGRAPH_S3_READ_TIMEOUT_MS": "300",
    "OMNIGRAPH_S3_TIMEOUT_MS": "1000",
    "OMNIGRAPH_S3_RETRY_MS": "200",
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "_reached", set())
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "key")
    monkeypatch.setenv("AWS_S3_FORCE_PATH_STYLE", "1")


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes every connection and never says a word."""
    held: list[socket.socket] = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)

        def accept() -> None:
            while True:
                try:
                    held.append(listener.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    for one in held:
        one.close()


class WebPage(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        page = b"<!DOCTYPE html><html><body>Welcome</body></html>"
        self.send_response(self.status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    do_PUT = do_GET  # noqa: N815 - the name that is called

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def website(status: int) -> Iterator[str]:
    handler = type("Page", (WebPage,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def refusal(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> StorageError:
    """What opening and making a graph say, the same and in time."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    begun = time.monotonic()
    with pytest.raises(StorageError) as told:
        og.open(GRAPH)
    with pytest.raises(StorageError) as again:
        og.init(GRAPH, SCHEMA)
    assert time.monotonic() - begun < 2 * DEADLINE
    assert str(again.value) == str(told.value)
    assert "\n" not in str(told.value)
    return told.value


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SHORT.items():
        monkeypatch.setenv(name, value)
    with silent() as endpoint:
        error = refusal(endpoint, monkeypatch)
    assert error.kind == "transient"
    assert str(error).startswith(f"cannot reach {GRAPH} at {endpoint}: it does not answer")


def test_a_server_that_falls_silent_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request has an end, through either library."""
    for name, value in SHORT.items():
        monkeypatch.setenv(name, value)
    with silent() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        location = Location.parse(GRAPH)
        begun = time.monotonic()
        for work in (
            lambda: ControlObjects(location).read("x"),
            lambda: ControlObjects(location).create("x", b""),
            lambda: open_alone(location.join("nodes"), 1),
        ):
            with pytest.raises(StorageError) as told:
                work()
            assert told.value.kind == "transient"
        assert time.monotonic() - begun < 6 * DEADLINE


@pytest.mark.parametrize("status", [200, 403, 404, 500])
def test_a_server_that_answers_with_a_web_page(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with website(status) as endpoint:
        error = refusal(endpoint, monkeypatch)
    assert error.kind == "configuration"
    assert str(error) == (
        f"cannot reach {GRAPH} at {endpoint}: it answers with HTML and is no S3 server: "
        "check AWS_ENDPOINT_URL_S3 and the name of the bucket"
    )


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("http://127.0.0.1:1", "nothing listens there (connection refused)"),
        ("http://nowhere.invalid:80", "its host name is not known"),
    ],
)
def test_a_server_that_is_not_there(
    endpoint: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refusal(endpoint, monkeypatch)
    assert error.kind == "transient"
    assert f"at {endpoint}: {said}" in str(error)


@pytest.mark.parametrize("endpoint", ["::::", "127.0.0.1:80", "ftp://x", "http://", "http://a b"])
def test_an_endpoint_that_is_no_address(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = refusal(endpoint, monkeypatch)
    assert error.kind == "configuration"
    assert str(error).startswith(f"AWS_ENDPOINT_URL_S3 is {endpoint!r}: write the address")


def test_keys_that_are_wrong(
    s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, said in (
        ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId"),
        ("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, "wrong")
            begun = time.monotonic()
            with pytest.raises(StorageError) as told:
                og.init(s3_bucket, SCHEMA)
            assert time.monotonic() - begun < DEADLINE
        assert told.value.kind == "configuration"
        assert str(told.value) == (
            f"cannot reach {s3_bucket} at {s3_server.endpoint}: it does not know these keys "
            f"({said}): check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    og.init(s3_bucket, SCHEMA)


def test_what_has_answered_is_not_asked_again(
    s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    og.init(s3_bucket, SCHEMA)
    monkeypatch.setattr(s3_client, "_answers", None)
    assert og.open(s3_bucket).snapshot().tables


def test_the_settings() -> None:
    assert S3Limits.of_environment({}) == S3Limits()
    assert S3Limits.of_environment(SHORT) == S3Limits(500, 300, 1000, 200)
    for wrong in ("0", "-1", "abc", "1.5", "9" * 30, "²"):
        with pytest.raises(StorageError, match=r"OMNIGRAPH_S3_TIMEOUT_MS is .*: set it to mill"):
            S3Limits.of_environment({"OMNIGRAPH_S3_TIMEOUT_MS": wrong})


def test_an_endless_request_has_an_end_by_default() -> None:
    limits = S3Limits()
    assert limits.client_options == {
        "connect_timeout": "3000ms",
        "read_timeout": "30000ms",
        "timeout": "120000ms",
    }
    assert limits.lance_options["client_retry_timeout"] == "10"
