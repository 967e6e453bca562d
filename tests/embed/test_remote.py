"""Remote providers: what they are asked, and what becomes of every way they can answer."""

from __future__ import annotations

import json
import logging
import pickle
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from omnigraph.embed import endpoint
from omnigraph.embed.configuration import EmbedderConfig, Patience
from omnigraph.embed.protocol import Role
from omnigraph.embed.providers import embedder_of
from omnigraph.embed.remote import CONCURRENCY
from omnigraph.errors import EmbeddingError
from tests.embed.vector_server import (
    KEY,
    Answer,
    Asked,
    VectorServer,
    error,
    right,
    serving,
    vectors_of,
)

HASTY = Patience(timeout_ms=5000, deadline_ms=0, attempts=4, backoff_ms=0)
GEMINI = "https://generativelanguage.googleapis.com/v1beta"
PROVIDERS = ["openai-compatible", "openai", "gemini"]


def config(server: VectorServer, provider: str = "openai", **changes: Any) -> EmbedderConfig:
    made = EmbedderConfig(provider, "small", base_url=server.url, api_key=KEY, patience=HASTY)
    return replace(made, **changes)


def embed(config: EmbedderConfig, texts: list[str], dimension: int = 4) -> Any:
    return embedder_of(config).embed(texts, dimension)


def refused(config: EmbedderConfig, texts: list[str] | None = None) -> EmbeddingError:
    """The error of a call, which says nothing of the key."""
    with pytest.raises(EmbeddingError) as caught:
        embed(config, texts or ["a"])
    found: BaseException | None = caught.value
    while found is not None:
        assert KEY not in f"{found} {found!r} {vars(found)}"
        found = found.__cause__ or found.__context__
    assert KEY.encode() not in pickle.dumps(caught.value)
    return caught.value


# -- what is asked -----------------------------------------------------------------


def test_the_openai_shape(server: VectorServer) -> None:
    found = embed(config(server), ["a", "b"], 3)
    (asked,) = server.asked
    assert asked.path == "/embeddings"
    assert asked.body == {"model": "small", "input": ["a", "b"], "dimensions": 3}
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert np.allclose(found * 3, vectors_of(["a", "b"], 3))


@pytest.mark.parametrize(
    ("role", "task"), [("document", "RETRIEVAL_DOCUMENT"), ("query", "RETRIEVAL_QUERY")]
)
def test_the_gemini_shape(server: VectorServer, role: Role, task: str) -> None:
    embedder = embedder_of(config(server, "gemini", base_url=f"{server.url}/v1beta/"))
    found = embedder.embed(["a", "b"], 3, role)
    assert [asked.path for asked in server.asked] == ["/v1beta/models/small:embedContent"] * 2
    (first,) = (asked for asked in server.asked if asked.texts == ["a"])
    assert first.body == {
        "model": "models/small",
        "content": {"parts": [{"text": "a"}]},
        "taskType": task,
        "outputDimensionality": 3,
    }
    assert first.headers["x-goog-api-key"] == KEY
    assert "authorization" not in first.headers
    assert np.allclose(found * 3, vectors_of(["a", "b"], 3, task))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_vectors_have_length_one(server: VectorServer, provider: str) -> None:
    found = embed(config(server, provider), ["a", "b"])
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1)


