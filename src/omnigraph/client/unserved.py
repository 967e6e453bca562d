"""What a served graph cannot be asked for: each a method that says what to do instead.

Owns the list and the words. `tests/client` holds it against the surface of a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from omnigraph.errors import NotServed

_STORAGE = "open the storage of the graph for it: og.open(path), or --store on the command line"

UNSERVED: Mapping[str, str] = {
    "as_actor": "the token decides who acts: open the graph with the token of that actor",
    "caches": "the caches are the server's: GET /metrics tells of them",
    "schema_at": f"a server shows the schema of main; {_STORAGE}",
    "schema_diff": _STORAGE,
    "schema_log": _STORAGE,
    "plan_schema": _STORAGE,
    "explain": _STORAGE,
    "history": f"follow changes.poll(), or {_STORAGE}",
    "blame": _STORAGE,
    "sql": f"query it and take .to_arrow(), or {_STORAGE}",
    "diff": f"follow changes.poll(), or {_STORAGE}",
    "table": f"query it and take .to_arrow(), or {_STORAGE}",
    "to_spark": f"query it and take .to_arrow(), or {_STORAGE}",
    "to_networkx": f"query it and take .to_arrow(), or {_STORAGE}",
    "to_igraph": f"query it and take .to_arrow(), or {_STORAGE}",
    "to_pyg": f"query it and take .to_arrow(), or {_STORAGE}",
    "create_views": f"query it and take .to_arrow(), or {_STORAGE}",
    "recoveries": _STORAGE,
    "stream_load": f"load each micro-batch with load(), or {_STORAGE}",
    "run_pipeline": _STORAGE,
    "validate_pipeline": _STORAGE,
    "verify": _STORAGE,
    "repair": _STORAGE,
    "cleanup": "maintain(keep=…, older_than=…) reclaims commits",
    "optimize": "maintain() does what is worth doing",
    "ensure_indices": "maintain() builds the indexes that are missing",
}


def not_served(name: str, hint: str) -> NotServed:
    """The error of something that cannot be asked for."""
    return NotServed(f"a server does not offer {name}: {hint}", details={"name": name})


def refuse(**given: object) -> None:
    """Refuse options that cannot be sent, where somebody has given them."""
    for name, value in given.items():
        if value is not None and value is not False and value != {}:
            raise not_served(f"{name}=", _OPTIONS.get(name, _STORAGE))


_OPTIONS: Mapping[str, str] = {
    "actor": "the token decides who acts",
    "message": "a commit that is made over HTTP has none",
    "max_bytes": "the server sets the bound of memory",
    "cancellation": "give a timeout",
    "expansion": "the server chooses",
    "grace": "the server sets it",
}


class Unserved:
    """The methods of a session that a served graph does not have."""


def _refusing(name: str, hint: str) -> Any:
    def call(self: Unserved, *_: object, **__: object) -> NoReturn:  # noqa: ARG001 - a method
        raise not_served(name, hint)

    call.__name__ = name
    call.__doc__ = f"Not served: {hint}."
    return property(call) if name == "caches" else call


def unserved_method(name: str) -> Any:
    """A method of a part of a session that a served graph does not have."""
    return _refusing(name, _STORAGE)


for _name, _hint in UNSERVED.items():
    setattr(Unserved, _name, _refusing(_name, _hint))
