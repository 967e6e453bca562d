"""A network as PyTorch Geometric has it: tensors by node type and by kind of edge.

Owns which columns become numbers and how missing values do. What the tensors are made of needs no
library, and is what is tested where there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.networks.choice import library
from omnigraph.read.networks.network import Edges, Network, Nodes, listed

Values = npt.NDArray[Any] | list[Any]
EdgeKey = tuple[str, str, str]


def require_pyg() -> tuple[Any, Any]:
    """The two libraries that it takes."""
    return library("torch", "torch"), library("torch_geometric.data", "torch_geometric")


def to_pyg(network: Network) -> Any:
    """A `HeteroData`; ids are lists, numbers tensors, and other values lists again."""
    torch, geometric = require_pyg()
    data = geometric.HeteroData()
    data["commit"] = network.commit_id
    for key, values in (*node_values(network).items(), *edge_values(network).items()):
        for name, found in values.items():
            is_array = isinstance(found, np.ndarray)
            data[key][name] = torch.from_numpy(found) if is_array else found
    for name, ids in ((one.type.name, one.ids) for one in network.nodes):
        data[name].num_nodes = len(ids)
    return data


def node_values(network: Network) -> dict[str, dict[str, Values]]:
    """What is known of the nodes of each type."""
    return {one.type.name: _values(one) for one in network.nodes}


def edge_values(network: Network) -> dict[EdgeKey, dict[str, Values]]:
    """What is known of the edges between each two types; `edge_index` are their ends."""
    return {
        (one.source, one.type.name, one.target): {
            "edge_index": np.stack([one.sources, one.targets]),
            **_values(one),
        }
        for one in network.edges
    }


def _values(part: Nodes | Edges) -> dict[str, Values]:
    columns = part.columns
    return {
        "@id": listed(part.ids),
        **{name: values_of(columns.column(name)) for name in columns.column_names},
    }


def values_of(column: pa.ChunkedArray) -> Values:
    """Numbers as an array, in their width; with NaN where one is missing. Others as a list."""
    if pa.types.is_fixed_size_list(column.type):
        return _vectors(column)
    if pa.types.is_boolean(column.type) and not column.null_count:
        return np.array(column.to_numpy())
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return listed(column)
    if column.type == pa.uint32():
        # Which torch computes with; a U64 stays one.
        column = pc.cast(column, pa.int64())
    if column.null_count and not pa.types.is_floating(column.type):
        # Larger numbers than a double holds are rounded, as in every library with missing numbers.
        column = pc.cast(column, pa.float64(), safe=False)
    return np.array(column.to_numpy())


def _vectors(column: pa.ChunkedArray) -> Values:
    """A row for each vector; a missing one is all NaN."""
    width = column.type.list_size
    whole = column.combine_chunks()
    found = np.full((len(whole), width), np.nan, dtype=np.float32)
    is_there = np.asarray(whole.is_valid())
    found[is_there] = np.asarray(whole.flatten(), dtype=np.float32).reshape(-1, width)
    return found
