"""What a server tells of itself: health, metrics, its description, its graphs."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.errors import PolicyDenied
from omnigraph.server.admission import ANONYMOUS
from omnigraph.server.answers import answer
from omnigraph.server.call import Call
from omnigraph.server.metrics import CONTENT_TYPE
from omnigraph.server.router import Route
from omnigraph.server.served import DefaultDeny, denial
from omnigraph.version import INTERNAL_SCHEMA, __version__
from omnigraph.wire.serving import (
    GraphBody,
    GraphsBody,
    HealthBody,
    QuarantinedBody,
    ReadyBody,
)


async def health(_: Call) -> Response:
    """Whether the process answers."""
    return answer(HealthBody("ok", __version__, INTERNAL_SCHEMA))


async def ready(call: Call) -> Response:
    """Whether it is worth sending requests here."""
    if call.server.is_draining:
        return answer(ReadyBody("draining"), 503)
    return answer(ReadyBody("ready"))


async def metrics(call: Call) -> Response:
    """What Prometheus scrapes, for those from whom none of it is hidden."""
    _require_scraping(call)
    return Response(call.server.metrics.text(), media_type=CONTENT_TYPE)


def _require_scraping(call: Call) -> None:
    """Refuse whoever may neither list the graphs nor look after all of them.

    How much was read tells what there is, also where rows are hidden, and names of graphs are told.
    """
    served, actor = call.server.served, call.actor
    if call.server.state != "policy_enabled" or actor is None:
        return
    try:
        if served.server_policy is not None:
            served.server_policy.authorize(actor, "graph_list", None, None)
            return
    except PolicyDenied:
        pass
    for graph in served.graphs.values():
        if not isinstance(graph.policy, DefaultDeny):
            graph.require(actor, "admin", None, None)


async def openapi(call: Call) -> Response:
    """The description of this server."""
    from omnigraph.server.openapi import document

    return answer(document(call.server.router.routes, secured=call.server.state != "open"))


async def docs(_: Call) -> Response:
    """The same for people, in one page that asks nobody else for anything."""
    from omnigraph.server.docs_page import PAGE, POLICY

    return Response(
        PAGE, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": POLICY}
    )


async def graphs(call: Call) -> Response:
    """The graphs of the server, for those who may list them."""
    served = call.server.served
    policy, actor = served.server_policy, call.actor
    if policy is None or actor is None:
        raise PolicyDenied(denial(actor or ANONYMOUS, "graph_list", None, None))
    policy.authorize(actor, "graph_list", None, None)
    found = [GraphBody(graph.id, graph.location) for graph in served.graphs.values()]
    broken = [QuarantinedBody(id_, why) for id_, why in served.quarantined.items()]
    return answer(
        GraphsBody(
            sorted(found, key=lambda one: one.graph_id),
            tuple(sorted(broken, key=lambda one: one.graph_id)),
        )
    )


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        operation="health",
        tag="server",
        summary="Whether the process answers.",
        handle=health,
        answers=(HealthBody,),
        is_public=True,
    ),
    Route(
        method="GET",
        path="/readyz",
        operation="ready",
        tag="server",
        summary="Whether the server takes requests; 503 when it is about to end.",
        handle=ready,
        answers=(ReadyBody,),
        fails=(503,),
        is_public=True,
    ),
    Route(
        method="GET",
        path="/metrics",
        operation="metrics",
        tag="server",
        summary="Counts of the server, as Prometheus reads them.",
        handle=metrics,
        content=("text",),
    ),
    Route(
        method="GET",
        path="/openapi.json",
        operation="openapi",
        tag="server",
        summary="This description.",
        handle=openapi,
        answers=(dict,),
        is_public=True,
    ),
    Route(
        method="GET",
        path="/docs",
        operation="docs",
        tag="server",
        summary="This description, to be read in a browser.",
        handle=docs,
        content=("html",),
        is_public=True,
    ),
    Route(
        method="GET",
        path="/graphs",
        operation="listGraphs",
        tag="server",
        summary="The graphs of the server, by id, and those that could not be opened.",
        handle=graphs,
        answers=(GraphsBody,),
        fails=(403,),
    ),
)
