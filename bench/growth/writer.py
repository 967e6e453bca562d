"""One writer process: appends rows for so many seconds, then increments one counter.

Owns the protocol: a line on standard output when it is ready, one on standard input to begin,
and a JSON line with what it did.
"""

from __future__ import annotations

import json
import sys
import time

import omnigraph as og
from omnigraph.errors import Conflict, PreconditionFailed, ReadSetChanged

INSERT = "query q($n: String) { insert Person { name: $n, age: 3 } }"
READ = 'query q() { match { $p: Person { name: "counter" } } return { $p.age as age } }'
UPDATE = 'query q($a: I32) { update Person set { age: $a } where name = "counter" }'


def main(place: str, name: str, seconds: float, increments: int) -> None:
    """Write, and tell how much."""
    graph = og.open(place)
    print("ready", flush=True)
    sys.stdin.readline()
    made, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        graph.mutate(INSERT, params={"n": f"{name}-{made}"})
        made += 1
    done = 0
    while done < increments:
        at = graph.snapshot().commit_id
        age = graph.query(READ, snapshot=at).rows[0]["age"]
        try:
            graph.mutate(UPDATE, params={"a": age + 1}, if_commit=at)
        except (Conflict, PreconditionFailed, ReadSetChanged):
            continue
        done += 1
    print(json.dumps({"commits": made, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
