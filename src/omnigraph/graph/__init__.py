"""The graph: the one façade that people, the command line and the server use.

Every public method is written once, on a session or one of its namespaces, and says there what
its caller must be allowed to do. Holds no engine: the packages below know how.
"""

from omnigraph.evolve.apply import SchemaResult
from omnigraph.evolve.log import SchemaCommit
from omnigraph.graph.access import Action, Policy
from omnigraph.graph.damaged import repair, verify
from omnigraph.graph.opening import init, open  # noqa: A004 - `omnigraph.open` is the name
from omnigraph.graph.session import Graph, Session
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.storage.cancellation import Cancellation
from omnigraph.write.load.csv_options import CsvOptions

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
