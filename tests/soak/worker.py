"""A process of the soak: it does what it is told through a pipe, and answers each time.

`python -m tests.soak.worker SECONDS BYTES` forks such processes, for the driver at the other end
of its standard input; the seconds are how wrong their clocks are, the bytes what a write may carry
without being announced. Owns the calls of the public API.
Decides nothing: what an answer means, the driver knows.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import time
import warnings
from contextlib import suppress
from datetime import timedelta
from traceback import format_exc
from typing import TYPE_CHECKING, Any

from omnigraph.lang.structural import DST, ID, SRC
from tests.soak.clock import shift_clock
from tests.soak.rows import COUNTER, SCHEMA, TYPES, bulk_text, digest, edge_key

if TYPE_CHECKING:
    import lance

    import omnigraph as og
    from omnigraph.manifest.entries import Commit

COUNT = "query q($v: I32, $n: String) { update Counter set { mark: $v } where name = $n }"
EXTRA = "extra"
"""The property that comes and goes."""
_PR_SET_PDEATHSIG = 1
PEOPLE = "query q() { match { $p: Person } return { $p.name as name, $p.mark as mark } }"


class Handle:
    """The graph of this process, and what can be asked of it."""

    def __init__(self) -> None:
        self.graph: og.Graph

    def perform(self, do: str, command: dict[str, Any]) -> dict[str, Any]:
        """Do one thing; what it gives is told to the driver."""
        perform = getattr(self, f"do_{do}")
        answer: dict[str, Any] = perform(command)
        return answer

    # -- opening -------------------------------------------------------------------------

    def do_init(self, command: dict[str, Any]) -> dict[str, Any]:
        import omnigraph as og

        self.graph = og.init(command["root"], SCHEMA)
        result = self.graph.load(
            [{"type": "Counter", "data": {"name": COUNTER, "mark": 0}}],
            mode="append",
            actor=command["id"],
        )
        return _commit(result.commit)

    def do_open(self, command: dict[str, Any]) -> dict[str, Any]:
        import omnigraph as og

        self.graph = og.open(command["root"])
        return {}

    # -- writing -------------------------------------------------------------------------

    def do_mutate(self, command: dict[str, Any]) -> dict[str, Any]:
        result = self.graph.mutate(
            command["source"],
            params=command["params"],
            branch=command["branch"],
            actor=command["id"],
        )
        return _commit(result.commit)

    def do_load(self, command: dict[str, Any]) -> dict[str, Any]:
        data = [*command["data"], *(_bulk_line(*row) for row in command.get("bulk", ()))]
        result = self.graph.load(
            data,
            mode=command["mode"],
            branch=command["branch"],
            from_branch=command.get("from"),
            engine="inline",
            actor=command["id"],
        )
        return {**_commit(result.commit), "created": result.branch_created}

    def do_count(self, command: dict[str, Any]) -> dict[str, Any]:
        """Read the counter and write one more, if nothing happened in between."""
        branch = command["branch"]
        head = self.graph.commits.list(branch)[0].id
        (row,) = self.graph.table("Counter", snapshot=head).to_table(["mark"]).to_pylist()
        result = self.graph.mutate(
            COUNT,
            params={"v": row["mark"] + 1, "n": COUNTER},
            branch=branch,
            if_commit=head,
            actor=command["id"],
        )
        return _commit(result.commit)

    # -- branches ------------------------------------------------------------------------

    def do_create(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"name": self.graph.branches.create(command["branch"], command["from"])}

    def do_delete(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"name": self.graph.branches.delete(command["branch"])}

    def do_merge(self, command: dict[str, Any]) -> dict[str, Any]:
        result = self.graph.branches.merge(
            command["from"],
            command["branch"],
            delete_source=command["delete_source"],
            actor=command["id"],
        )
        return {
            **_commit(result.commit),
            "outcome": result.outcome,
            "base": result.base_commit_id,
            "deleted": result.branch_deleted,
            "delete_error": result.branch_delete_error,
        }

    # -- maintenance ---------------------------------------------------------------------

    def do_cleanup(self, command: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for name in ("grace", "older_than"):
            if command[name] is not None:
                options[name] = timedelta(seconds=command[name])
        report = self.graph.cleanup(command["keep"], **options)
        return {"removed": report.files_removed, "errors": report.errors}

    def do_index(self, command: dict[str, Any]) -> dict[str, Any]:
        report = self.graph.ensure_indices(command["branch"], actor=command["id"])
        return {"commit": None if report.commit_id is None else {"id": report.commit_id}}

    def do_optimize(self, command: dict[str, Any]) -> dict[str, Any]:
        report = self.graph.optimize(
            command["branch"], cluster=command["cluster"], actor=command["id"]
        )
        return {"commit": None if report.commit_id is None else {"id": report.commit_id}}

    def do_maintain(self, command: dict[str, Any]) -> dict[str, Any]:
        """A round, of which what others have made impossible is left out."""
        branch, keep = command["branch"], command["keep"]
        report = self.graph.maintain(branch, keep=keep, grace=timedelta(0), actor=command["id"])
        made = [step.commit_id for step in report.steps if step.commit_id is not None]
        return {"commits": made, "failed": [step.reason for step in report.failed]}

    def do_evolve(self, command: dict[str, Any]) -> dict[str, Any]:
        """Add a property to a type, or drop it where it is there."""
        branch = command["branch"]
        source = evolved(self.graph.schema_at(branch), command["type"])
        result = self.graph.apply_schema(source, branch=branch, actor=command["id"])
        return _commit(result.commit)

    def do_verify(self, command: dict[str, Any]) -> dict[str, Any]:
        """Whatever others do meanwhile, nothing is damaged."""
        import omnigraph as og

        report = og.verify(str(self.graph.location), deep=command["deep"])
        return {"damage": [str(one) for one in report.damage], "rows": report.looked.rows}

    # -- reading -------------------------------------------------------------------------

    def do_names(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"names": self.graph.branches.list()}

    def do_read(self, command: dict[str, Any]) -> dict[str, Any]:
        """A branch as it is, or what one of its commits showed."""
        branch = command["branch"]
        commits = self.graph.commits.list(branch)
        back = command["back"]
        shown = None if back is None else commits[min(back, len(commits) - 1)].id
        result = self.graph.query(PEOPLE, branch=branch, snapshot=shown)
        return {"rows": len(result.rows), "commit": None}

    def do_inspect(self, command: dict[str, Any]) -> dict[str, Any]:
        """Everything that can be read: branches, their lines, and the rows of every commit."""
        reading = Reading(self.graph, set(command["gone"]))
        for name in self.graph.branches.list():
            reading.read_branch(name)
        found = [[one.recovery_kind, one.graph_commit_id] for one in self.graph.recoveries()]
        return {**reading.report, "recoveries": found}


class Reading:
    """What one inspection has read; a version of a table is read once."""

    def __init__(self, graph: og.Graph, gone: set[str]) -> None:
        self._graph = graph
        self._gone = gone
        self.report: dict[str, Any] = {
            "lines": {},
            "lost": {},
            "heads": {},
            "people": {},
            "commits": {},
            "gaps": {},
            "tables": {},
        }

    def read_branch(self, name: str) -> None:
        """The line of a branch, its head, and its commits unless they are known to be gone."""
        from omnigraph.errors import NotFound

        try:
            commits = self._graph.commits.list(name)
        except NotFound as error:
            self.report["lost"][name] = str(error)
            return
        self.report["lines"][name] = [_line(commit) for commit in commits]
        self.report["heads"][name] = {
            type_: self._rows(type_, self._graph.table(type_, branch=name)) for type_ in TYPES
        }
        rows = self._graph.query(PEOPLE, branch=name).rows
        self.report["people"][name] = {row["name"]: str(row["mark"]) for row in rows}
        for commit in commits:
            if commit.id not in self._gone and commit.id not in self.report["commits"]:
                self._read_commit(commit.id)

    def _read_commit(self, commit_id: str) -> None:
        from omnigraph.errors import ChangeFeedGap, NotFound

        try:
            self.report["commits"][commit_id] = {
                type_: self._rows(type_, self._graph.table(type_, snapshot=commit_id))
                for type_ in TYPES
            }
        except (ChangeFeedGap, NotFound) as error:
            self._gone.add(commit_id)
            self.report["gaps"][commit_id] = f"{type(error).__name__}: {error}"

    def _rows(self, type_: str, table: lance.LanceDataset) -> str:
        key = f"{table.uri}@{table.version}"
        tables = self.report["tables"]
        if key not in tables:
            rows = table.to_table().to_pylist()
            pairs = [_edge(row) if type_ == "Knows" else _node(row) for row in rows]
            tables[key] = dict(pairs)
            if len(tables[key]) != len(pairs):
                raise AssertionError(f"{type_} repeats a key: {sorted(pairs)}")
        return key


def evolved(source: str, type_: str) -> str:
    """A schema in which a type has one property more, or one less if it had that."""
    found = re.search(rf"(?:node|edge) {type_}\b[^{{]*\{{(.*?)\n\}}", source, re.DOTALL)
    if found is None:
        raise AssertionError(f"there is no {type_} in {source}")
    lines = found[1].split("\n")
    others = [line for line in lines if not line.strip().startswith(f"{EXTRA}:")]
    if others == lines:
        others.append(f"    {EXTRA}: I64?")
    return source[: found.start(1)] + "\n".join(others) + source[found.end(1) :]


def _edge(row: dict[str, Any]) -> tuple[str, str]:
    return edge_key(row[SRC], row[DST], row["mark"]), str(row["mark"])


def _node(row: dict[str, Any]) -> tuple[str, str]:
    if row[ID] != row["name"]:
        raise AssertionError(f"the id of {row['name']} is {row[ID]}")
    if "text" in row:
        return row["name"], digest(row["mark"], row["text"])
    return row["name"], str(row["mark"])


def _bulk_line(name: str, mark: int, size: int) -> dict[str, Any]:
    return {"type": "Bulk", "data": {"name": name, "mark": mark, "text": bulk_text(mark, size)}}


def _line(commit: Commit) -> dict[str, Any]:
    return {
        "id": commit.id,
        "parent": commit.parent_id,
        "merged": commit.merged_parent_id,
        "actor": commit.actor,
        "created_at": commit.created_at,
    }


def _commit(commit: Commit | None) -> dict[str, Any]:
    return {"commit": None if commit is None else _line(commit)}


def _answer(handle: Handle, command: dict[str, Any]) -> dict[str, Any]:
    from omnigraph.errors import OmniGraphError

    try:
        return handle.perform(command["do"], command)
    except OmniGraphError as error:
        return {
            "error": type(error).__name__,
            "kind": getattr(error, "kind", None),
            "message": str(error),
            "trace": format_exc(),
        }
    except Exception:  # noqa: BLE001 - told to the driver, for which it is a failure
        return {"error": "crash", "kind": None, "message": "", "trace": format_exc()}


def _end_with_the_parent() -> None:
    """Leave nothing behind should the driver be killed: a process that is stopped sees no end."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _reap(_: int, __: object) -> None:
    """Whoever is killed is gone: nobody asks how it ended, but what it took is booked."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Import everything, use nothing, and fork a worker for each pair of pipes that is sent.

    Lance has no threads yet, so a worker is as good as one that was started anew.
    """
    _end_with_the_parent()
    # First: pandas, which it needs, cannot be imported under another class of datetimes.
    import lance  # noqa: F401 - nobody should wait for it later

    shift_clock(float(sys.argv[1]))
    import omnigraph.graph  # noqa: F401
    from omnigraph.write.recovery import intent_scope

    intent_scope.REQUEST_BYTES = int(sys.argv[2])
    _maintain_eagerly()
    # It cannot know that this process has never used it.
    warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(fileno=0) as driver:
        while (given := socket.recv_fds(driver, 1, 2))[0]:
            _, (commands, answers), _, _ = given
            if not (pid := os.fork()):
                break
            os.close(commands)
            os.close(answers)
            driver.sendall(pid.to_bytes(8))
        else:
            return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end_with_the_parent()
    _serve(commands, answers)


def _maintain_eagerly() -> None:
    """Fold, and find work for maintenance, in a graph of a few rows."""
    from omnigraph.maintain import reconcile, wanted
    from omnigraph.write.publish import folding

    folding.TIER, folding.FOLDED_ROWS = 3, 3**4
    wanted.FEW_FRAGMENTS = wanted.FEW_DELETED = wanted.LEFTOVER_BYTES = wanted.MANY_COMMITS = 1
    reconcile.CLAIMED = timedelta(0)


def _serve(commands: int, answers: int) -> None:
    """Do what is told until nobody asks any more."""
    handle = Handle()
    with open(commands, encoding="utf-8") as told, open(answers, "w", encoding="utf-8") as said:
        for line in told:
            command = json.loads(line)
            started = time.monotonic()
            answer = {"id": command["id"], "started": started, **_answer(handle, command)}
            said.write(json.dumps({**answer, "ended": time.monotonic()}) + "\n")
            said.flush()


if __name__ == "__main__":
    main()
