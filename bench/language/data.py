"""The people of the traversal benchmark with more to say of them, for every kind of expression.

Owns the columns: texts in both cases, days, moments, missing values, numbers that many share.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.traversal.data import EDGES_FILE, PEOPLE_FILE, SEED, People

FIRST_BIRTH, LAST_BIRTH = np.datetime64("1940-01-01"), np.datetime64("2005-12-31")
FIRST_DAY, LAST_DAY = np.datetime64("2010-01-01"), np.datetime64("2024-12-31")
DAY_MS = 86_400_000
# Mail is kept by so many hosts, and so many of a hundred people have none.
HOSTS = ("Example.org", "Post.example", "mail.example", "INBOX.example")
WITHOUT_MAIL = 7


def write(graph: People, directory: Path) -> None:
    """Persons with their numbers, and who knows whom by number and by key."""
    pq.write_table(persons(graph), directory / PEOPLE_FILE)
    pq.write_table(knows(graph), directory / EDGES_FILE)


def persons(graph: People) -> pa.Table:
    """One row for each person."""
    random = np.random.default_rng(SEED + 5)
    count = graph.count
    hosts = pa.array(HOSTS).take(pa.array(random.integers(0, len(HOSTS), count)))
    mails = pc.binary_join_element_wise(graph.names, hosts, "@")
    known = pa.array(random.integers(0, 100, count) >= WITHOUT_MAIL)
    moments = _days(random, FIRST_DAY, LAST_DAY, count).astype(np.int64) * DAY_MS
    moments += random.integers(0, DAY_MS, count)
    more = {
        "mail": pc.if_else(known, mails, None),
        "born": pa.array(_days(random, FIRST_BIRTH, LAST_BIRTH, count)),
        "joined": pa.array(moments).cast(pa.timestamp("ms", "UTC")),
        "number": pa.array(np.arange(count)),
    }
    table = graph.node_table()
    for name, column in more.items():
        table = table.append_column(name, column)
    return table


def knows(graph: People) -> pa.Table:
    """One row for each edge."""
    random = np.random.default_rng(SEED + 6)
    table = graph.edge_table()
    days = pa.array(_days(random, FIRST_DAY, LAST_DAY, len(graph.sources)))
    for name, column in (("since", days), ("src", graph.sources), ("dst", graph.targets)):
        table = table.append_column(name, pa.array(column))
    return table


def _days(
    random: np.random.Generator, first: np.datetime64, last: np.datetime64, count: int
) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    span = int((last - first).astype(np.int64)) + 1
    return first + random.integers(0, span, count)
