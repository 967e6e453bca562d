"""The graph: the one façade that people, the command line and the server use.

Every public method is written once, on a session or one of its namespaces, and says there what
its caller must be allowed to do. Holds no engine: the packages below know how.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnigraph.graph.access import Action, Policy
from omnigraph.graph.damaged import repair, verify
from omnigraph.graph.opening import init, open  # noqa: A004 - `omnigraph.open` is the name
from omnigraph.graph.session import Graph, Session
from omnigraph.storage.cancellation import Cancellation

if TYPE_CHECKING:
    from omnigraph.evolve.apply import SchemaResult
    from omnigraph.evolve.log import SchemaCommit
    from omnigraph.lang.schema.migration.plan import MigrationPlan
    from omnigraph.write.load.csv_options import CsvOptions
else:
    # Whoever only asks a graph needs none of these: they come when they are named.
    _LATE = {
        "SchemaResult": "omnigraph.evolve.apply",
        "SchemaCommit": "omnigraph.evolve.log",
        "MigrationPlan": "omnigraph.lang.schema.migration.plan",
        "CsvOptions": "omnigraph.write.load.csv_options",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_LATE[name]), name)


__all__ = [
    "Action",
    "Cancellation",
    "CsvOptions",
    "Graph",
    "MigrationPlan",
    "Policy",
    "SchemaCommit",
    "SchemaResult",
    "Session",
    "init",
    "open",
    "repair",
    "verify",
]
