"""Stored JSON documents as structs: read strictly, written canonically, hashed.

Owns the base of every document, its bytes and the complaints about a text that is
none, which name the path to what is wrong. Never knows what a document means.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from omnigraph.errors import SchemaError

Json = dict[str, Any]

MAX_ID = 2**64 - 1

Identity = Annotated[int, msgspec.Meta(ge=1)]
"""A stable id; zero is never one."""
# A lone surrogate can be spelled in JSON, but never stored or hashed.
Text = Annotated[str, msgspec.Meta(pattern="^[^\ud800-\udfff]*$")]

_WORDING = (
    (r"Object contains unknown field (`.*`)", r"unknown field \1"),
    (r"Object missing required field (`.*`)", r"the field \1 is missing"),
    (r"Expected `bool`.*", "expected true or false"),
    (r"Expected `int` >= 1", "an identity is never zero"),
    (r"Expected `str` matching regex .*", "the string is not valid Unicode"),
)
_COMPLAINT = re.compile(r"(?:\.(\w+): )?(.*?)(?: - at (?:.* in )?`\$\.?([^`]*)`)?", re.DOTALL)


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object: the fields in their order are its contract."""

    def to_json(self) -> Json:
        """The document as plain data."""
        return dict(msgspec.json.decode(msgspec.json.encode(self)))

    def render(self) -> str:
        """The document for people, with a line break at the end."""
        plain = msgspec.to_builtins(self)
        return json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False) + "\n"

    def digest(self) -> str:
        """The hash of the document: SHA-256 over its compact JSON."""
        text = compact(msgspec.to_builtins(self))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


_Read = TypeVar("_Read", bound=Document)


def compact(plain: Any) -> str:
    """JSON without blanks, fields in the order they were put in."""
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def misfit(field: str, problem: str) -> ValueError:
    """What a document raises when one of its fields contradicts the others."""
    return ValueError(f".{field}: {problem}")


def read_document(
    text: str | bytes, kind: type[_Read], name: str, choices: Mapping[str, str]
) -> _Read:
    """The document a text holds; SchemaError says what is wrong with any other text.

    ``choices`` words what a field expects that takes only certain values.
    """
    try:
        raw = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"invalid {name}: {error}") from None
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise SchemaError(f"invalid {name}{_worded(str(error), choices)}") from None
    except UnicodeError:
        raise SchemaError(f"invalid {name}: a string is not valid Unicode") from None


def _worded(complaint: str, choices: Mapping[str, str]) -> str:
    """A complaint of the decoder in our words: ` at path: problem`."""
    found = _COMPLAINT.fullmatch(complaint)
    field, problem, path = found.groups() if found else (None, complaint, None)
    where = ".".join(filter(None, (path, field)))
    last = re.search(r"(\w+)(?:\[[^]]*\])*$", where)
    if problem.startswith("Invalid") and last and last[1] in choices:
        problem = choices[last[1]]
    for pattern, wording in _WORDING:
        problem = re.sub(pattern, wording, problem, flags=re.DOTALL)
    problem = problem[:1].lower() + problem[1:]
    return f" at {where}: {problem}" if where else f": {problem}"


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")
