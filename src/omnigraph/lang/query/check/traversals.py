"""Checking traversals: the edge, its direction, the types at its ends.

Owns direction inference. Traversals are taken as soon as one of their ends has
a type, so the order in which they are written does not matter.
"""

from __future__ import annotations

from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.scope import Bound, EdgeBinding, NodeBinding, Scope, WayBinding
from omnigraph.lang.query.check.ways import check_hops, names_way
from omnigraph.lang.schema.catalog import EdgeType, NodeType


class TraversalChecker:
    """Checks the traversals of one segment against one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.checker = scope.checker
        self.catalog = scope.checker.catalog

    def check_all(
        self, traversals: list[ast.Traversal]
    ) -> list[tuple[ast.Traversal, resolved.Traversal]]:
        """Resolve every traversal; the result keeps the written order, without faulty ones."""
        checked: dict[int, resolved.Traversal | None] = {}
        waiting = list(enumerate(traversals))
        while waiting:
            ready = [item for item in waiting if self._has_known_end(item[1])]
            # With no end known anywhere, the first one written gets its types from its edge.
            for index, traversal in ready or waiting[:1]:
                checked[index] = self._check(traversal)
                waiting.remove((index, traversal))
        in_order = ((traversals[index], checked[index]) for index in sorted(checked))
        return [(written, found) for written, found in in_order if found is not None]

    def _has_known_end(self, traversal: ast.Traversal) -> bool:
        return any(
            variable.name in self.checker.params or self.scope.find(variable.name) is not None
            for variable in (traversal.left, traversal.right)
            if variable.name != terms.ANONYMOUS
        )

    def _check(self, traversal: ast.Traversal) -> resolved.Traversal | None:
        edge = self._edge(traversal)
        sound = self._check_form(traversal, edge)
        left = self._end(traversal.left)
        right = self._end(traversal.right)
        if edge is None:
            for variable in (traversal.left, traversal.right):
                self._declare(variable, None)
            self._declare_edge(traversal, None)
            return None
        inward = self._is_inward(edge, left, right)
        left_type, right_type = (edge.target, edge.source) if inward else (edge.source, edge.target)
        fits = self._fit(traversal.left, left, left_type, edge)
        fits = self._fit(traversal.right, right, right_type, edge) and fits
        left_name = self._declare(traversal.left, self.catalog.nodes.get(left_type))
        right_name = self._declare(traversal.right, self.catalog.nodes.get(right_type))
        edge_variable = self._declare_edge(traversal, edge)
        if not (sound and fits):
            return None
        hops = traversal.hops
        way = None
        if edge_variable is not None and names_way(traversal):
            way, edge_variable = plan.Way(edge_variable, traversal.every), None
        return resolved.Traversal(
            resolved.NodeVariable(left_name, left_type),
            resolved.NodeVariable(right_name, right_type),
            edge.name,
            "both" if traversal.undirected else "in" if inward else "out",
            hops.minimum if hops else 1,
            hops.maximum if hops else 1,
            edge_variable,
            way,
        )

    # -- the edge --------------------------------------------------------------------

    def _edge(self, traversal: ast.Traversal) -> EdgeType | None:
        name = traversal.edge
        edge = self.catalog.find_edge(name.text)
        if edge is None:
            spelt = {known[0].lower() + known[1:] for known in self.catalog.edges}
            hint = name_hint(name.text, spelt)
            self.checker.error(name.span, f"unknown edge `{name.text}`", "T4", hint=hint)
        return edge

    def _check_form(self, traversal: ast.Traversal, edge: EdgeType | None) -> bool:
        """The rules that look at the clause alone: bounds, `<…>`, the edge variable."""
        error = self.checker.error
        sound = check_hops(self.checker, traversal, edge)
        if edge is not None and traversal.undirected and edge.source != edge.target:
            error(
                traversal.edge.span,
                f"`<{traversal.edge.text}>` goes both ways, but {edge.name} leads from "
                f"{edge.source} to {edge.target}",
                "T22",
                hint=f"write `{traversal.edge.text}`",
            )
            sound = False
        return self._check_edge_variable(traversal) and sound

    def _check_edge_variable(self, traversal: ast.Traversal) -> bool:
        variable = traversal.edge_variable
        if variable is None:
            return True
        error = self.checker.error
        if variable.name == terms.ANONYMOUS:
            return True
        ends = (traversal.left.name, traversal.right.name)
        if (
            variable.name in ends
            or variable.name in self.checker.params
            or self.scope.find(variable.name) is not None
        ):
            what, code = ("way", "T27") if names_way(traversal) else ("edge", "T23")
            error(
                variable.span,
                f"${variable.name} is in use already; name the {what} otherwise",
                code,
            )
            return False
        return True

    def _declare_edge(self, traversal: ast.Traversal, edge: EdgeType | None) -> str | None:
        variable = traversal.edge_variable
        if variable is None or variable.name == terms.ANONYMOUS:
            return None
        if self.scope.find(variable.name) is None:
            bound: Bound = EdgeBinding(variable.name, edge)
            if names_way(traversal):
                node = None if edge is None else self.catalog.nodes.get(edge.source)
                bound = WayBinding(variable.name, edge, node, traversal.weight is not None)
            self.scope.declare(bound)
        return variable.name

    # -- its ends --------------------------------------------------------------------

    def _end(self, variable: terms.Variable) -> NodeType | None:
        """The type an end has already; None when the edge will tell."""
        if variable.name == terms.ANONYMOUS:
            return None
        bound = self.scope.find(variable.name)
        return bound.type if isinstance(bound, NodeBinding) else None

    @staticmethod
    def _is_inward(edge: EdgeType, left: NodeType | None, right: NodeType | None) -> bool:
        """Whether the clause is written against the edge's direction."""
        if left is not None:
            return left.name != edge.source and left.name == edge.target
        if right is not None:
            return right.name != edge.target and right.name == edge.source
        return False

    def _fit(
        self, variable: terms.Variable, found: NodeType | None, wanted: str, edge: EdgeType
    ) -> bool:
        """Whether a variable can be an end of the edge; reports T5 or T23 when it cannot."""
        if variable.name == terms.ANONYMOUS:
            return True
        bound = self.scope.find(variable.name)
        if isinstance(bound, EdgeBinding | WayBinding):
            what, code = ("an edge", "T23") if isinstance(bound, EdgeBinding) else ("a way", "T27")
            self.checker.error(
                variable.span, f"${variable.name} is {what} and cannot end another", code
            )
            return False
        if bound is None and variable.name in self.checker.params:
            self.checker.error(
                variable.span,
                f"${variable.name} is a parameter; {edge.name} connects nodes",
                "T5",
                hint=f"bind a node first: `$node: {wanted} {{ @id: ${variable.name} }}`",
            )
            return False
        if found is not None and found.name != wanted:
            self.checker.error(
                variable.span,
                f"${variable.name} is a {found.name}, but {edge.name} leads from "
                f"{edge.source} to {edge.target}",
                "T5",
            )
            return False
        return bound is None or bound.type is not None

    def _declare(self, variable: terms.Variable, node_type: NodeType | None) -> str:
        """Bind an end that is not bound yet; the name lowering knows it by."""
        if variable.name == terms.ANONYMOUS:
            name = self.checker.fresh_name()
            if node_type is not None:
                self.scope.declare(NodeBinding(name, node_type))
            return name
        if self.scope.find(variable.name) is None and variable.name not in self.checker.params:
            self.scope.declare(NodeBinding(variable.name, node_type))
        return variable.name
