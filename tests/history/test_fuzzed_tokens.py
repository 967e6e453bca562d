"""Cursors and page tokens that somebody made up: an answer, or a refusal of ours."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.history.position import MAX_LENGTH
from tests import fuzzing
from tests.profile import costly

KEYS = st.sampled_from(["commit", "kind", "type", "id", "prefix", "sha256", "v", "for", "at"])
# As deep as a token is long, and deeper than Python's stack.
DEEP = "[" * (MAX_LENGTH // 2)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("tokens") / "graph", "node P { name: String @key }")
    for part in range(3):
        names = [f"{part}-{number}" for number in range(3)]
        made.load([{"type": "P", "data": {"name": name}} for name in names], mode="append")
    return made


def tokens(graph: og.Graph) -> dict[str, str]:
    page = graph.changes.poll(start="beginning", limit=2)
    assert page.next_page_token is not None
    cursor = graph.changes.poll().cursor
    assert cursor is not None
    commit = graph.commits.list()[0].id
    first = graph.commits.changes(commit, limit=1)
    assert first.next_page_token is not None
    return {
        "cursor": cursor,
        "page_token": page.next_page_token,
        "of_commit": first.next_page_token,
    }


def content(token: str) -> dict[str, Any]:
    data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    found: dict[str, Any] = json.loads(data[:-32])
    return found


def sealed(data: bytes) -> str:
    """A token whose seal is right, whatever is in it."""
    return urlsafe_b64encode(data + sha256(data).digest()).rstrip(b"=").decode()


def use(graph: og.Graph, kind: str, token: Any) -> None:
    with fuzzing.only_our_errors():
        if kind == "of_commit":
            graph.commits.changes(graph.commits.list()[0].id, page_token=token)
        else:
            graph.changes.poll(**{kind: token})


KINDS = st.sampled_from(["cursor", "page_token", "of_commit"])


@pytest.mark.slow
@costly
@given(KINDS, st.dictionaries(KEYS, fuzzing.JSON_VALUES, max_size=3), st.booleans())
def test_places_that_somebody_made_up(
    graph: og.Graph, kind: str, changed: dict[str, Any], outer: bool
) -> None:
    body = content(tokens(graph)[kind])
    (body if outer else body["at"]).update(changed)
    use(graph, kind, sealed(json.dumps(body, separators=(",", ":"), sort_keys=True).encode()))


@pytest.mark.slow
@given(KINDS, st.binary(max_size=60) | st.text(max_size=20).map(str.encode))
@example("cursor", DEEP.encode())
@example("page_token", b'{"v":' + DEEP.encode())
@example("of_commit", b"")
def test_anything_with_a_right_seal(graph: og.Graph, kind: str, data: bytes) -> None:
    use(graph, kind, sealed(data))


@given(KINDS, st.text(max_size=40) | st.text("ABCabc019-_=+/", max_size=80))
@example("cursor", "\ud800")
@example("cursor", "A" * 5000)
def test_any_text(graph: og.Graph, kind: str, token: str) -> None:
    use(graph, kind, token)
