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
    "embed": "Make the vectors of stored nodes, or of the records of a file.",
    "mutate": "Run a query that changes a graph, as one commit.",
    "query": "Run a query and print what it returns.",
    "explain": "Show how a query would be run, or how it was.",
    "snapshot": "Show what a branch holds: every type, its version and its size.",
    "export": "Write the entities of a branch to stdout, one JSON object per line.",
    "log": "Show the history of a branch, or of all: who did what, and what was merged.",
    "commit": "Look at the commits of a graph.",
    "diff": "Show what is different between two branches or commits.",
    "changes": "Follow what is committed to a branch.",
    "branch": "List, create, merge and delete branches.",
    "schema": "Look at the schema of a graph.",
    "recovery": "Look at what became of writes that did not finish.",
    "index": "Build the indexes that a schema asks for, and see what they cover.",
    "cleanup": "Reclaim the files that no commit needs but those to be kept.",
    "lint": "Check a schema, and queries against it, without running them.",
    "generate": "Write a made-up graph of any size, as files to load.",
    "fmt": "Rewrite .pg and .gq files in the canonical layout.",
    "version": "Print the version of the program and of its storage format.",
}
