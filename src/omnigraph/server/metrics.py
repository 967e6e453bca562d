"""Metrics: what a server tells Prometheus.

Owns the names of the metrics. Each application has a registry of its own; the processes of one
server put theirs together through the files of the prometheus client.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from omnigraph.manifest.overtaken import retries_so_far
from omnigraph.server.router import Route
from omnigraph.storage.objects.meter import requests_so_far
from omnigraph.storage.tables.handles import cache_uses

SHARED = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

__all__ = ["CONTENT_TYPE", "SHARED", "Metrics", "forget_process", "shared_directory"]


def shared_directory() -> str | None:
    """Where the processes of one server count together; None where there is one process."""
    return os.environ.get(SHARED)


class Metrics:
    """The counts of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "omnigraph_requests",
            "Requests by operation, method and status",
            ("operation", "method", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "omnigraph_request_seconds",
            "How long requests took",
            ("operation",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._open = Gauge(
            "omnigraph_open_requests",
            "Requests that are being answered",
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        self._queries = Gauge(
            "omnigraph_open_queries",
            "Queries that are being run",
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        self._commits = Counter(
            "omnigraph_commits",
            "Commits that were made, by graph",
            ("graph",),
            registry=self._registry,
        )
        self._maintenance = Counter(
            "omnigraph_maintenance",
            "Steps of background maintenance, by graph, kind of work and outcome",
            ("graph", "work", "outcome"),
            registry=self._registry,
        )
        if SHARED not in os.environ:
            self._registry.register(_Process())

    @contextmanager
    def open_request(self) -> Iterator[None]:
        """Count a request while it is being answered."""
        self._open.inc()
        try:
            yield
        finally:
            self._open.dec()

    @contextmanager
    def open_query(self) -> Iterator[None]:
        """Count a query while it runs."""
        self._queries.inc()
        try:
            yield
        finally:
            self._queries.dec()

    def request(self, route: Route | None, method: str, status: int, seconds: float) -> None:
        """Count a request that is over."""
        operation = "none" if route is None else route.operation
        known = method if method in ("GET", "POST", "HEAD", "DELETE") else "other"
        self._requests.labels(operation, known, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def commit(self, graph_id: str) -> None:
        """Count a commit."""
        self._commits.labels(graph_id).inc()

    def maintenance(self, graph_id: str, work: str, outcome: str) -> None:
        """Count a step of background maintenance."""
        self._maintenance.labels(graph_id, work, outcome).inc()

    def text(self) -> bytes:
        """All of it, as it is scraped; of all processes of the server if there are several."""
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        registry.register(_Process())
        return generate_latest(registry)


def forget_process(pid: int) -> None:
    """What a process had open that is gone is open no more."""
    if SHARED in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]


class _Process:
    """What is asked for when it is scraped: the caches and the requests of this process."""

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        held = GaugeMetricFamily(
            "omnigraph_cache_bytes", "Bytes in the caches of this process", labels=["cache"]
        )
        for name, use in cache_uses().items():
            held.add_metric([name], use.bytes)
        yield held
        asked = CounterMetricFamily(
            "omnigraph_object_store_requests",
            "Requests of this process to its storage",
            labels=["operation"],
        )
        for operation, count in sorted(requests_so_far().items()):
            asked.add_metric([operation], count)
        yield asked
        retries = CounterMetricFamily(
            "omnigraph_write_retries",
            "How often writes of this process were overtaken by others",
            labels=["kind"],
        )
        for kind, count in sorted(retries_so_far().items()):
            retries.add_metric([kind], count)
        yield retries
