"""A team's graphs, deployed by plan and apply: what is wanted, what is there, and the way.

Each function takes the directory of a `cluster.yaml`, and answers with what it found; only what
nobody foresees is raised.
"""

from omnigraph.cluster.applying import apply
from omnigraph.cluster.approving import approve
from omnigraph.cluster.observing import force_unlock, import_, refresh, status
from omnigraph.cluster.planning import plan, validate

__all__ = [
    "apply",
    "approve",
    "force_unlock",
    "import_",
    "plan",
    "refresh",
    "status",
    "validate",
]
