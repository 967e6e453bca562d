"""The surface of a graph for programs with an event loop: the same names, awaited.

Owns nothing: `proxy` carries calls onto threads. The stub beside this is made from the
signatures of `omnigraph.graph`. Importing it imports no engine.
"""

from omnigraph.aio.proxy import Graph, Session, Stream, init, open  # noqa: A004 - the same names

__all__ = ["Graph", "Session", "Stream", "init", "open"]
