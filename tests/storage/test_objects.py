from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.meter import measure
from tests import faults
from tests.s3_server import S3Server


@contextmanager
def repeating_server() -> Iterator[str]:
    """A server that stores an object and says that it failed."""
    stored: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path in stored:
                self.answer(412)
            else:
                stored[self.path] = data
                self.answer(500)

        def do_GET(self) -> None:
            self.answer(200, stored[self.path])

        def answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def objects(location: Location) -> ControlObjects:
    return ControlObjects(location)


def test_an_object_is_created_once(objects: ControlObjects) -> None:
    assert objects.create("__recovery/a.json", b"first")
    assert not objects.create("__recovery/a.json", b"second")
    assert objects.read("__recovery/a.json") == b"first"


def test_replace_and_delete(objects: ControlObjects) -> None:
    objects.replace("a", b"1")
    objects.replace("a", b"")
    assert objects.read("a") == b""
    objects.delete("a")
    objects.delete("a")
    assert objects.read("a") is None
    assert objects.create("a", b"again")


def test_a_listing_is_sorted_and_counts_whole_names(objects: ControlObjects) -> None:
    for name in ["b/2", "b/1", "bb/3", "c"]:
        objects.create(name, b"")
    assert objects.list() == ["b/1", "b/2", "bb/3", "c"]
    assert objects.list("b") == ["b/1", "b/2"]
    assert objects.list("nothing") == []


def test_one_of_many_creators_wins(objects: ControlObjects) -> None:
    objects.create("warm", b"")
    start = threading.Barrier(8)
    won: list[int] = []

    def create(number: int) -> None:
        start.wait()
        if objects.create("claim", str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=create, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert objects.read("claim") == str(won[0]).encode()


def test_the_probe_leaves_nothing(objects: ControlObjects) -> None:
    objects.create("kept", b"")
    objects.probe_create_only()
    assert objects.list() == ["kept"]
    if objects.location.is_local:
        assert [path.name for path in Path(objects.location.path).iterdir()] == ["kept"]


def test_the_probe_refuses_a_place_that_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = ControlObjects(Location.parse(str(tmp_path)))

    def overwriting(name: str, data: bytes) -> bool:
        objects.replace(name, data)
        return True

    monkeypatch.setattr(objects, "create", overwriting)
    with pytest.raises(StorageError, match="second writer") as refused:
        objects.probe_create_only()
    assert refused.value.kind == "configuration"
    assert objects.list() == []


def test_the_probe_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError) as refused:
        ControlObjects(Location.parse(str(tmp_path / "file"))).probe_create_only()
    assert refused.value.kind == "configuration"


def test_a_place_is_probed_once_in_the_life_of_a_process(objects: ControlObjects) -> None:
    objects.require_create_only()
    with measure() as counted:
        objects.require_create_only()
        ControlObjects(objects.location).require_create_only()
    assert counted.total == 0


def test_a_place_that_failed_the_probe_is_probed_again(tmp_path: Path) -> None:
    objects = ControlObjects(Location.parse(str(tmp_path)))
    with faults.armed("before_put"), pytest.raises(StorageError):
        objects.require_create_only()
    with measure() as counted:
        objects.require_create_only()
    assert counted.puts == 2


def test_a_full_disk_says_nothing_of_a_place(tmp_path: Path) -> None:
    def full() -> StorageError:
        return StorageError("no space left on device", kind="permanent")

    objects = ControlObjects(Location.parse(str(tmp_path)))
    with (
        faults.armed("before_put", full),
        pytest.raises(StorageError, match=r"^no space left") as failed,
    ):
        objects.probe_create_only()
    assert failed.value.kind == "permanent"


def test_readers_make_no_directory(tmp_path: Path) -> None:
    objects = ControlObjects(Location.parse(str(tmp_path / "g")))
    assert objects.read("a") is None
    assert objects.list() == []
    objects.delete("a")
    assert not (tmp_path / "g").exists()


def test_odd_characters_in_a_path(tmp_path: Path) -> None:
    objects = ControlObjects(Location.parse(str(tmp_path / "a b%20#?ü")))
    assert objects.create("x.json", b"1")
    assert (tmp_path / "a b%20#?ü" / "x.json").read_bytes() == b"1"
    assert objects.list() == ["x.json"]


def test_requests_are_counted(objects: ControlObjects) -> None:
    with measure() as counted:
        objects.create("a", b"")
        objects.create("a", b"")
        objects.read("a")
        objects.list()
        objects.delete("a")
    assert (counted.puts, counted.gets, counted.lists, counted.deletes) == (2, 1, 1, 1)
    assert counted.total == 5
    assert str(counted) == "1 delete, 1 get, 1 list, 2 put"


def test_a_put_that_fails_before_has_no_effect(objects: ControlObjects) -> None:
    with faults.armed("before_put"), pytest.raises(StorageError, match="injected"):
        objects.create("a", b"1")
    assert objects.read("a") is None


def test_a_lost_acknowledgement_has_an_effect(objects: ControlObjects) -> None:
    with faults.armed("after_put"), pytest.raises(StorageError) as lost:
        objects.create("a", b"1")
    assert lost.value.kind == "transient"
    assert objects.read("a") == b"1"


def test_a_claim_is_won_by_its_owner(objects: ControlObjects) -> None:
    with faults.armed("after_put"):
        assert objects.claim("a", b"mine")
    assert objects.claim("a", b"mine")
    assert not objects.claim("a", b"yours")
    with faults.armed("before_put"), pytest.raises(StorageError, match="injected"):
        objects.claim("b", b"mine")


def test_a_put_that_the_library_repeats_looks_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stores it and answers 500; the second try meets the object of the first."""
    with repeating_server() as endpoint:
        for name, value in S3Server(endpoint).environment.items():
            monkeypatch.setenv(name, value)
        objects = ControlObjects(Location.parse("s3://bucket/g"))
        assert not objects.create("a", b"mine")
        assert objects.read("a") == b"mine"
        assert objects.claim("b", b"mine")


def test_wrong_keys_are_configuration(s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    with pytest.raises(StorageError) as refused:
        ControlObjects(Location.parse(s3_bucket)).read("a")
    assert refused.value.kind == "configuration"
    assert "wrong-secret" not in str(refused.value)


@pytest.mark.slow
def test_nobody_listening_is_transient(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    with pytest.raises(StorageError) as refused:
        ControlObjects(Location.parse("s3://graphs/x")).read("a")
    assert refused.value.kind == "transient"
