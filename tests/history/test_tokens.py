"""Tokens: they come back as they went out, and nothing else is taken for one."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ChangeCursorRejected
from omnigraph.history.changes import Change, TypeRef
from omnigraph.history.position import (
    LONG_ID,
    MAX_LENGTH,
    ChangePosition,
    LongId,
    TokenKind,
    seal,
    unseal,
)

BINDING = {"domain": "d", "branch": "b", "incarnation": None, "filter": "f"}
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLACES = st.dictionaries(TEXTS, TEXTS | st.integers(0, 2**53) | st.none(), max_size=4)


def refused(text: str, kind: TokenKind = "feed-cursor", **binding: Any) -> str:
    with pytest.raises(ChangeCursorRejected) as error:
        unseal(text, kind, {**BINDING, **binding})
    message = str(error.value)
    assert message.startswith("change cursor rejected: ")
    return message


@given(PLACES)
def test_a_token_comes_back(place: dict[str, Any]) -> None:
    text = seal("feed-cursor", BINDING, place)
    assert set(text) <= set(ALPHABET)
    assert unseal(text, "feed-cursor", BINDING) == place


@given(st.data())
def test_every_altered_token_is_refused(data: st.DataObject) -> None:
    text = seal("feed-cursor", BINDING, {"commit": "01KA5QWZ7N4T3M8YB0C2D6E9FG"})
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(ALPHABET).filter(lambda character: character != text[at]))
    refused(text[:at] + other + text[at + 1 :])
    refused(text[:at])
    refused(text[:at] + other + text[at:])
    refused(text + other)


@pytest.mark.slow
@given(st.text() | st.text(ALPHABET))
def test_no_other_text_is_a_token(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("text", ["", "=", "é", "AAAA=", "a b", "\n", "A" * 43, "A" * 10_000])
def test_what_is_no_token_is_refused(text: str) -> None:
    refused(text)


def test_padding_and_blanks_are_not_overlooked() -> None:
    text = seal("feed-cursor", BINDING, {})
    for other in (f"{text}=", f"{text}==", f" {text}", f"{text}\n", f"{text[:9]} {text[9:]}"):
        refused(other)


def test_a_token_is_bound_to_all_that_it_belongs_to() -> None:
    text = seal("feed-cursor", BINDING, {})
    assert "another graph" in refused(text, domain="e")
    assert "another branch" in refused(text, branch="c")
    assert "created anew" in refused(text, incarnation="01")
    assert "other kinds" in refused(text, filter="g")
    assert "not a feed-page" in refused(text, "feed-page")


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"v": 2, "kind": "feed-cursor", "for": BINDING, "at": {}},
        {"v": 1, "kind": "feed-cursor", "for": [], "at": {}},
        {"v": 1, "kind": "feed-cursor", "for": BINDING, "at": None},
        {"v": 1, "kind": "feed-cursor", "for": BINDING},
        {"v": 1, "kind": "feed-cursor", "for": BINDING, "at": {}, "more": 1},
    ],
)
def test_a_hash_alone_does_not_make_a_token(content: Any) -> None:
    data = msgspec.json.encode(content)
    refused(urlsafe_b64encode(data + sha256(data).digest()).rstrip(b"=").decode())


# -- positions ---------------------------------------------------------------------

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400)


def behind(id_: str) -> ChangePosition:
    return ChangePosition.of(Change("node", TypeRef("t", "T"), id_, "delete"))


@given(IDS)
def test_a_position_comes_back(id_: str) -> None:
    position = behind(id_)
    assert ChangePosition.from_json(position.to_json()) == position
    assert isinstance(position.id, LongId) == (len(id_.encode()) > LONG_ID)
    assert len(seal("feed-page", BINDING, position.to_json())) <= MAX_LENGTH


@given(st.sets(IDS | st.text("ab", min_size=250, max_size=260), min_size=1), st.data())
def test_a_position_is_found_again(ids: set[str], data: st.DataObject) -> None:
    ordered = sorted(ids, key=str.encode)
    at = data.draw(st.integers(0, len(ordered) - 1))
    cut = data.draw(st.integers(0, len(ordered)))
    position: ChangePosition | None = behind(ordered[at])
    left = []
    for part in (ordered[:cut], ordered[cut:]):
        if position is None:
            left += part
        elif part:
            count, is_passed = position.skipped(pa.array(part))
            left += part[count:]
            position = None if is_passed else position
    assert left == ordered[at + 1 :]


def test_a_long_id_that_is_not_there_is_noticed() -> None:
    position = behind("b" * 300)
    with pytest.raises(ChangeCursorRejected, match="not there"):
        position.skipped(pa.array(["a", "c"]))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "node", "type": "t"},
        {"kind": "thing", "type": "t", "id": "a"},
        {"kind": "node", "type": 1, "id": "a"},
        {"kind": "node", "type": "t", "id": 1},
        {"kind": "node", "type": "t", "prefix": "YQ==", "sha256": "a"},
        {"kind": "node", "type": "t", "prefix": None, "sha256": None},
    ],
)
def test_what_says_no_position_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ChangeCursorRejected, match="position"):
        ChangePosition.from_json(body)
