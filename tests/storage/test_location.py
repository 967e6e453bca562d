from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.errors import BadRequest
from omnigraph.storage.objects.location import Location, s3_options


@pytest.fixture(autouse=True)
def no_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("/data/g.omni", "/data/g.omni"),
        ("/data//x/../g.omni/", "/data/g.omni"),
        ("file:///data/g.omni", "/data/g.omni"),
        ("file://localhost/data/a%20b%23", "/data/a b#"),
        ("FILE:///data/g", "/data/g"),
        ("/data/a b%20?#:ü", "/data/a b%20?#:ü"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket//a/b/", "s3://bucket/a/b"),
    ],
)
def test_what_lance_opens(text: str, uri: str) -> None:
    location = Location.parse(text)
    assert location.uri == uri
    assert str(location) == uri
    assert location.is_local == uri.startswith("/")


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location.parse("g.omni").uri == str(tmp_path / "g.omni")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("a\0b", "empty"),
        ("http://host/g", "http:// is not supported"),
        ("memory://g", "memory:// is not supported"),
        ("gs://bucket/g", "gs:// is not supported"),
        ("s3://", "the bucket is missing"),
        ("s3:///prefix", "the bucket is missing"),
        ("s3://bucket/a/../b", "not allowed"),
        ("s3://bucket/a?x=1", "not allowed"),
        ("file://host/g", "absolute path"),
        ("file://g", "absolute path"),
        ("file:///g?x", "%3F"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        Location.parse(text)


@pytest.mark.parametrize("text", ["s3://key:hush@bucket/g", "http://me:hush@host/g"])
def test_a_refusal_repeats_no_password(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Location.parse(text)
    assert "hush" not in str(refused.value)


def test_join() -> None:
    assert Location.parse("/g").join("nodes", "a/b").uri == "/g/nodes/a/b"
    assert Location.parse("s3://b").join("nodes").uri == "s3://b/nodes"
    assert Location.parse("/").join("g").uri == "/g"
    with pytest.raises(BadRequest):
        Location.parse("/g").join("../other")


def test_bucket_and_prefix() -> None:
    location = Location.parse("s3://bucket/a/b")
    assert (location.bucket, location.prefix) == ("bucket", "a/b")
    assert Location.parse("s3://bucket").prefix == ""
    assert Location.parse("/a").bucket is None


def test_a_local_disk_has_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    assert Location.parse("/g").storage_options == {}


def test_without_variables_the_usual_chain_decides() -> None:
    assert s3_options() == {}


def test_all_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "https://general.example",
        "AWS_ENDPOINT_URL_S3": "https://s3.example",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_SESSION_TOKEN": "token",
        "AWS_ALLOW_HTTP": "1",
        "AWS_S3_FORCE_PATH_STYLE": "true",
    }.items():
        monkeypatch.setenv(name, value)
    location = Location.parse("s3://b/g")
    assert s3_options() == {
        "aws_endpoint": "https://s3.example",
        "aws_region": "eu-central-1",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "hush",
        "aws_session_token": "token",
        "allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
    }
    assert "hush" not in f"{location} {location!r}"


def test_an_http_endpoint_allows_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert s3_options() == {
        "aws_endpoint": "http://127.0.0.1:1",
        "aws_region": "us-east-1",
        "allow_http": "true",
    }


@pytest.mark.parametrize("off", ["", "0", "false", "False"])
def test_flags_that_are_off(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ALLOW_HTTP", off)
    monkeypatch.setenv("AWS_S3_FORCE_PATH_STYLE", off)
    assert s3_options() == {}