@pytest.mark.parametrize(
    ("environ", "url", "model", "key"),
    [
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai-compatible", "OPENROUTER_API_KEY": "r"},
            "https://openrouter.ai/api/v1/embeddings",
            "openai/text-embedding-3-large",
            {"authorization": "Bearer r"},
        ),
        (
            {
                "OMNIGRAPH_EMBED_PROVIDER": "openai-compatible",
                "OPENROUTER_API_KEY": "r",
                "OPENAI_API_KEY": "o",
            },
            "https://openrouter.ai/api/v1/embeddings",
            "openai/text-embedding-3-large",
            {"authorization": "Bearer r"},
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai-compatible", "OPENAI_API_KEY": "o"},
            "https://openrouter.ai/api/v1/embeddings",
            "openai/text-embedding-3-large",
            {"authorization": "Bearer o"},
        ),
        (
            {
                "OMNIGRAPH_EMBED_PROVIDER": "openai",
                "OPENROUTER_API_KEY": "r",
                "OPENAI_API_KEY": "o",
            },
            "https://api.openai.com/v1/embeddings",
            "text-embedding-3-large",
            {"authorization": "Bearer o"},
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "gemini", "GEMINI_API_KEY": " g "},
            f"{GEMINI}/models/gemini-embedding-2:embedContent",
            "gemini-embedding-2",
            {"x-goog-api-key": "g"},
        ),
    ],
)
def test_what_is_asked_when_little_is_set(
    environ: dict[str, str],
    url: str,
    model: str,
    key: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[tuple[str, dict[str, str], Any]] = []

    def post(url: str, headers: dict[str, str], body: bytes, _: float) -> endpoint.Reply:
        sent.append((url, headers, json.loads(body)))
        return endpoint.Reply(400, b"{}")

    monkeypatch.setattr("omnigraph.embed.endpoint.post", post)
    embedder = embedder_of(EmbedderConfig.of_environment(environ))
    with pytest.raises(EmbeddingError):
        embedder.embed(["a"], 8)
    assert embedder.model == model
    ((asked, headers, body),) = sent
    assert (asked, headers) == (url, key)
    assert body["model"].removeprefix("models/") == model


# -- many texts --------------------------------------------------------------------


def test_many_texts_are_few_requests(server: VectorServer) -> None:
    texts = [f"text {number}" for number in range(300)]
    found = embed(config(server), texts)
    assert np.allclose(found * 3, vectors_of(texts, 4))
    assert sorted(len(asked.texts) for asked in server.asked) == [44, 128, 128]
    assert sorted(server.texts) == sorted(texts)


def test_a_request_has_few_bytes_too(server: VectorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.embed.remote.MAX_REQUEST_BYTES", 100)
    texts = ["a" * 50, "b" * 50, "c" * 50, "d" * 120, "é" * 51, "f" * 98]
    found = embed(config(server), texts)
    assert np.allclose(found * 3, vectors_of(texts, 4))
    sent = sorted("".join(text[0] for text in asked.texts) for asked in server.asked)
    assert sent == ["ab", "c", "d", "f", "é"]


def test_one_failure_ends_the_call(server: VectorServer) -> None:
    texts = [f"text {number}" for number in range(128 * 10 * CONCURRENCY)]
    server.respond = lambda _: error(401, "no")
    assert refused(config(server), texts).kind == "refused"
    assert len(server.asked) <= CONCURRENCY


@pytest.mark.parametrize(
    "spell",
    [
        lambda data: data[::-1],
        lambda data: [{"embedding": one["embedding"]} for one in data],
        lambda data: [{**one, "index": one["index"] or None} for one in data[::-1]],
    ],
    ids=["reversed", "without indexes", "without the index 0"],
)
def test_vectors_are_placed_by_their_index(
    server: VectorServer, spell: Callable[[list[Any]], list[Any]]
) -> None:
    def respond(asked: Asked) -> Answer:
        body = json.loads(right(asked).body)
        return Answer(body=json.dumps({"data": spell(body["data"])}))

    server.respond = respond
    texts = ["a", "b", "c"]
    assert np.allclose(embed(config(server), texts) * 3, vectors_of(texts, 4))


# -- failures that pass ------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "bad",
    [
        error(429, "slow down"),
        error(500, "oops"),
        Answer(502, "<html>bad gateway</html>"),
        Answer(503),
        Answer(529, "overloaded"),
    ],
    ids=lambda answer: str(answer.status),
)
def test_what_may_pass_is_tried_again(server: VectorServer, provider: str, bad: Answer) -> None:
    server.next = [bad, bad, bad]
    embed(config(server, provider), ["a"])
    assert len(server.asked) == 4


@pytest.mark.parametrize("status", [429, 500, 503])
def test_four_times_and_no_more(server: VectorServer, status: int) -> None:
    server.respond = lambda _: error(status, "no luck today")
    found = refused(config(server))
    assert found.kind == "unavailable"
    assert len(server.asked) == 4
    assert found.details["status"] == status
    assert "no luck today" in str(found)
    assert "tried 4 times" in str(found)
    assert "later" in str(found)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_what_will_not_pass_is_not_tried_again(server: VectorServer, status: int) -> None:
    server.respond = lambda _: error(status, "no")
    refused(config(server))
    assert len(server.asked) == 1


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        monkeypatch.setattr(endpoint, "monotonic", lambda: self.now)
        monkeypatch.setattr(endpoint, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_pauses_double(server: VectorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    server.respond = lambda _: error(500, "no")
    refused(config(server, patience=Patience()))
    assert clock.slept == [0.2, 0.4, 0.8]


def test_a_wish_for_a_longer_pause_is_granted(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    server.next = [error(429, "wait", retry_after="7"), error(429, "wait", retry_after="0")]
    embed(config(server, patience=Patience()), ["a"])
    assert clock.slept == [7, 0.4]


def test_a_wish_may_be_a_moment(server: VectorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    past, future = "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2990 07:28:00 GMT"
    server.next = [error(429, "wait", retry_after=past), error(503, "wait", retry_after="soon")]
    embed(config(server, patience=Patience()), ["a"])
    assert clock.slept == [0.2, 0.4]
    server.next = [error(429, "wait", retry_after=future)]
    assert refused(config(server, patience=Patience())).kind == "unavailable"


def test_nobody_waits_beyond_the_deadline(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    server.respond = lambda _: error(429, "wait", retry_after="25")
    found = refused(config(server, patience=Patience()))
    assert clock.slept == [25, 25]
    assert "for 25 s" in str(found)
    assert "tried 3 times" in str(found)


def test_without_a_deadline_one_waits(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    server.respond = lambda _: error(429, "wait", retry_after="3600")
    refused(config(server, patience=Patience(deadline_ms=0)))
    assert clock.slept == [3600] * 3


def test_a_server_that_does_not_answer(server: VectorServer) -> None:
    server.respond = lambda _: Answer(hangs=True)
    hasty = Patience(timeout_ms=50, deadline_ms=0, attempts=2, backoff_ms=0)
    found = refused(config(server, patience=hasty))
    assert found.kind == "unavailable"
    assert "no answer within 0.05 s; tried 2 times" in str(found)
    assert len(server.asked) == 2


def test_the_deadline_shortens_an_attempt(server: VectorServer) -> None:
    server.respond = lambda _: Answer(hangs=True)
    hasty = Patience(timeout_ms=30_000, deadline_ms=60, attempts=4, backoff_ms=1000)
    found = refused(config(server, patience=hasty))
    assert "tried once" in str(found)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    found = refused(
        EmbedderConfig("openai", base_url=f"http://127.0.0.1:{port}", api_key=KEY, patience=HASTY)
    )
    assert found.kind == "unavailable"
    assert f"cannot be reached at http://127.0.0.1:{port}/embeddings" in str(found)
    assert "OMNIGRAPH_EMBED_BASE_URL" in str(found)
    assert found.details["attempts"] == 4


# -- answers that are wrong --------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "<html><body>Please log in</body></html>",
        "[]",
        '{"data": []}',
        '{"data": [{"index": 0, "embedding": null}], "embedding": {"values": null}}',
        '{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1]}], "embedding": {"values": [NaN]}}',
        '{"data": [{"index": 0, "embedding": ["a"]}], "embedding": {"values": ["a"]}}',
        '{"data": [{"index": 7, "embedding": [1, 1, 1, 1]}], "embedding": {}}',
        b"\xff\xfe\x00",
        "[" * 100_000,
    ],
    ids=["empty", "cut", "html", "list", "none", "null", "nan", "text", "index", "bytes", "deep"],
)
def test_an_answer_without_vectors(server: VectorServer, provider: str, body: str | bytes) -> None:
    server.respond = lambda _: Answer(body=body)
    found = refused(config(server, provider))
    assert found.kind == "bad_answer"
    assert f"'{provider}' gives an answer without the vectors" in str(found)
    assert "OMNIGRAPH_EMBED_BASE_URL" in str(found)
    assert len(server.asked) == 1


def test_too_few_vectors(server: VectorServer) -> None:
    server.respond = lambda _: Answer(body='{"data": [{"index": 0, "embedding": [1, 1, 1, 1]}]}')
    found = refused(config(server), ["a", "b"])
    assert found.kind == "bad_answer"
    assert "1 vectors for 2 texts" in str(found)


def with_first(asked: Asked, vector: list[float]) -> Answer:
    body = json.loads(right(asked).body)
    if "embedding" in body:
        body["embedding"]["values"] = vector
    else:
        body["data"][0]["embedding"] = vector
    return Answer(body=json.dumps(body))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("length", [0, 3, 5])
def test_a_vector_of_another_length(server: VectorServer, provider: str, length: int) -> None:
    server.respond = lambda asked: with_first(asked, [1.0] * length)
    found = refused(config(server, provider))
    assert found.kind == "dimension"
    assert (found.details["dimension"], found.details["actual"]) == (4, length)
    assert f"makes vectors of {length} numbers" in str(found)
    assert "OMNIGRAPH_EMBED_MODEL" in str(found)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("number", [0.0, 1e200], ids=["zero", "beyond reach"])
def test_a_vector_without_a_direction(server: VectorServer, provider: str, number: float) -> None:
    server.respond = lambda asked: with_first(asked, [number] * 4)
    found = refused(config(server, provider), ["some text"])
    assert found.kind == "bad_answer"
    assert "no vector for the text 'some text'" in str(found)
    assert found.position == 0


# -- refusals ----------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted(server: VectorServer, provider: str, status: int) -> None:
    server.respond = lambda _: error(status, f"Incorrect API key provided: {KEY}")
    found = refused(config(server, provider))
    assert found.kind == "refused"
    assert f"does not accept the API key (status {status})" in str(found)
    wanted = {
        "openai": "OPENAI_API_KEY",
        "gemini": "GEMINI_API_KEY",
        "openai-compatible": "OPENROUTER_API_KEY or OPENAI_API_KEY",
    }
    assert str(found).endswith(f"check {wanted[provider]}")


@pytest.mark.parametrize("status", [400, 402, 409, 500])
def test_what_a_provider_says_is_told_without_the_key(server: VectorServer, status: int) -> None:
    server.respond = lambda _: error(status, f"credits of {KEY}\n are used up")
    assert "credits of *** are used up" in str(refused(config(server)))


def test_a_long_story_is_cut(server: VectorServer) -> None:
    server.respond = lambda _: error(409, "word " * 1000)
    assert len(str(refused(config(server)))) < 400


@pytest.mark.parametrize(
    "body",
    ['{"error": "no money"}', '{"message": "no money"}', '{"detail": "no money"}', "no money"],
)
def test_a_reason_is_found_wherever_it_stands(server: VectorServer, body: str) -> None:
    server.respond = lambda _: Answer(402, body)
    found = refused(config(server))
    assert found.kind == "refused"
    assert "refuses the request (status 402: no money)" in str(found)


def test_an_error_page_is_not_repeated(server: VectorServer) -> None:
    server.respond = lambda _: Answer(405, "<!doctype html><p>Not allowed</p>")
    assert "(status 405: a web page)" in str(refused(config(server)))


@pytest.mark.parametrize(
    "answer",
    [
        error(404, "models/small is not found for API version v1beta"),
        error(404, "no such page"),
        error(400, "small is not a valid model ID"),
        error(400, "The model `small` does not exist"),
    ],
)
def test_an_unknown_model(server: VectorServer, answer: Answer) -> None:
    server.respond = lambda _: answer
    found = refused(config(server))
    assert found.kind == "model"
    assert "has no model 'small'" in str(found)
    assert "OMNIGRAPH_EMBED_MODEL" in str(found)


def test_a_redirect_is_not_followed(server: VectorServer) -> None:
    with serving() as other:
        server.respond = lambda _: Answer(307, headers={"location": f"{other.url}/embeddings"})
        found = refused(config(server))
        assert other.asked == []
    assert found.kind == "bad_answer"
    assert "status 307" in str(found)


LIMIT = "This model's maximum context length is 10 tokens"


def short_only(asked: Asked) -> Answer | None:
    return error(400, LIMIT) if any(len(text) > 10 for text in asked.texts) else None


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("at", [0, 3, 6])
def test_the_text_that_is_too_long_is_found(server: VectorServer, provider: str, at: int) -> None:
    server.respond = short_only
    texts = [f"text {number}" for number in range(7)]
    texts[at] = "much too long a text"
    found = refused(config(server, provider), texts)
    assert found.kind == "text_too_long"
    assert found.position == at
    assert LIMIT in str(found)
    assert "shorten the text" in str(found)


@pytest.mark.parametrize(
    "answer",
    [
        error(413, "Payload Too Large"),
        error(400, "max 3 tokens allowed per request, maximum size exceeded"),
        error(422, "batch size 7 > maximum allowed batch size 2"),
    ],
)
def test_what_is_too_much_at_once_is_asked_for_in_parts(
    server: VectorServer, answer: Answer
) -> None:
    server.respond = lambda asked: answer if len(asked.texts) > 2 else None
    texts = [f"text {number}" for number in range(7)]
    assert np.allclose(embed(config(server), texts) * 3, vectors_of(texts, 4))


def test_too_many_dimensions_are_not_a_long_text(server: VectorServer) -> None:
    server.respond = lambda _: error(400, "dimensions exceed the maximum size of 2")
    assert refused(config(server), ["a", "b"]).kind == "refused"
    assert len(server.asked) == 1


# -- settings that cannot work -----------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai-compatible", "OPENROUTER_API_KEY or OPENAI_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ],
)
def test_a_key_is_needed(provider: str, variable: str) -> None:
    found = refused(EmbedderConfig(provider))
    assert found.kind == "configuration"
    assert str(found).endswith(f"needs an API key: set {variable}")


def test_a_server_of_ones_own_may_need_no_key(server: VectorServer) -> None:
    embed(config(server, "openai-compatible", api_key=None), ["a"])
    assert "authorization" not in server.asked[0].headers
    for provider in ("openai", "gemini"):
        assert refused(config(server, provider, api_key=None)).kind == "configuration"


@pytest.mark.parametrize("key", [f"{KEY}\n{KEY}", f"{KEY} x", f"{KEY}é", f"{KEY}\x00"])
def test_an_odd_key_is_not_sent(server: VectorServer, key: str) -> None:
    found = refused(config(server, api_key=key))
    assert found.kind == "configuration"
    assert "OPENAI_API_KEY" in str(found)
    assert server.asked == []


@pytest.mark.parametrize(
    "url", ["localhost:11434", "ftp://x/v1", "https://", "http://[::1", "http://x:port", "x"]
)
def test_an_address_that_is_none(url: str) -> None:
    found = refused(EmbedderConfig("openai", base_url=url, api_key=KEY))
    assert found.kind == "configuration"
    assert "OMNIGRAPH_EMBED_BASE_URL" in str(found)


@pytest.mark.parametrize(
    "url", [f"https://me:{KEY}@x/v1", f"https://{KEY}@x/v1", f"https://x/v1?key={KEY}"]
)
def test_a_key_in_the_address_is_refused(url: str) -> None:
    found = refused(EmbedderConfig("openai-compatible", base_url=url))
    assert found.kind == "configuration"
    assert "OMNIGRAPH_EMBED_BASE_URL" in str(found)


def test_the_key_is_not_shown(server: VectorServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    described = config(server)
    embedder = embedder_of(described)
    embedder.embed(["a"], 4)
    shown = f"{described!r} {described} {embedder!r} {embedder._made!r}"
    asked = embedder._made.inner.endpoint()  # type: ignore[union-attr]
    assert KEY not in f"{shown} {asked!r}"
    assert caplog.text
    assert KEY not in caplog.text
    assert pickle.loads(pickle.dumps(described)) == described  # noqa: S301 - our own bytes
