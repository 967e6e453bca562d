"""A model of a load that no machine here can hold: `python -m bench.scale.model` prints it.

Owns the arithmetic and its assumptions: sizes are those of the code, costs of a row were measured
by `bench_scale` on one core. It measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.pipeline.load.check.key_source import GROUP_ROWS
from omnigraph.pipeline.load.check.round_rows import NOTED_BYTES, RANGE_BYTES
from omnigraph.storage.tables.write_rows import MAX_ROWS_PER_FILE

MB, GB, TB = 10**6, 10**9, 10**12


@dataclass(frozen=True, slots=True)
class Load:
    """How much is loaded, and what a row is like: bytes in memory and of its key."""

    nodes: int = 1_000_000_000
    edges: int = 10_000_000_000
    key: int = 16
    node: int = 100
    edge: int = 80


@dataclass(frozen=True, slots=True)
class Cluster:
    """Executors, and what one core and the store do in a second."""

    executors: int = 100
    cores: int = 4
    staged_rows: int = 1_000_000
    cut_keys: int = 3_000_000
    decided_keys: int = 10_000_000
    request_seconds: float = 0.02
    requests_at_once: int = 8
    store_bytes: int = 40 * GB
    """What all executors read or write together."""

    @property
    def all_cores(self) -> int:
        """How many tasks run at once."""
        return self.executors * self.cores


@dataclass(frozen=True, slots=True)
class Model:
    """What the load comes to."""

    load: Load
    cluster: Cluster

    def lines(self) -> list[tuple[str, str]]:
        """Quantities, and what they are."""
        load, cluster = self.load, self.cluster
        cores = cluster.all_cores
        entry = load.key + NOTED_BYTES
        ids, ends = load.nodes, 2 * load.edges
        cuts = -(-load.nodes // GROUP_ROWS) + 2 * -(-load.edges // GROUP_ROWS)
        # In a group of edges in no order hardly any two name one node.
        cut_bytes = ids * (load.key + 28) + ends * (load.key + 12)
        ranges = -(-(ids + ends) * entry // RANGE_BYTES)
        slices = cuts * ranges
        requests = 2 * slices
        stage = (load.nodes + load.edges) / cluster.staged_rows / cores
        cut = (ids + ends) / cluster.cut_keys / cores
        decide = (2 * ids + ends) / cluster.decided_keys / cores
        waiting = requests * cluster.request_seconds / (cores * cluster.requests_at_once)
        moved = 2 * cut_bytes / cluster.store_bytes
        files = -(-load.nodes // MAX_ROWS_PER_FILE) + -(-load.edges // MAX_ROWS_PER_FILE)
        steps = {
            "stage": stage,
            "cut keys": cut,
            "decide": decide,
            "wait for slices": waiting,
            "move keys": moved,
        }
        worst = max(steps, key=lambda name: steps[name])
        return [
            ("rows written", f"{(load.nodes * load.node + load.edges * load.edge) / TB:.1f} TB"),
            ("data files", f"{files:,}"),
            ("keys written and read again", f"{cut_bytes / GB:,.0f} GB"),
            ("cut files", f"{cuts:,}"),
            ("ranges", f"{ranges:,}"),
            ("a slice", f"{cut_bytes / slices / 1000:.1f} kB"),
            ("requests for slices", f"{requests / 1e6:,.0f} million"),
            ("memory of a task that decides", f"{5 * RANGE_BYTES / MB:.0f} MB beside the process"),
            ("names the driver holds", f"{(cuts + ranges + files) * 200 / MB:.0f} MB"),
            *((f"{name}, on {cores} cores", f"{took:,.0f} s") for name, took in steps.items()),
            ("what takes longest", worst),
        ]


def table(model: Model) -> str:
    """The model as a table of Markdown."""
    rows = [f"| {name} | {value} |" for name, value in model.lines()]
    return "\n".join(["| What | How much |", "|---|---|", *rows])


if __name__ == "__main__":
    print(table(Model(Load(), Cluster())))
