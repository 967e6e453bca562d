"""Who may do what with a graph: policy files, compiled to what a session asks."""

from omnigraph.policy.compiled import CompiledPolicy, Decision, Request
from omnigraph.policy.parse import load, parse_policy

__all__ = ["CompiledPolicy", "Decision", "Request", "load", "parse_policy"]
