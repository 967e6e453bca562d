"""Which variables of the environment a project file may name, and what it may set.

Owns the rules that keep the file of a stranger from harm: it reads no other variable, sends no key
to a place of its own that was not made for it, and sets nothing that leads elsewhere. Executes
nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from urllib.parse import urlsplit

from omnigraph.errors import BadRequest

TOKEN_VARIABLE = re.compile(r"OMNIGRAPH_[A-Z0-9_]*TOKEN[A-Z0-9_]*")
_OF_SERVERS = "OMNIGRAPH_SERVER_"
_TOKENS_TAKEN = "OMNIGRAPH_SERVER_BEARER_TOKEN"
"""Who may use a server is for those to say who start it."""
_REFERENCE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")
_OWN_KEY = re.compile(r"OMNIGRAPH_[A-Z0-9_]*KEY[A-Z0-9_]*")
_KEY = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
_ASSIGNMENT = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=(?P<value>.*)")
_PROVIDERS = {
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_LARGEST = 1 << 16

STORAGE_VARIABLES = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ALLOW_HTTP",
        "AWS_S3_FORCE_PATH_STYLE",
    }
)
"""Of `AWS_…` no others: some of them name programs that are run."""
_NEED_KEYS = frozenset({"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ALLOW_HTTP"})
_LEAD_ELSEWHERE = frozenset(
    {
        "OMNIGRAPH_HOME",
        "OMNIGRAPH_CONFIG",
        "OMNIGRAPH_PROFILE",
        "OMNIGRAPH_GRAPH",
        "OMNIGRAPH_BRANCH",
        "OMNIGRAPH_EMBED_BASE_URL",
        "OMNIGRAPH_EMBED_CACHE",
        "OMNIGRAPH_MERGE_STAGING_DIR",
        "OMNIGRAPH_UNAUTHENTICATED",
    }
)


def token_problem(name: str) -> str | None:
    """Why a variable cannot be the one with a token."""
    if not TOKEN_VARIABLE.fullmatch(name):
        return "the variable with a token is called OMNIGRAPH_…TOKEN…, in capitals"
    if name.startswith(_OF_SERVERS):
        return "the tokens that a server takes are not for its clients"
    return None


def key_variable(text: str) -> str | None:
    """The variable that an `api_key` refers to; None if it is no reference."""
    found = _REFERENCE.fullmatch(text)
    return None if found is None else found[1]


def key_problem(variable: str, base_url: str | None) -> str | None:
    """Why the key in a variable does not go to a provider."""
    if _OWN_KEY.fullmatch(variable):
        return None
    if not _KEY.fullmatch(variable):
        return "the variable with a key is called …_API_KEY or OMNIGRAPH_…KEY…, in capitals"
    if base_url is None:
        if variable in _PROVIDERS.values():
            return None
        return f"{variable} is not the key of this provider: call it OMNIGRAPH_…KEY…"
    host = (urlsplit(base_url).hostname or "").lower()
    if host in _HERE or _PROVIDERS.get(host) == variable:
        return None
    return (
        f"{variable} is not sent to {host or 'an address of the file'}: put the key for it into a "
        "variable called OMNIGRAPH_…KEY…"
    )


# -- a file with variables ---------------------------------------------------------------


def env_file_below(project: Path, given: str) -> Path:
    """The path of an `env_file`; refused if it, or what it links to, is not below the project."""
    base = project.resolve()
    found = (project / given).resolve()
    if base not in found.parents:
        raise BadRequest(
            f"auth.env_file is {given!r:.80}: it has to be a file below {project}, links included"
        )
    return found


def load_env_file(
    path: Path,
    named: frozenset[str],
    environment: MutableMapping[str, str] = os.environ,
) -> list[str]:
    """Set the variables of a file that are not set; returns what was left out, and why.

    ``named`` are the variables that the providers of the project name.
    """
    found = dict(_assignments(path))
    warnings = []
    has_keys = "AWS_ACCESS_KEY_ID" in found and not environment.get("AWS_ACCESS_KEY_ID")
    for name, value in found.items():
        if not _may_set(name, named):
            warnings.append(f"{path} sets {name}, which a project may not: it is ignored")
        elif name in _NEED_KEYS and not has_keys:
            warnings.append(
                f"{path} sets {name}, but not the keys that are used: it is ignored, so that your "
                "own keys go nowhere else"
            )
        elif not environment.get(name):
            environment[name] = value
    return warnings


def _may_set(name: str, named: frozenset[str]) -> bool:
    if name.startswith("AWS_"):
        return name in STORAGE_VARIABLES
    if name.startswith("OMNIGRAPH_"):
        return name not in _LEAD_ELSEWHERE and not name.startswith(_TOKENS_TAKEN)
    return name in named


def _assignments(path: Path) -> Iterator[tuple[str, str]]:
    """`NAME=value` of every line; nothing in it is expanded."""
    if not path.exists():
        return
    if not path.is_file():
        raise BadRequest(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadRequest(f"cannot read {path}: {reason}") from None
    if len(data) > _LARGEST:
        raise BadRequest(f"{path} is too large for a file of variables")
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        assigned = _ASSIGNMENT.fullmatch(stripped)
        if assigned is None:
            # Not shown: it may be a secret.
            raise BadRequest(f"{path}, line {number}: write NAME=value")
        yield assigned["name"], _unquoted(assigned["value"].strip())


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.partition(" #")[0].strip()


def value_of(variable: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """What is in a variable."""
    return None if variable is None else environment.get(variable, "").strip() or None
