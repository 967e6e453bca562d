"""One of several programs that write to one graph at once: `rival.py URI NAME COUNT`.

Waits for the end of stdin, so that all of them begin together.
"""

from __future__ import annotations

import sys

import omnigraph as og

JOIN = """
query join($card: String, $name: String) {
    insert Reader { card: $card, name: $name, joined: now() }
}
"""


def main() -> None:
    """Add readers, and count how often somebody else was faster."""
    uri, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    graph = og.open(uri, actor=name)
    print("ready", flush=True)
    sys.stdin.readline()
    overtaken = 0
    for number in range(count):
        seen = graph.snapshot().commit_id
        done = graph.mutate(JOIN, params={"card": f"{name}-{number}", "name": name})
        if done.commit is not None and done.commit.parent_id != seen:
            overtaken += 1
    print(f"    {name}: {count} commits, overtaken {overtaken} times")


if __name__ == "__main__":
    main()
