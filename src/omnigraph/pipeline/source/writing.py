"""The data sink: what Spark calls to write a DataFrame with `format("omnigraph")`.

Owns the options of a write, the files that its tasks leave, and the one commit that is made of
them. Spark runs the plan, the tasks and the commit in processes of their own, so everything that
they share travels with the writer; an intent keeps the files of a job that is under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.store import Manifest
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.load.entry import catalog_for, find_done, load_given
from omnigraph.pipeline.load.stage.area import StagingArea, new_file, write_batches
from omnigraph.pipeline.load.stage.frames import LoadInput
from omnigraph.pipeline.load.stage.spark_frames import frame_shape, misfits, no_rows
from omnigraph.pipeline.task_runner import InProcessRunner
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.change.change_set import type_key
from omnigraph.write.load.columns.frames import find_frame_type
from omnigraph.write.load.operation import LoadOptions
from omnigraph.write.publish.driver import Target
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.recovery.intents import Intent, LiveIntent
from omnigraph.write.rules.violations import Violations

if TYPE_CHECKING:
    from omnigraph.write.change.change_set import EntityType

_HOW = ("mode", "on_error", "rejects", "max_rejects", "run_id")
_OPTIONS = ("path", "type", "branch", "from_branch", "actor", *_HOW)


@dataclass(frozen=True, slots=True)
class _WriteTarget:
    """Where the rows of a job go, as every process of it is told."""

    root: Location
    branch: str
    from_branch: str | None
    options: LoadOptions
    actor: str | None
    type_name: str
    run_id: RunId | None = None

    @property
    def opened(self) -> Target:
        """The branch, for a process that wants to write to it."""
        return Target(self.root, Manifest(self.root), self.branch, fork_from=self.from_branch)

    def find_done(self) -> bool:
        """Whether a job with the same run id was published."""
        done = find_done(self.options, self.opened, self.run_id, self.actor)
        return done is not None


@dataclass(frozen=True)
class _WrittenPart(WriterCommitMessage):
    """The file of a task; None where it had no rows."""

    number: int
    name: str | None = None
    size: int = 0


class GraphWriter(DataSourceArrowWriter):
    """Writes rows of one type: a file for each task, and one commit for all of them."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        target = _target_of(options, overwrite=overwrite)
        catalog = catalog_for(target.opened)
        type_ = find_frame_type(target.type_name, catalog)
        self._target = _with_run(target, schema)
        self._key = type_key(type_)
        self._columns = _columns_of(schema, type_, target.type_name)
        self._shape = frame_shape(_Columns(schema), type_, target.type_name, {})
        self._is_done = self._target.find_done()
        commit = PendingCommit.mint(target.actor)
        self._intent = Intent.mint("Load", target.branch, commit)
        self._area = StagingArea(target.root, self._intent.operation_id)
        if not self._is_done:
            # Whoever cleans up leaves the files of a job alone that has said so.
            self._intent = LiveIntent.open(self._objects, self._intent).intent

    @property
    def _objects(self) -> ControlObjects:
        return ControlObjects(self._target.root)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """The rows of a task as a file, which nobody looks at before the commit."""
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            raise AssertionError("a part of a frame is written by a task")
        number = context.partitionId()
        if self._is_done:
            return _WrittenPart(number)
        shaped = (self._shape.apply(batch) for batch in iterator if batch.num_rows)
        first = next(shaped, None)
        if first is None:
            return _WrittenPart(number)
        with (
            LiveIntent(self._objects, self._intent) as live,
            new_file(self._area, "frame", ".parquet") as sink,
        ):
            write_batches(sink, first.schema, chain([first], shaped))
            # A task that goes on when its job is over must not bring back what was removed.
            live.require_alive()
            live.renew()
        return _WrittenPart(number, sink.name, sink.size)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load the files of all tasks as one commit; under a run id, once."""
        if self._is_done:
            return
        target = self._target
        parts = sorted(
            (one for one in messages if isinstance(one, _WrittenPart)), key=lambda one: one.number
        )
        try:
            with LiveIntent(self._objects, self._intent) as live:
                files = tuple(self._files(parts))
                live.renew()
                if not target.find_done():
                    load_given(
                        LoadInput(files),
                        target.options,
                        target.opened,
                        InProcessRunner(),
                        actor=target.actor,
                        run_id=target.run_id,
                        notes={"written_by": "spark"},
                    )
        finally:
            self._end()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's
        """Leave nothing of a job that has failed."""
        if not self._is_done:
            self._end()

    def _files(self, parts: list[_WrittenPart]) -> Iterator[InputFile]:
        written = [(one.name, one.size) for one in parts if one.name is not None]
        if not written:
            # Rows of a type, of which there are none: an overwrite clears it.
            empty = self._shape.apply(no_rows(self._columns))
            with new_file(self._area, "frame", ".parquet") as sink:
                write_batches(sink, empty.schema, [])
            written = [(sink.name, sink.size)]
        for name, size in written:
            path = self._area.path(name)
            if path.is_local and not Path(path.path).exists():
                raise BadRequest(
                    f"{self._target.root} is on the disk of this machine, and executors have"
                    " written to disks of their own: put the graph on shared storage (s3://…)"
                )
            label = self._target.type_name
            yield InputFile(path.uri, "parquet", size, type_name=self._key, label=label)

    def _end(self) -> None:
        """Delete the files, and then the word that they are needed."""
        self._area.remove()
        LiveIntent(self._objects, self._intent).remove()


@dataclass(frozen=True, slots=True)
class _Columns:
    """What is known of a DataFrame where there is none."""

    schema: StructType


def _columns_of(schema: StructType, type_: EntityType, label: str) -> pa.Schema:
    """The columns as Arrow has them; what cannot be loaded is told before anything is computed."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if not schema.fields:
        raise BadRequest(f"frame '{label}' has no columns: select at least one")
    problems = Violations()
    for problem in misfits(_Columns(schema), type_, label, {}):
        problems.add(problem)
    problems.raise_if_any()
    return to_arrow_schema(schema, timezone="UTC")


