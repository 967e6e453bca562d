"""The half of looking that hands whole graphs to other libraries of graphs.

Owns those public methods, each written once. What a network is, the package below knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from omnigraph.graph.access import Surface, action, shown_at
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.networks.as_igraph import require_igraph, to_igraph
from omnigraph.read.networks.as_networkx import require_networkx, to_networkx
from omnigraph.read.networks.as_pyg import require_pyg, to_pyg
from omnigraph.read.networks.choice import Wanted
from omnigraph.read.networks.network import Network, read_network


class Networks(Surface):
    """What a session shows of a graph to other libraries."""

    @action("read", branch=shown_at(), hides=True)
    def to_networkx(
        self,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
    ) -> Any:
        """The graph as a `MultiDiGraph` of networkx, which has to be installed.

        Everything, or what the names of node and edge ``types`` mean: edges bring the nodes at
        their ends along, nodes alone the edges between them. ``properties`` are those to take
        along, all but blobs without any named. A node's key is its id, or `(type, id)` where there
        are several node types; an edge's is its id. Both have `@type` and `@id`.

        >>> network = graph.to_networkx(types=["ActedIn"])
        >>> network.number_of_nodes(), network.number_of_edges()
        (4, 3)
        >>> network.in_degree(("Film", "The Matrix"))
        2
        """
        choice = Wanted(types, properties)
        return to_networkx(self._network(choice, require_networkx, branch, snapshot))

    @action("read", branch=shown_at(), hides=True)
    def to_igraph(
        self,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
    ) -> Any:
        """The graph as a directed `Graph` of igraph, which has to be installed.

        ``types`` and ``properties`` are as for `to_networkx`. Vertices and edges have `@type`,
        `@id` and the properties as attributes, None where their type has no such property.

        >>> network = graph.to_igraph(types=["ActedIn"])
        >>> network.vcount(), network.ecount()
        (4, 3)
        """
        choice = Wanted(types, properties)
        return to_igraph(self._network(choice, require_igraph, branch, snapshot))

    @action("read", branch=shown_at(), hides=True)
    def to_pyg(
        self,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
    ) -> Any:
        """The graph as a `HeteroData` of PyTorch Geometric, which has to be installed.

        ``types`` are as for `to_networkx`. Without ``properties`` those are taken that are numbers,
        Bool or vectors: they become tensors, others lists. `@id` are the ids. A missing number
        is NaN.

        >>> data = graph.to_pyg(types=["ActedIn"])
        >>> data["Person", "ActedIn", "Film"].edge_index.shape
        torch.Size([2, 3])
        """
        choice = Wanted(types, properties, numbers_alone=properties is None)
        return to_pyg(self._network(choice, require_pyg, branch, snapshot))

    def _network(
        self, wanted: Wanted, require: Callable[[], object], branch: str, snapshot: str | None
    ) -> Network:
        def run(shown: Snapshot, catalog: Catalog) -> Network:
            choice = wanted.among(catalog)
            # Nothing is read for a library that is not there.
            require()
            return read_network(shown, catalog, choice)

        return self._access.read(run, branch, snapshot)
