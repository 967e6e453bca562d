"""Checking traversals: the edge, its direction, the types at its ends.

Owns direction inference. Traversals are taken as soon as one of their ends has
a type, so the order in which they are written does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.scope import Bound, EdgeBinding, NodeBinding, Scope, WayBinding
from omnigraph.lang.query.check.ways import check_hops, names_way
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_sets import TypeSet, members_of


@dataclass(frozen=True, slots=True)
class _Ends:
    """What some edges, alternatives to one another, lead from and to."""

    source: NodeType | TypeSet
    target: NodeType | TypeSet
    edges: tuple[EdgeType, ...]

    def __str__(self) -> str:
        said = (f"{one.name} leads from {one.source} to {one.target}" for one in self.edges)
        return " and ".join(said)

    @property
    def turned(self) -> _Ends:
        """As seen from the other end."""
        return _Ends(self.target, self.source, self.edges)

    @property
    def overlap(self) -> bool:
        """Whether some nodes may stand at both ends."""
        return _overlap(self.source, self.target)

    def fit(self, left: NodeType | TypeSet | None, right: NodeType | TypeSet | None) -> bool:
        """Whether nodes of these types may be connected, in this direction."""
        return (left is None or _overlap(left, self.source)) and (
            right is None or _overlap(right, self.target)
        )


def _overlap(left: NodeType | TypeSet, right: NodeType | TypeSet) -> bool:
    return not set(members_of(left)).isdisjoint(members_of(right))


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
            # A direction that is beyond doubt may decide one that is not.
            sure = [item for item in ready if not self._is_open(item[1])]
            # With no end known anywhere, the first one written gets its types from its edge.
            for index, traversal in sure or ready[:1] or waiting[:1]:
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

    def _is_open(self, traversal: ast.Traversal) -> bool:
        """Whether a clause could be meant in either direction, since types overlap."""
        edges = [self.catalog.find_edge(name.text) for name in (traversal.edge, *traversal.others)]
        known = [edge for edge in edges if edge is not None]
        ends = self._ends(known, None) if len(known) == len(edges) else None
        if ends is None or ends.source == ends.target or traversal.undirected:
            return False
        left, right = self._end(traversal.left), self._end(traversal.right)
        return ends.fit(left, right) and ends.turned.fit(left, right)

    def _check(self, traversal: ast.Traversal) -> resolved.Traversal | None:
        edges = [self._edge(name) for name in (traversal.edge, *traversal.others)]
        known = [edge for edge in edges if edge is not None]
        ends = self._ends(known, traversal) if len(known) == len(edges) else None
        sound = self._check_form(traversal, ends)
        if ends is None:
            for variable in (traversal.left, traversal.right):
                self._declare(variable, None)
            self._declare_edge(traversal, None)
            return None
        left = self._end(traversal.left)
        right = self._end(traversal.right)
        inward = self._is_inward(ends, left, right)
        seen = ends.turned if inward else ends
        wanted_left, wanted_right = seen.source, seen.target
        if traversal.undirected:
            wanted_left = wanted_right = self._either(ends)
        # No hop at all is a way from any node: what is no end of the edge reaches itself only.
        stays = traversal.hops is not None and traversal.hops.minimum == 0
        fits = self._fit(traversal.left, left, wanted_left, ends, narrows=not stays)
        fits = self._fit(traversal.right, right, wanted_right, ends) and fits
        if stays and left is not None:
            wanted_left = left
        left_name = self._declare(traversal.left, wanted_left)
        right_name = self._declare(traversal.right, wanted_right)
        names = sorted({edge.name for edge in known})
        through = self._either(ends)
        edge_variable = self._declare_edge(traversal, self.catalog.edges_called(names), through)
        if not (sound and fits):
            return None
        hops = traversal.hops
        way = None
        if edge_variable is not None and names_way(traversal):
            way, edge_variable = plan.Way(edge_variable, through.name, traversal.every), None
        return resolved.Traversal(
            resolved.NodeVariable(left_name, wanted_left.name),
            resolved.NodeVariable(right_name, wanted_right.name),
            names[0],
            "both" if traversal.undirected else "in" if inward else "out",
            hops.minimum if hops else 1,
            hops.maximum if hops else 1,
            edge_variable,
            tuple(names[1:]),
            way,
        )

    # -- the edge --------------------------------------------------------------------

    def _edge(self, name: terms.Name) -> EdgeType | None:
        edge = self.catalog.find_edge(name.text)
        if edge is None:
            spelt = {known[0].lower() + known[1:] for known in self.catalog.edges}
            hint = name_hint(name.text, spelt)
            self.checker.error(name.span, f"unknown edge `{name.text}`", "T4", hint=hint)
        return edge

    def _ends(self, edges: list[EdgeType], traversal: ast.Traversal | None) -> _Ends | None:
        """The ends of alternative edges; an error of the clause if they are too far apart."""
        if not edges:
            return None
        sides = [
            self._joined([self.catalog.nodes_called(end) for end in names])
            for names in ([edge.source for edge in edges], [edge.target for edge in edges])
        ]
        source, target = sides
        if source is not None and target is not None:
            return _Ends(source, target, tuple(edges))
        if traversal is not None:
            said = "; ".join(f"{one.name} leads from {one.source} to {one.target}" for one in edges)
            self.checker.error(
                traversal.others[0].span,
                "alternatives connect nodes of one type or of one interface, on either side: "
                f"{said}",
                "T28",
                hint="write `any { … } or { … }`, or a clause for each",
            )
        return None

    def _joined(self, types: list[NodeType | TypeSet]) -> NodeType | TypeSet | None:
        """What alternative ends are: one type, or what one interface has in common."""
        first = types[0]
        if all(type_ == first for type_ in types):
            return first
        members = {member for type_ in types for member in members_of(type_)}
        interfaces = [
            self.catalog.nodes_called(name)
            for name, one in self.catalog.interfaces.items()
            if members <= set(one.implementers)
        ]
        if len(members) > 1 and not interfaces:
            return None
        return self.catalog.nodes_among(members, interfaces)

    def _either(self, ends: _Ends) -> NodeType | TypeSet:
        """What is at the ends of an edge that is walked both ways."""
        if ends.source == ends.target:
            return ends.source
        members = {*members_of(ends.source), *members_of(ends.target)}
        found = self.catalog.nodes_among(members, (ends.source, ends.target))
        return found or ends.source

    def _check_form(self, traversal: ast.Traversal, ends: _Ends | None) -> bool:
        """The rules that look at the clause alone: bounds, `<…>`, the edge variable."""
        error = self.checker.error
        chains = ends is None or ends.overlap
        sound = check_hops(self.checker, traversal, "" if chains else str(ends))
        if ends is not None and traversal.undirected and not ends.overlap:
            word = "|".join(name.text for name in (traversal.edge, *traversal.others))
            error(
                traversal.edge.span,
                f"`<{word}>` goes both ways, but {ends}",
                "T22",
                hint=f"write `{word}`",
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

    def _declare_edge(
        self,
        traversal: ast.Traversal,
        edge: EdgeType | TypeSet | None,
        through: NodeType | TypeSet | None = None,
    ) -> str | None:
        variable = traversal.edge_variable
        if variable is None or variable.name == terms.ANONYMOUS:
            return None
        if self.scope.find(variable.name) is None:
            bound: Bound = EdgeBinding(variable.name, edge)
            if names_way(traversal):
                bound = WayBinding(variable.name, edge, through, traversal.weight is not None)
            self.scope.declare(bound)
        return variable.name

    # -- its ends --------------------------------------------------------------------

    def _end(self, variable: terms.Variable) -> NodeType | TypeSet | None:
        """The type an end has already; None when the edge will tell."""
        if variable.name == terms.ANONYMOUS:
            return None
        bound = self.scope.find(variable.name)
        return bound.type if isinstance(bound, NodeBinding) else None

    @staticmethod
    def _is_inward(
        ends: _Ends, left: NodeType | TypeSet | None, right: NodeType | TypeSet | None
    ) -> bool:
        """Whether the clause is written against the edge's direction."""
        if ends.fit(left, right):
            return False
        if ends.turned.fit(left, right):
            return True
        # It fits neither way: the end that is known first says which was meant.
        seen = (left, None) if left is not None else (None, right)
        return ends.turned.fit(*seen) and not ends.fit(*seen)

    def _fit(
        self,
        variable: terms.Variable,
        found: NodeType | TypeSet | None,
        wanted: NodeType | TypeSet,
        ends: _Ends,
        *,
        narrows: bool = True,
    ) -> bool:
        """Whether a variable can be an end of the edge, which narrows it; reports T5 or T23."""
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
                f"${variable.name} is a parameter; {ends.edges[0].name} connects nodes",
                "T5",
                hint=f"bind a node first: `$node: {wanted.name} {{ @id: ${variable.name} }}`",
            )
            return False
        if found is None or bound is None:
            return bound is None
        both = set(members_of(found)).intersection(members_of(wanted))
        narrowed = self.catalog.nodes_among(both, (found, wanted))
        if narrowed is None:
            self.checker.error(
                variable.span, f"${variable.name} is a {found.name}, but {ends}", "T5"
            )
            return False
        if narrows and narrowed != found:
            self.scope.narrow(bound, narrowed)
        return True

    def _declare(self, variable: terms.Variable, node_type: NodeType | TypeSet | None) -> str:
        """Bind an end that is not bound yet; the name lowering knows it by."""
        if variable.name == terms.ANONYMOUS:
            name = self.checker.fresh_name()
            if node_type is not None:
                self.scope.declare(NodeBinding(name, node_type))
            return name
        if self.scope.find(variable.name) is None and variable.name not in self.checker.params:
            self.scope.declare(NodeBinding(variable.name, node_type))
        return variable.name
