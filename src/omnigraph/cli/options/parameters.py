"""The parameters of a query on the command line: `--params` and `--params-file`.

Owns reading the JSON and refusing what is ambiguous in it. The types of the values
are checked by the language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from omnigraph.errors import ParamError


def read_params(text: str | None, path: Path | None) -> Mapping[str, Any] | None:
    """The parameters by name; None when there are none."""
    if text is not None and path is not None:
        raise click.UsageError("give --params JSON or --params-file FILE, not both")
    if path is not None:
        from omnigraph.cli.options.source_files import read_source

        return _decode(read_source(path).text, str(path))
    return None if text is None else _decode(text, "--params")


def _decode(text: str, where: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text, object_pairs_hook=_members, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ParamError(f"{where} is not JSON: {error.msg} ({place})") from None
    except (ValueError, RecursionError) as error:
        raise ParamError(f"{where} is not JSON that can be used: {error}") from None
    if found is None or isinstance(found, dict):
        return found
    raise ParamError(f'{where} must be a JSON object, like {{"name": "Ann"}}')


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {repeated!r} is given twice")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
