"""What a shell remembers between two statements, and the running of one.

Owns the branch, the format and the last result. What a statement does is the graph's to know.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from omnigraph.cli.options.scope import CommandScope, Target
from omnigraph.cli.render.formats import Format, TableLayout
from omnigraph.cli.render.output import diagnose, write_note, write_text
from omnigraph.cli.shell.output import show_result
from omnigraph.cli.verbs.data.mutate import result_lines
from omnigraph.errors import QueryCancelled
from omnigraph.lang.query.unnamed import is_mutation
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.source import Source
from omnigraph.manifest.branches import normalise_branch
from omnigraph.storage.cancellation import Cancellation

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.read.output.result import Result

T = TypeVar("T")


@dataclass
class ShellSession:
    """One graph and what is set for it."""

    scope: CommandScope
    target: Target
    branch: str
    format: Format = "table"
    layout: TableLayout = field(default_factory=TableLayout)
    has_timing: bool = False
    result: Result | None = None
    """What the last read returned."""
    was_interrupted: bool = False
    """Whether somebody pressed Ctrl-C while the last statement ran."""
    _writing: Graph | None = None

    @cached_property
    def _reading(self) -> Graph:
        return self.target.read()

    @property
    def graph(self) -> Graph:
        """The graph, opened to be looked at until something is changed."""
        return self._reading if self._writing is None else self._writing

    @property
    def name(self) -> str:
        """What the prompt calls the graph."""
        if self.target.graph is not None:
            return self.target.graph.name
        return PurePosixPath(self.target.uri.rstrip("/")).name or self.target.uri

    def close(self) -> None:
        """Let go of the graph."""
        for graph in (self.__dict__.get("_reading"), self._writing):
            if graph is not None:
                graph.close()

    def switch(self, branch: str) -> None:
        """Go on with another branch, which has to be there."""
        self.graph.snapshot(branch)
        self.branch = normalise_branch(branch)

    @property
    def schema(self) -> str:
        """The source of the schema of the branch."""
        return self.graph.schema if self.branch == "main" else self.graph.schema_at(self.branch)

    def catalog(self) -> Catalog:
        """The types of the branch."""
        return compile_schema(Source(self.schema, "<schema>")).catalog

    # -- running ---------------------------------------------------------------------

    def run(self, statement: str) -> None:
        """Run a query or a mutation, and show what it gave."""
        began = perf_counter()
        if is_mutation(statement):
            self._change(statement)
        else:
            self.result = self.interruptible(lambda switch: self._ask(statement, switch))
            took = perf_counter() - began
            show_result(self.result, self.format, self.layout)
            self._say_time(took)
            return
        self._say_time(perf_counter() - began)

    def explain(self, statement: str) -> str:
        """How a query would be run."""
        return self.graph.explain(statement, branch=self.branch).text

    def _ask(self, statement: str, switch: Cancellation) -> Result:
        if self.target.is_served:
            return self.graph.query(statement, branch=self.branch)
        return self.graph.query(statement, branch=self.branch, cancellation=switch)

    def _change(self, statement: str) -> None:
        if self._writing is None:
            quiet = self.scope.quiet or self.target.graph is None
            self._writing = self.target.write("shell", replace(self.scope, quiet=quiet))
        writing = self._writing
        result = self.interruptible(lambda _: writing.mutate(statement, branch=self.branch))
        write_text("\n".join(result_lines(result)))
        for warning in result.warnings:
            diagnose("warning", str(warning))

    def interruptible(self, call: Callable[[Cancellation], T]) -> T:
        """Call, and let Ctrl-C turn the switch; what cannot be stopped is waited for.

        An answer of a server is not waited for: the server notices that nobody does.
        """
        self.was_interrupted, switch = False, Cancellation()
        if self.target.is_served:
            return call(switch)
        with ThreadPoolExecutor(1) as pool:
            future: Future[T] | None = None
            while True:
                try:
                    # Ctrl-C may come before it is known here that the call has begun.
                    future = future or pool.submit(call, switch)
                    return future.result()
                except KeyboardInterrupt:
                    if not self.was_interrupted:
                        write_note("stopping; a change is finished first")
                    self.was_interrupted = True
                    switch.cancel()
                    if future is None:
                        raise
                except QueryCancelled:
                    if self.was_interrupted:
                        raise KeyboardInterrupt from None
                    raise

    def _say_time(self, seconds: float) -> None:
        if self.has_timing:
            write_note(f"{seconds * 1000:.1f} ms")