# -- options -----------------------------------------------------------------------


def _target_of(options: Mapping[str, str], *, overwrite: bool) -> _WriteTarget:
    for name in options:
        if name.lower() not in _OPTIONS:
            hint = name_hint(name, _OPTIONS[1:])
            raise BadRequest(f"a write has no option {name}" + (f": {hint}" if hint else ""))
    if not options.get("path"):
        raise BadRequest("which graph? give its path or URI to save(…)")
    if not options.get("type"):
        raise BadRequest('which type? say .option("type", "Person")')
    mode = options.get("mode", "overwrite" if overwrite else "append")
    if overwrite != (mode == "overwrite"):
        raise BadRequest(
            f"Spark is told to {'overwrite' if overwrite else 'append'} and the option mode says"
            f' {mode}: for {mode} say .mode("{"overwrite" if mode == "overwrite" else "append"}")'
        )
    most = options.get("max_rejects")
    if most is not None and not (most.isascii() and most.isdigit()):
        raise BadRequest(f"max_rejects is a number of rows, found {most!r}")
    how: dict[str, Any] = {name: options[name] for name in _HOW[1:-2] if name in options}
    base = options.get("from_branch")
    return _WriteTarget(
        Location.parse(options["path"]),
        normalise_branch(options.get("branch") or MAIN),
        None if base is None else normalise_branch(base),
        LoadOptions.of(
            mode,
            max_rejects=None if most is None else int(most),
            run_id=options.get("run_id"),
            **how,
        ),
        options.get("actor"),
        options["type"],
    )


def _with_run(target: _WriteTarget, schema: StructType) -> _WriteTarget:
    said = {"type": target.type_name, "columns": schema.simpleString()}
    return replace(target, run_id=target.options.run(target.opened, lambda: said))
