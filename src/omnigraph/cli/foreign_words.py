"""Words that other programs taught: how git, SQL and databases call what is called otherwise here.

Owns the answers. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

_BRANCH = "a command works on a branch that it names: --branch B"
_MUTATE = "rows are written by a mutation: `omnigraph mutate`"
_QUERY = "questions are asked by `omnigraph query`; SQL by `graph.sql(…)` in Python"

ANSWERS: Mapping[str, str] = {
    "checkout": f"{_BRANCH}; `omnigraph branch create NAME` makes one",
    "switch": f"{_BRANCH}; `omnigraph branch create NAME` makes one",
    "merge": "branches are merged by `omnigraph branch merge SOURCE`",
    "rebase": "branches are merged, and not rewritten: `omnigraph branch merge SOURCE`",
    "reset": "a branch is put back by `omnigraph branch reset NAME --to REF`",
    "rename": "`omnigraph branch rename OLD NEW`, or @rename_from in a schema",
    "clone": "a graph is a directory: copy it, or `omnigraph export` it",
    "push": "there is one graph that everybody writes to: `omnigraph branch merge` publishes",
    "pull": "there is one graph that everybody reads: nothing is to be fetched",
    "fetch": "there is one graph that everybody reads: nothing is to be fetched",
    "add": f"every write is a commit by itself; {_MUTATE}",
    "stash": "a branch keeps what is not ready: `omnigraph branch create NAME`",
    "gc": "space is reclaimed by `omnigraph cleanup`",
    "fsck": "a graph is checked by `omnigraph verify`",
    "select": _QUERY,
    "sql": _QUERY,
    "match": _QUERY,
    "insert": _MUTATE,
    "update": _MUTATE,
    "delete": _MUTATE,
    "upsert": _MUTATE,
    "create": "a graph is made by `omnigraph init`, a branch by `omnigraph branch create`",
    "drop": "types are dropped by `omnigraph schema apply`, branches by `omnigraph branch delete`",
    "import": "files are loaded by `omnigraph load`",
    "copy": "files are loaded by `omnigraph load`, and written by `omnigraph export`",
    "dump": "a graph is written out by `omnigraph export`",
    "backup": "a graph is a directory: copy it, or `omnigraph export` it",
    "migrate": "a schema is changed by `omnigraph schema plan` and `omnigraph schema apply`",
    "vacuum": "`omnigraph maintain` does what is worth doing, `omnigraph cleanup` reclaims space",
    "analyze": "`omnigraph explain --analyze` runs a query and says how that went",
    "branches": "`omnigraph branch list`",
    "tags": "`omnigraph tag list`",
    "commits": "`omnigraph log`, or `omnigraph commit list`",
    "server": "a graph is served by `omnigraph serve`",
    "help": "`omnigraph --help`, and `--help` behind every verb",
}
