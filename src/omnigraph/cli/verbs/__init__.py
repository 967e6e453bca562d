"""The verbs, by name and one-line help; each lives in the module of its name.

Owns the list. Must not import the modules: `omnigraph --help` prints from here.
A verb's module exposes it as `command`, and its help starts with this line; a
verb of two words is a group there.
"""

from __future__ import annotations

from collections.abc import Mapping

VERBS: Mapping[str, str] = {
    "init": "Make a new, empty graph.",
    "load": "Load entities from files, as one commit.",
    "pipeline": "Load foreign tables as a document maps them onto types.",
    "mutate": "Run a query that changes a graph, as one commit.",
    "query": "Run a query and print what it returns.",
    "explain": "Show how a query would be run, or how it was.",
    "snapshot": "Show what a branch holds: every type, its version and its size.",
    "export": "Write the entities of a branch to stdout, one JSON object per line.",
    "commit": "Look at the commits of a graph.",
    "branch": "List, create and delete branches.",
    "schema": "Look at the schema of a graph.",
    "recovery": "Look at what became of writes that did not finish.",
    "lint": "Check a schema, and queries against it, without running them.",
    "generate": "Write a made-up graph of any size, as files to load.",
    "fmt": "Rewrite .pg and .gq files in the canonical layout.",
    "version": "Print the version of the program and of its storage format.",
}
