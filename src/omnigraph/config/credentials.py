"""The tokens of one person: a file that nobody else may read, and which token is for which server.

Owns reading and writing that file, and the order in which a token is looked for. Must never show
one: no message, no representation, no error has it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from omnigraph.config.operator import OperatorConfig, operator_directory
from omnigraph.config.project import ProjectGraph
from omnigraph.config.variables import value_of
from omnigraph.errors import BadRequest

FILE = "credentials"
ANY_SERVER = "OMNIGRAPH_BEARER_TOKEN"
_OF_SERVER = "OMNIGRAPH_TOKEN_"
_MODE = 0o600
_SECTION = re.compile(r"\[(?P<name>[^\[\]]+)\]")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[\x21-\x7e]+")


class Credentials:
    """The tokens of a file, by the names of servers."""

    def __init__(self, path: Path, tokens: Mapping[str, str]) -> None:
        self.path = path
        self.tokens = tokens

    def __repr__(self) -> str:
        return f"<Credentials {self.path}, {len(self.tokens)} tokens>"

    @classmethod
    def read(cls, directory: Path | None = None) -> Credentials:
        """Those of a directory; refuses a file that others may read."""
        path = (directory or operator_directory()) / FILE
        return cls(path, {name: token for name, token, _ in _sections(_lines(path), path)})


def token_for(
    url: str,
    config: OperatorConfig,
    directory: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> str | None:
    """The token for an address: of the configured server that it is below, else of any.

    A stored token is only ever sent to the address that its owner has configured for it.
    """
    name = server_of(url, config)
    if name is not None:
        variable = environment.get(token_variable(name), "").strip()
        found = variable or Credentials.read(directory or config.path.parent).tokens.get(name)
        if found:
            return found
    return environment.get(ANY_SERVER, "").strip() or None


def token_for_graph(
    graph: ProjectGraph,
    url: str,
    config: OperatorConfig,
    environment: Mapping[str, str] = os.environ,
) -> str | None:
    """The token for a graph of a project: what its variable has, else what is kept for the server.

    A file may name any address. What a person keeps for a server goes to that server alone, and
    the token for any server only where the file names it.
    """
    server, variable = server_of(url, config), graph.bearer_token_env
    kept = {token_variable(name): name for name in config.servers}
    if variable is not None and kept.get(variable, server) != server:
        raise BadRequest(
            f"{variable} is your token of the server '{kept[variable]}', and is sent nowhere else: "
            f"not to {url}, as the graph '{graph.name}' has it"
        )
    found = value_of(variable, environment)
    if found is not None or server is None:
        return found
    return token_for(url, config, environment=environment)


def token_variable(server: str) -> str:
    """The variable that holds the token of a server."""
    return _OF_SERVER + server.upper().replace("-", "_")


def server_of(url: str, config: OperatorConfig) -> str | None:
    """The configured server that an address is below: the longest one, by whole parts."""
    wanted = _parts(url)
    found = [
        (len(parts), name)
        for name, base in config.servers.items()
        if (parts := _parts(base)) == wanted[: len(parts)]
    ]
    return max(found, default=(0, None))[1]


def _parts(url: str) -> tuple[str, ...]:
    """Scheme, host with port, and the components of the path."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme.lower(), 0)
    except ValueError:
        return ("", url)
    host = f"{(parts.hostname or '').lower()}:{port}"
    return (parts.scheme.lower(), host, *(one for one in parts.path.split("/") if one))


# -- writing -----------------------------------------------------------------------------


def store_token(name: str, token: str, directory: Path | None = None) -> Path:
    """Keep a token under a name; other sections stay as they are."""
    if not NAME.fullmatch(name):
        raise BadRequest(
            f"{name!r:.80} is no name of a server: letters, digits, dots, hyphens, underscores"
        )
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise BadRequest("a token is a word: this one is empty, or has blanks in it")
    place = directory or operator_directory()
    kept = _without(name, place / FILE)
    if kept and kept[-1].strip():
        kept.append("")
    return _write(place, [*kept, f"[{name}]", f"token = {token}"])


def remove_token(name: str, directory: Path | None = None) -> bool:
    """Forget the token of a name; returns whether there was one."""
    place = directory or operator_directory()
    path = place / FILE
    if name not in Credentials.read(place).tokens:
        return False
    _write(place, _without(name, path))
    return True


def _without(name: str, path: Path) -> list[str]:
    lines = _lines(path)
    for found, _, (start, end) in _sections(lines, path):
        if found == name:
            return [*lines[:start], *lines[end:]]
    return lines


def _write(directory: Path, lines: list[str]) -> Path:
    path = directory / FILE
    draft = directory / f".{FILE}.{uuid4().hex}.tmp"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write("\n".join(lines).strip("\n") + "\n" if lines else "")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror}") from None
    return path


# -- reading -----------------------------------------------------------------------------


def _lines(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise BadRequest(
                    f"{path} can be read by others (mode {mode:04o}): chmod 600 {path}"
                )
            return file.read().splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        # Not as its cause: that would hold what stands in the file.
        raise BadRequest(f"cannot read {path}: {reason}") from None


def _sections(lines: list[str], path: Path) -> list[tuple[str, str, tuple[int, int]]]:
    """Every section: its name, its token, and its lines from one to another."""
    found: list[tuple[str, str, tuple[int, int]]] = []
    name, token, start, end = None, "", 0, 0
    for number, line in enumerate([*lines, "[]"]):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        heading = _SECTION.fullmatch(text)
        if heading is not None or text == "[]":
            if name is not None:
                # What is remarked behind a section is about the next one.
                found.append((name, token, (start, end)))
            name = None if heading is None else heading["name"].strip()
            token, start, end = "", number, number + 1
            continue
        key, equals, value = text.partition("=")
        if not equals or name is None:
            raise BadRequest(
                f"{path}, line {number + 1}: neither [a server] nor `token = …`, as it has to be"
            )
        end = number + 1
        if key.strip() == "token":
            token = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.partition(" #")[0].strip()
