"""The router: which route a path means, segment by segment as it was sent.

Owns the table of routes and their matching. A segment is decoded once, after the path was cut:
`%2F` is part of a name, `..` is a name like any other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote_to_bytes

from starlette.responses import Response

from omnigraph.server.answers import Refusal

if TYPE_CHECKING:
    from omnigraph.server.call import Call

Tag = Literal[
    "queries", "mutations", "branches", "commits", "changes", "schema", "upkeep", "server"
]
Content = Literal["json", "ndjson", "arrow", "octets", "text", "html"]

GRAPH = "/graphs/{graph_id}"


@dataclass(frozen=True, slots=True)
class Header:
    """A header that a route takes."""

    name: str
    says: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """Another operation on the same graph that an answer leads to, and where its names are from."""

    name: str
    operation: str
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation: where it is, what it takes, what it gives, and how it may fail."""

    method: str
    path: str
    operation: str
    tag: Tag
    summary: str
    handle: Callable[[Call], Awaitable[Response]]
    body: type | None = None
    body_content: Content = "json"
    body_required: bool = True
    query: type | None = None
    answers: tuple[type, ...] = ()
    """The bodies that its success can have as JSON."""
    content: tuple[Content, ...] = ("json",)
    fails: tuple[int, ...] = ()
    """The statuses of its failures, but for those that every route can have."""
    headers: tuple[Header, ...] = ()
    links: tuple[Link, ...] = ()
    more_answers: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What else a success can be, by its status, as the description has it."""
    is_public: bool = False
    """Whether it is answered without a token."""
    successor: str | None = None
    """The route to be used instead, if it is deprecated."""

    @property
    def is_of_graph(self) -> bool:
        """Whether it is about one graph."""
        return self.path.startswith(GRAPH)


@dataclass(slots=True)
class _Node:
    """A place in the tree of paths."""

    words: dict[str, _Node] = field(default_factory=dict)
    name: _Node | None = None
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


class Router:
    """All routes of a server."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            node, names = self._root, []
            for word in route.path.split("/")[1:]:
                if word.startswith("{"):
                    names.append(word[1:-1])
                    node.name = node.name or _Node()
                    node = node.name
                else:
                    node = node.words.setdefault(word, _Node())
            node.routes[route.method] = route, tuple(names)

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """The route of a request, and the names in its path; refuses what there is not."""
        node, values = self._root, []
        for segment in raw_path.split(b"/")[1:]:
            word = _decoded(segment)
            known = node.words.get(word)
            if known is None:
                if node.name is None or not word:
                    raise Refusal(404, "there is nothing here: see /openapi.json for what there is")
                values.append(word)
                known = node.name
            node = known
        if not node.routes:
            raise Refusal(404, "there is nothing here: see /openapi.json for what there is")
        found = node.routes.get(method)
        if found is None:
            allowed = ", ".join(sorted(node.routes))
            raise Refusal(
                405, f"this takes {allowed}, not {method:.20}", headers={"Allow": allowed}
            )
        route, names = found
        return route, dict(zip(names, values, strict=True))


def _decoded(segment: bytes) -> str:
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise Refusal(400, "the path is not UTF-8 text") from None
