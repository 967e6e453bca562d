"""A program that is killed while it loads: `doomed.py URI`. It has 64 MB to bring in."""

from __future__ import annotations

import sys

import pyarrow as pa

import omnigraph as og


def main() -> None:
    """Load many books at once."""
    count = 50_000
    books = pa.table(
        {
            "isbn": pa.array([f"900-{number}" for number in range(count)]),
            "title": pa.array([f"Volume {number}" for number in range(count)]),
            "shelf": pa.array(["science"] * count),
            "summary": pa.array([f"{number:032}" * 40 for number in range(count)]),
        }
    )
    og.open(sys.argv[1], actor="doomed").load({"Book": books}, mode="append")


if __name__ == "__main__":
    main()
