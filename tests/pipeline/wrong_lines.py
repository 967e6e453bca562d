"""Lines that are wrong by themselves, in every way that a line can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Values = dict[str, Any]


def line(record: object) -> bytes:
    """A record as one line, without its end."""
    return json.dumps(record, ensure_ascii=False).encode(errors="surrogatepass")


def node(type_: str, **data: Any) -> bytes:
    return line({"type": type_, "data": data})


def edge(type_: str, source: str, target: str, **data: Any) -> bytes:
    return line({"edge": type_, "from": source, "to": target, "data": data})


# What a value of a property must not be; a null is for those that must have one.
MISFITS: dict[str, tuple[Any, ...]] = {
    "id": (None, 5, ["x"], {}, True),
    "name": (7, ["x"], None),
    "email": ("no at sign", "", 5, {"a": 1}),
    "age": (-1, 151, 2**31, "40", 1.5, True, [1]),
    "level": (None, "1", 2.0, -(2**31) - 1),
    "mood": ("angry", "HAPPY", "", 1),
    "tags": ("a", ["a", None], [1], {"0": "a"}, [["a"]]),
    "born": ("2021-02-29", "2021-1-1", "2021-01-01T00:00:00Z", 1.5, 10**9, True),
    "seen": ("2021-01-01T00:00:00", "yesterday", 1e3, -(10**18)),
    "score": (1e39, "1", True, [1.0]),
    "at": ([1, 2], [1, 2, 3, 4], [1, 2, None], [1, 2, 1e39], "1,2,3", [1, 2, "3"]),
    "room": (1, None),
    "day": ("2021-13-01", None, 3.0, "today"),
    "label": (None, 3),
    "size": (-1, 2**64, "1", 0.5),
    "text": (0, False, ["t"]),
    "code": (2**63, "1", 1.0),
    "done": (None, "true", 1, 0),
    "numbers": ([1, None], [1, "2"], 1, [2**31], [1.5]),
    "body": ("base64:===", "base64:a", "https://example.com/x", 1, "text"),
    "budget": (0.25, -1, "1e3", float("nan"), float("inf")),
    "since": ("2020-00-01", {"day": 1}, 2.5),
    "badge": (1, []),
    "weight": (None, "0.5", float("-inf")),
    "ref": (9, [None]),
    "rank": (-1, 2**32, 1.0),
    "on": ("2020-02-30", None, 1.5, []),
}


def _raw(text: str) -> Callable[[str], bytes]:
    return lambda name: text.replace("$", name).encode(errors="surrogatepass")


# Lines that no reader of envelopes may take, `$` being the name of their story; and a few
# that look odd and are right.
BROKEN: tuple[Callable[[str], bytes], ...] = (
    _raw('{"type": "Person", "data": {"name": "$-ann"}'),
    _raw('{"type": "Person", "data": {"name": "$-ann"}} x'),
    _raw('{"type": "Note"}{"type": "Note"}'),
    _raw('[{"type": "Note"}]'),
    _raw('"$"'),
    _raw("null"),
    _raw("42"),
    _raw("{}"),
    _raw("{'type': 'Note'}"),
    _raw("\ufeff"),
    _raw('\ufeff{"type": "Note"}'),
    _raw("\u00a0"),
    _raw("# a comment"),
    _raw('{"type": "Note", "type": "Note"}'),
    _raw('{"type": "Note", "data": {"text": "a", "text": "b"}}'),
    _raw('{"type": "Note", "data": {"text": {"a": 1, "a": 2}}}'),
    _raw('{"edge": "Knows", "from": "$-ann", "from": "$-ben", "to": "$-ann"}'),
    _raw('{"type": "Note", "edge": "Knows", "from": "a", "to": "b"}'),
    _raw('{"data": {"name": "$"}}'),
    _raw('{"type": "Ghost", "data": {}}'),
    _raw('{"type": "note"}'),
    _raw('{"type": "Knows", "data": {}}'),
    _raw('{"edge": "Person", "from": "a", "to": "b"}'),
    _raw('{"edge": "Ghost", "from": "a", "to": "b"}'),
    _raw('{"type": 7}'),
    _raw('{"edge": null, "from": "a", "to": "b"}'),
    _raw('{"type": "Note", "text": "outside"}'),
    _raw('{"type": "Note", "from": "a"}'),
    _raw('{"edge": "Knows", "from": "$-ann"}'),
    _raw('{"edge": "Knows", "to": "$-ann", "data": {}}'),
    _raw('{"edge": "Knows", "from": 1, "to": "$-ann"}'),
    _raw('{"edge": "Knows", "from": "$-ann", "to": null}'),
    _raw('{"edge": "Knows", "from": "$-ann", "to": "$-ben", "data": {"src": "$-ann"}}'),
    _raw('{"type": "Note", "data": null}'),
    _raw('{"type": "Note", "data": []}'),
    _raw('{"type": "Note", "data": "{}"}'),
    _raw('{"type": "Note", "data": {"code": 01}}'),
    _raw('{"type": "Note", "data": {"code": +1}}'),
    _raw('{"type": "Team", "data": {"name": "$", "budget": NaN}}'),
    _raw('{"type": "Team", "data": {"name": "$", "budget": 1e400}}'),
    _raw('{"type": "Team", "data": {"name": "$", "budget": -Infinity}}'),
    _raw('{"type": "Note", "data": {"code": 1' + "0" * 400 + "}}"),
    _raw('{"type": "Note", "data": {"text": "\\ud800"}}'),
    _raw('{"type": "Note", "data": {"text": "\\x"}}'),
    _raw('{"type": "Note", "data": {"text": "\t"}}'),
    _raw('{"type": "Note", "data": {"text": ' + "[" * 1500 + "]" * 1500 + "}}"),
    _raw('{"type": "Person", "data": {}}'),
    _raw('{"type": "Person"}'),
    _raw('{"type": "Person", "data": {"name": "$-ann", "id": "$-ben"}}'),
    _raw('{"type": "Slot", "data": {"room": "$", "day": 1, "label": "$", "id": "$"}}'),
    _raw('{"type": "Slot", "data": {"room": "$", "day": 1, "label": "$", "id": "[\\"1\\"]"}}'),
    _raw('{"edge": "Meets", "from": "$", "to": "$"}'),
    _raw('{"edge": "Meets", "from": "$", "to": "$", "data": {"on": 1, "id": "$"}}'),
    _raw('{"edge": "Meets", "from": 5, "to": "$", "data": {"on": 1, "id": "[]"}}'),
    lambda name: b'{"type": "Note", "data": {"text": "\xff\xfe' + name.encode() + b'"}}',
    lambda name: b'{"type": "Person", "data": {"name": "' + name.encode() + b'\xc3"}}',
    lambda name: '{"type": "Note", "data": {"text": "$"}}'.replace("$", name).encode("utf-16-le"),
    lambda _: b"\xed\xa0\x80",
    lambda _: b"\x00",
    # Right, and blank.
    _raw('  {"type": "Note"}\t'),
    _raw('{"data": {"text": "\\u0000\\ud83d\\ude00"}, "type": "Note"}'),
    _raw(" \t\x0b\x0c "),
    _raw(""),
)


SURPLUS = ("nmae", "Name", "type", "_rowid", "_rowaddr", "_rowoffset", "_tombstone", "src", "dst")
_PLAIN: dict[str, Values] = {
    "Person": {"name": "$"},
    "Slot": {"room": "$", "day": 0, "label": "$"},
    "Note": {},
    "Team": {"name": "$"},
    "Knows": {},
    "Boss": {},
    "Holds": {},
    "About": {},
    "Wrote": {},
    "Meets": {"on": 0},
}
_OWN = {
    "Person": "name email age level mood tags born seen score at",
    "Slot": "room day label size",
    "Note": "text code done numbers body",
    "Team": "name budget",
    "Knows": "since",
    "Boss": "badge",
    "Holds": "weight",
    "About": "",
    "Wrote": "ref rank",
    "Meets": "on weight ref",
}


def catalogue(name: str) -> list[bytes]:
    """Every broken line, every misfit and every member too many, once each."""
    lines = [broken(name) for broken in BROKEN]
    for type_, own in _OWN.items():
        spoilt = [(key, value) for key in ["id", *own.split()] for value in MISFITS[key]]
        for at, (key, value) in enumerate([*spoilt, *((key, "x") for key in SURPLUS)]):
            plain = {k: f"{name}{type_}{at}" if v == "$" else v for k, v in _PLAIN[type_].items()}
            data = plain | {key: value}
            is_node = type_ in ("Person", "Slot", "Note", "Team")
            lines.append(node(type_, **data) if is_node else edge(type_, name, name, **data))
    return lines
