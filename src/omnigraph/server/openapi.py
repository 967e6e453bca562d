"""The description of the server: OpenAPI 3.1, made from the routes and the bodies they name.

Owns what the document says of each route. Nothing in it is written twice: a route that changes
changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from omnigraph.server.answers import ARROW, phrase
from omnigraph.server.router import Content, Header, Link, Route
from omnigraph.version import __version__
from omnigraph.wire.errors import ErrorBody

_REF = "#/components/schemas/{name}"
_SCHEME = "bearer_token"
_TYPES: Mapping[Content, str] = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "arrow": ARROW,
    "octets": "application/octet-stream",
    "text": "text/plain",
    "html": "text/html",
}
# Bodies whose names the clients of the reference know by others.
_NAMES = {
    "QueryBody": "ReadOutput",
    "MutationBody": "ChangeOutput",
    "ChangeBody": "EntityChangeOutput",
    "LoadBody": "IngestOutput",
    "LoadRequest": "IngestRequest",
    "FeedBody": "ChangeFeedOutput",
    "BlockBody": "ChangeBlockOutput",
    "BaselineRequest": "ChangeBaselineRequest",
    "GraphsBody": "GraphListResponse",
    "SchemaAppliedBody": "SchemaApplyOutput",
}

_OF_ALL = (400, 408, 431, 500)
_OF_SECURED = (401, 403)
_OF_GRAPHS = (404, 503, 504)
_OF_BODIES = (413, 415)


@lru_cache(maxsize=8)
def document(routes: tuple[Route, ...], *, secured: bool) -> Mapping[str, Any]:
    """The whole document; without security where everybody may do everything."""
    types = {type_ for route in routes for type_ in _types_of(route)} | {ErrorBody}
    ordered = sorted(types, key=lambda type_: str(type_.__name__))
    schemas, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    known = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, known, components, secured=secured
        )
    whole: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "OmniGraph",
            "description": "Graphs over HTTP: typed, versioned, with branches.",
            "license": {"name": "MIT", "identifier": "MIT"},
            "version": __version__,
        },
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {"schemas": components},
    }
    if secured:
        whole["components"]["securitySchemes"] = {_SCHEME: {"type": "http", "scheme": "bearer"}}
    renamed: Mapping[str, Any] = _renamed(whole)
    return renamed


def _types_of(route: Route) -> Iterable[type]:
    named = (route.body, route.query, *route.answers)
    return (type_ for type_ in named if type_ not in (None, str, dict))


def _operation(
    route: Route, known: Mapping[type, Any], components: Mapping[str, Any], *, secured: bool
) -> dict[str, Any]:
    is_secured = secured and not route.is_public
    found: dict[str, Any] = {
        "tags": [route.tag],
        "summary": route.summary,
        "operationId": f"cluster_{route.operation}" if route.is_of_graph else route.operation,
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(route, components),
            *map(_header, route.headers),
        ],
    }
    if route.body is not None:
        schema = {"type": "string"} if route.body is str else known[route.body]
        found["requestBody"] = {
            "required": route.body_required,
            "content": {_TYPES[route.body_content]: {"schema": schema}},
        }
    found["responses"] = {
        "200": {
            "description": "Done",
            "content": dict(_contents(route, known)),
            **({"links": dict(map(_link, route.links))} if route.links else {}),
        },
        **dict(route.more_answers),
        **{str(status): _failure(status, known) for status in _failures(route, secured=is_secured)},
    }
    if route.successor is not None:
        found["deprecated"] = True
    if is_secured:
        found["security"] = [{_SCHEME: []}]
    return found


def _link(link: Link) -> tuple[str, dict[str, Any]]:
    parameters = {"graph_id": "$request.path.graph_id", **dict(link.parameters)}
    return link.name, {"operationId": f"cluster_{link.operation}", "parameters": parameters}


def _contents(route: Route, known: Mapping[type, Any]) -> Iterable[tuple[str, Any]]:
    for content in route.content:
        if content == "json":
            schemas = [{"type": "object"} if one is dict else known[one] for one in route.answers]
            schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            yield _TYPES[content], {"schema": schema}
        else:
            yield _TYPES[content], {"schema": {"type": "string"}}


def _path_parameters(route: Route) -> Iterable[dict[str, Any]]:
    for word in route.path.split("/"):
        if word.startswith("{"):
            yield {
                "name": word[1:-1],
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
            }


def _query_parameters(route: Route, components: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    if route.query is None:
        return
    found = components[route.query.__name__]
    required = found.get("required", ())
    for name, schema in found["properties"].items():
        yield {"name": name, "in": "query", "required": name in required, "schema": _plain(schema)}


def _plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of something that is not null, which nothing in a query string is."""
    kept = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(kept) == 1:
        return dict(kept[0])
    return {name: value for name, value in schema.items() if name != "default"}


def _header(header: Header) -> dict[str, Any]:
    return {
        "name": header.name.title(),
        "in": "header",
        "required": header.required,
        "description": header.says,
        "schema": {"type": "string"},
    }


def _failures(route: Route, *, secured: bool) -> list[int]:
    found = {*_OF_ALL, *route.fails}
    if secured:
        found.update(_OF_SECURED)
    if route.is_of_graph:
        found.update(_OF_GRAPHS)
    if route.body is not None:
        found.update(_OF_BODIES)
    if route.query is not None or "{" in route.path:
        found.add(413)
    return sorted(found)


def _failure(status: int, known: Mapping[type, Any]) -> dict[str, Any]:
    return {
        "description": phrase(status),
        "content": {_TYPES["json"]: {"schema": known[ErrorBody]}},
    }


def name_of(component: str) -> str:
    """What the document calls a body: what goes out is an output."""
    known = _NAMES.get(component)
    if known is not None:
        return known
    return f"{component.removesuffix('Body')}Output" if component.endswith("Body") else component


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: (
                {name_of(one): _renamed(schema) for one, schema in member.items()}
                if name == "schemas"
                else _ref(member)
                if name == "$ref"
                else name_of(member)
                if name == "title" and isinstance(member, str)
                else _renamed(member)
            )
            for name, member in value.items()
        }
    return [_renamed(one) for one in value] if isinstance(value, list | tuple) else value


def _ref(ref: str) -> str:
    head, _, name = ref.rpartition("/")
    return f"{head}/{name_of(name)}"
