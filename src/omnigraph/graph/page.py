"""The page of a graph in a notebook: what its main branch shows to the one who acts.

Owns what is asked for it. A graph that does not answer has a page that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.display.graphs import graph_html, unread_html
from omnigraph.errors import OmniGraphError
from omnigraph.read.limited.view import is_whole

if TYPE_CHECKING:
    from omnigraph.graph.session import Session


def page_of(session: Session) -> str:
    """Where it is, its branches, how many entities each type has, and its schema."""
    try:
        shown = session.snapshot()
        # How many rows there are tells of those that are hidden.
        tables = sorted(shown.tables.items()) if is_whole(shown) else ()
        counts = {key: table.pin.row_count for key, table in tables}
        branches, location = session.branches.list(), str(session.location)
        return graph_html(location, shown.commit_id, branches, counts, session.catalog)
    except OmniGraphError as error:
        return unread_html(repr(session), error.message)
