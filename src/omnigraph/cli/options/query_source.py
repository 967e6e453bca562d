"""The texts and the values of queries: source files, parameters, the state that is looked at.

Owns `--params` and `--params-file`, and reading and replacing source files: what cannot be read
is an error that names the file; a file is replaced whole or not at all.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from omnigraph.cli.options.shared import BranchOption, together
from omnigraph.errors import BadRequest, ParamError
from omnigraph.storage.objects.files import replaced_file

if TYPE_CHECKING:
    from omnigraph.lang.source import Source

_FILE = click.Path(path_type=Path)
_SINGLE = re.compile(r"\$?([A-Za-z_]\w*)\s*=(.*)", re.DOTALL)


def size_of_option(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Bytes from a size as people write it."""
    if value is None:
        return None
    from omnigraph.storage.memory import parse_size

    found = parse_size(value)
    if found is None:
        raise click.BadParameter(
            f"{value!r} is not a size: give one such as 512MB, 2GiB or 900000000", ctx, param
        )
    return found


max_bytes_option = click.option(
    "--max-bytes",
    metavar="SIZE",
    callback=size_of_option,
    help="The memory it may take, such as 512MB; a quarter of all if not given.",
)
state_options = together(
    click.option(
        "--branch",
        metavar="B",
        cls=BranchOption,
        help="The branch; main if not given, and nothing else is configured.",
    ),
    click.option("--snapshot", metavar="ID", help="A commit: what the graph showed then."),
)
view_options = together(
    state_options,
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        help="Stop the query after so many seconds.",
    ),
    max_bytes_option,
)


def read_source(path: Path) -> Source:
    """The text of a file, named by its path."""
    from omnigraph.lang.source import Source

    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    try:
        return Source(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not UTF-8 text (byte {error.start})") from error


def replace_text(path: Path, text: str) -> None:
    """Replace a file's content, keeping its permissions; links are followed."""
    target = path.resolve()
    with replaced_file(target, mode=target.stat().st_mode & 0o7777) as file:
        file.write(text.encode())


def read_query(path: Path | None, text: str | None) -> Source | None:
    """The text of the query, from an option or from stdin; None where none gives it."""
    if path is not None and text is not None:
        raise click.UsageError("give --query FILE or -e GQ, not both")
    if text is not None:
        return query_text(text)
    if path is not None and str(path) == "-":
        return query_text(sys.stdin.read())
    return None if path is None else read_source(path)


def query_text(text: str) -> Source:
    """A query that is written on the command line."""
    from omnigraph.lang.source import Source

    return Source(text, "<query>")


def view_of(branch: str | None, snapshot: str | None) -> tuple[str, str | None]:
    """The branch and the commit that are looked at; the commit counts if there is one."""
    if branch is not None and snapshot is not None:
        raise click.UsageError("give --branch B or --snapshot ID, not both")
    if snapshot is not None and not snapshot.strip():
        # A script whose variable is unset means something else.
        raise click.UsageError("the commit id of --snapshot is empty")
    return branch if branch is not None else "main", snapshot.strip() if snapshot else None


def read_params(texts: Sequence[str], path: Path | None) -> Mapping[str, Any] | None:
    """The parameters by name; None when there are none."""
    if texts and path is not None:
        raise click.UsageError("give --params JSON or --params-file FILE, not both")
    if path is not None:
        return _decode(read_source(path).text, str(path))
    found: dict[str, Any] = {}
    for text in texts:
        single = _SINGLE.fullmatch(text)
        values = _decode(text, "--params") if single is None else {single[1]: word_value(single[2])}
        for name, value in (values or {}).items():
            if name in found:
                raise ParamError(f"--params says {name} twice")
            found[name] = value
    return found or None


def word_value(word: str) -> Any:
    """A word as JSON if it is that, else as text."""
    try:
        return json.loads(word, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return word


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
