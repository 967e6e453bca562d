"""The verbs, by room, name and one-line help; each lives in the module of its name.

Owns the list. Must not import the modules: `omnigraph --help` prints from here.
A verb's module exposes it as `command`, and its help starts with this line; a
verb of two words is a group there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Verb(NamedTuple):
    """Where a verb lives, and what it does in a line."""

    room: str
    help: str


VERBS: Mapping[str, Verb] = {
    "init": Verb("schema", "Make a new, empty graph, or write a project."),
    "infer": Verb("schema", "Propose a schema for CSV and Parquet files, and how to load them."),
    "load": Verb("data", "Load entities from files, as one commit."),
    "pipeline": Verb("data", "Load foreign tables as a document maps them onto types."),
    "embed": Verb("data", "Make the vectors of stored nodes, or of the records of a file."),
    "mutate": Verb("data", "Run a query that changes a graph, as one commit."),
    "query": Verb("data", "Run a query and print what it returns."),
    "shell": Verb("data", "Ask a graph one thing after the other."),
    "blob": Verb("data", "Read the bytes of a Blob property, or look at what they are."),
    "explain": Verb("data", "Show how a query would be run, or how it was."),
    "snapshot": Verb("history", "Show what a branch holds: every type, its version and its size."),
    "export": Verb(
        "data",
        "Write the entities of a branch, or of a commit, to stdout, one JSON object per line.",
    ),
    "log": Verb(
        "history", "Show the history of a branch, or of all: who did what, and what was merged."
    ),
    "commit": Verb("history", "Look at the commits of a graph."),
    "show": Verb("history", "Show a commit and what it changed."),
    "history": Verb("history", "Show which commits changed one entity, and how."),
    "blame": Verb("history", "Show who set each property of an entity last, and in which commit."),
    "diff": Verb("history", "Show what is different between two branches or commits."),
    "changes": Verb("history", "Follow what is committed to a branch."),
    "branch": Verb("history", "List, create, rename, reset, merge and delete branches."),
    "tag": Verb(
        "history", "List, create and delete tags: names of commits, which cleanup leaves readable."
    ),
    "revert": Verb("history", "Undo on a branch what a commit did, as a new commit."),
    "cherry-pick": Verb("history", "Do on a branch what a commit did elsewhere, as a new commit."),
    "schema": Verb("schema", "Look at the schema of a branch, and change it."),
    "status": Verb(
        "maintain",
        "Show the health of a graph: what it holds, what it takes, and what is to be done.",
    ),
    "maintain": Verb("maintain", "Do what is worth doing to keep a graph small and fast."),
    "serve": Verb("serving", "Serve a graph over HTTP until a signal comes."),
    "recovery": Verb("maintain", "Look at what became of writes that did not finish."),
    "index": Verb("maintain", "Build the indexes that a schema asks for, and see what they cover."),
    "optimize": Verb(
        "maintain", "Put rows into few large files, and make indexes fit, as one commit."
    ),
    "cleanup": Verb("maintain", "Reclaim the files that no commit needs but those to be kept."),
    "verify": Verb("maintain", "Check that everything a graph has published is there and right."),
    "repair": Verb("maintain", "Make again what is derived of a graph, and show what is lost."),
    "cluster": Verb(
        "cluster", "Deploy the graphs of a team: plan what is different, and apply it."
    ),
    "queries": Verb("cluster", "Look at the stored queries of a graph, and check them."),
    "login": Verb("serving", "Keep the token of a server."),
    "logout": Verb("serving", "Forget the token of a server."),
    "alias": Verb("project", "Run the read that an alias stands for, on the graph that it is for."),
    "config": Verb("project", "Look at what is configured, check it, and rewrite it."),
    "graphs": Verb("serving", "Look at the graphs of a server."),
    "profile": Verb("serving", "Look at the configured profiles."),
    "lint": Verb("schema", "Check a schema, and queries against it, without running them."),
    "policy": Verb("maintain", "Check a policy, test it, and ask it what somebody may do."),
    "generate": Verb("data", "Write a made-up graph of any size, as files to load."),
    "submit": Verb(
        "data",
        "Print the spark-submit command that runs another command of ours on a cluster.",
    ),
    "fmt": Verb("schema", "Rewrite .pg and .gq files in the canonical layout."),
    "lsp": Verb("schema", "Serve editors of .pg and .gq files over stdin and stdout."),
    "completion": Verb(
        "maintain",
        "Print the script that makes a shell complete verbs, options and their values.",
    ),
    "version": Verb("maintain", "Print the version of the program and of its storage format."),
}
