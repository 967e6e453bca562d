"""Addresses of served graphs: a server, and which of its graphs is meant.

Owns reading and joining them. What could be a secret in one is refused, and never shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from omnigraph.errors import BadRequest

GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
_OF_GRAPH = re.compile(r"(?P<base>.*)/graphs/(?P<graph>[^/]+)")


def is_server_url(location: object) -> bool:
    """Whether a location is that of a server and not of storage."""
    return isinstance(location, str) and location.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, without a slash at the end, and one of its graphs if it is named."""

    base: str
    graph: str | None = None

    @classmethod
    def parse(cls, url: str, graph: str | None = None) -> ServerAddress:
        """The address of `http(s)://host[:port][/path][/graphs/ID]`."""
        try:
            parts = urlsplit(url.strip())
            is_plain = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            is_plain = False
        if not is_plain or parts.scheme.lower() not in ("http", "https"):
            raise BadRequest("the address of a server is http(s)://host[:port]")
        if parts.username is not None or parts.query or parts.fragment:
            # Not shown: what stands there is a password or a token, most likely.
            raise BadRequest(
                "the address of a server is a host and a path, and no more: the token goes into "
                "token=, OMNIGRAPH_BEARER_TOKEN or `omnigraph login`"
            )
        path = parts.path.rstrip("/")
        named = _OF_GRAPH.fullmatch(path)
        if named is not None:
            if graph not in (None, named["graph"]):
                raise BadRequest(
                    f"the address names the graph {named['graph']!r}, and graph= another one"
                )
            path, graph = named["base"], named["graph"]
        if graph is not None and not GRAPH_ID.fullmatch(graph):
            raise BadRequest(
                f"{graph!r:.80} is no id of a graph: up to 64 letters, digits and hyphens"
            )
        return cls(f"{parts.scheme.lower()}://{parts.netloc.lower()}{path}", graph)

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        return urlsplit(self.base).hostname in ("localhost", "127.0.0.1", "::1")

    def url(self, *parts: str) -> str:
        """The address of a route of the graph, each part written so that it stays one."""
        base = self.base if self.graph is None else f"{self.base}/graphs/{self.graph}"
        return "/".join([base, *(quote(part, safe="") for part in parts)])

    def __str__(self) -> str:
        return self.url()
