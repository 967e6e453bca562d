"""The schema: showing and changing it."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.errors import Conflict
from omnigraph.graph import Session
from omnigraph.lang.source import Source
from omnigraph.server.answers import answer
from omnigraph.server.call import Call
from omnigraph.server.router import GRAPH, Route
from omnigraph.server.routes.reads import FRESH
from omnigraph.server.routes.writes import ONCE, WRITE_FAILS, note_commit
from omnigraph.wire.requests import SchemaApplyRequest
from omnigraph.wire.schemas import SchemaAppliedBody, SchemaBody


async def show(call: Call) -> Response:
    """The schema of main."""
    return answer(await call.read(lambda session: SchemaBody(session.schema)))


async def apply(call: Call) -> Response:
    """Give a branch another schema, unless a cluster says which it has."""
    asked = await call.json(SchemaApplyRequest)
    branch, run_id = call.branch_of(asked.branch), call.run_id
    if not call.server.served.can_apply_schemas:
        call.require("schema_apply", None, branch)
        raise Conflict("the schemas of this server are those of its cluster: use cluster apply")
    queries = call.graph.queries.texts

    def work(session: Session) -> SchemaAppliedBody:
        done = session.apply_schema(
            Source(asked.schema_source, "<schema>"),
            branch=branch,
            allow_data_loss=asked.allow_data_loss,
            queries=queries or None,
            run_id=run_id,
        )
        return SchemaAppliedBody.of(done, call.graph.location, call.actor)

    done = await call.write(work, len(asked.schema_source), ("schema_apply", None, branch))
    note_commit(call, None if done.commit is None else done.commit.graph_commit_id)
    return answer(done)


ROUTES = (
    Route(
        method="GET",
        path=f"{GRAPH}/schema",
        operation="getSchema",
        tag="schema",
        summary="The schema, as it was written.",
        handle=show,
        answers=(SchemaBody,),
        headers=(FRESH,),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/schema/apply",
        operation="applySchema",
        tag="schema",
        summary="Give a branch another schema, as one commit.",
        handle=apply,
        body=SchemaApplyRequest,
        answers=(SchemaAppliedBody,),
        fails=WRITE_FAILS,
        headers=(ONCE,),
    ),
)
