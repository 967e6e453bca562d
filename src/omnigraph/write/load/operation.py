"""A load: what a caller asks for, the load in this process, and what the caller is told.

Owns the options and the outcome, the same for every engine, and the way for input that fits
into memory. Decoding, checking and publishing are the work of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import msgspec

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.fill import fill_vectors, lacks_vectors
from omnigraph.embed.protocol import Embedder
from omnigraph.embed.providers import embedder_of
from omnigraph.errors import BadRequest, ReadSetChanged
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.write.change.change_set import ChangeSet, TypeBatch, type_key
from omnigraph.write.change.protocol import Effects, RowsChange, WriteOutcome, WriteTxn
from omnigraph.write.change.results import BulkWork, LoadResult, RejectSample, TypeChanges
from omnigraph.write.change.shared_ends import with_closed_ends
from omnigraph.write.load.changes import MODES, LoadMode, load_changes
from omnigraph.write.load.csv_options import CsvOptions
from omnigraph.write.load.input import Sources, read_sources
from omnigraph.write.load.patches import patched, sift_patched, stored_in
from omnigraph.write.load.rejects import Reject, count_codes, samples_of, too_many, write_rejects
from omnigraph.write.load.row_order import OrderBy, RowOrder, in_row_order
from omnigraph.write.load.sifting import CheckedRows, sift_values
from omnigraph.write.load.skip_rounds import settle
from omnigraph.write.mutation.operation import note_embedding
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Target
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.publish.run_ids import RunId, require_run_id
from omnigraph.write.recovery.intents import WriterKind
from omnigraph.write.rules.check import check_changes
from omnigraph.write.rules.evaluation import Evaluation

OnError = Literal["fail", "skip"]


@dataclass(slots=True)
class Load(RowsChange[LoadResult]):
    """One load; ``embedding`` is None for what the environment says."""

    kind: ClassVar[WriterKind] = "Load"

    data: object
    options: LoadOptions
    actor: str | None = None
    run: RunId | None = None
    embedding: EmbedderConfig | None = None
    notes: dict[str, Any] = field(default_factory=lambda: {"operation": "load"})
    commit: PendingCommit = field(init=False)
    changes: ChangeSet | None = None
    rejects: list[Reject] = field(default_factory=list)
    batches: Sequence[TypeBatch] = ()
    _sources: Sources | None = None
    _decoded: list[TypeBatch] | None = None
    _decoded_for: Catalog | None = None
    _sifted: CheckedRows = field(default_factory=CheckedRows)
    _early: list[Reject] = field(default_factory=list)
    _listed: Path | None = None
    _changes: Mapping[str, TypeChanges] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)
        self.notes |= self.options.notes

    def prepare(self, txn: WriteTxn) -> bool:
        """Decode and embed once for a schema, and fold by mode; an empty load is one, too."""
        base, reads = txn.base, txn.reads
        self.options.order.columns(base.catalog)  # which refuses what there is not
        decoded = self._closed(self._decode(base, reads), base, reads)
        if self.options.mode == "patch":
            decoded = self._patched(base, reads)
        if self.options.on_error == "fail":
            self.batches = decoded
            self.changes = load_changes(decoded, self.options.mode, base, reads)
            self._note_changes(base)
            return True
        settled = settle(decoded, self.options.mode, base, reads)
        self.batches, self.changes = settled.batches, settled.changes
        self._note_changes(base)
        sources = self._sources
        if sources is None:
            raise AssertionError("rows are decoded before they are settled")
        self.rejects = sorted(
            [*self._early, *sources.rejects(settled.violations)], key=sources.order_of
        )
        self._list_rejects()
        self._check_bound()
        return True

    def _closed(self, batches: Sequence[TypeBatch], base: Base, reads: ReadSet) -> list[TypeBatch]:
        """With the types of nodes that edges name by a key alone."""
        whole = self.options.mode == "overwrite"
        return with_closed_ends(batches, base, reads, replaces_all=whole)

    def _decode(self, base: Base, reads: ReadSet) -> list[TypeBatch]:
        catalog = base.catalog
        if self._decoded is not None and self._decoded_for is catalog:
            return self._decoded
        if self._decoded is not None and isinstance(self.data, Iterator):
            # What can be read only once cannot be decoded again for another schema.
            raise ReadSetChanged(
                "the schema changed while this load was being prepared, nothing was written: "
                "load it again",
                details={"member": "schema_identity"},
            )
        embedder = embedder_of(self.embedding)
        self._sources = read_sources(self.data, catalog)
        fails = self.options.on_error == "fail"
        patches = self.options.mode == "patch"
        self._sifted = sifted = self._sources.sift(catalog, strict=fails, patches=patches)
        if not fails and not patches:
            sifted = sift_values(sifted, embedder)
            self._early = list(self._sources.rejects(sifted.violations))
        batches = [one.batch for one in sifted.batches]
        whole = fails and not patches
        self._decoded = self._embedded(batches, embedder, base, reads) if whole else batches
        self._decoded_for = catalog
        note_embedding(self.notes, embedder)
        return self._decoded

    def _patched(self, base: Base, reads: ReadSet) -> list[TypeBatch]:
        """The rows that patches lead to on this base."""
        sources, find = self._sources, stored_in(base, reads)
        if sources is None:
            raise AssertionError("patches are decoded before they are completed")
        embedder = embedder_of(self.embedding)
        batches = self._closed([one.batch for one in self._sifted.batches], base, reads)
        if self.options.on_error == "fail":
            whole = self._embedded(patched(batches, find), embedder, base, reads)
        else:
            pairs = zip(self._sifted.batches, batches, strict=True)
            rows = [replace(one, batch=batch) for one, batch in pairs]
            sifted = sift_patched(replace(self._sifted, batches=rows), find, embedder)
            self._early = list(sources.rejects(sifted.violations))
            whole = [one.batch for one in sifted.batches]
        note_embedding(self.notes, embedder)
        return whole

    def _embedded(
        self, batches: Sequence[TypeBatch], embedder: Embedder, base: Base, reads: ReadSet
    ) -> list[TypeBatch]:
        if any(lacks_vectors(batch.rows, batch.type) for batch in batches):
            # Vectors may cost money: rows that will be refused get none.
            known = self._closed(batches, base, reads)
            changes = load_changes(known, self.options.mode, base, reads)
            check_changes(Evaluation(changes, base, reads), before_embedding=True)
        return [
            replace(batch, rows=fill_vectors(batch.rows, batch.type, embedder)) for batch in batches
        ]

    def stage(self, txn: WriteTxn) -> Effects:
        """All touched tables, each in the order that was asked for."""
        changes = self.prepared
        columns = self.options.order.columns(txn.base.catalog)
        types = {
            key: replace(one, rows=in_row_order(one.rows, columns[key])) if key in columns else one
            for key, one in changes.types.items()
        }
        self.changes = replace(changes, types=types)
        return RowsChange.stage(self, txn)

    def _note_changes(self, base: Base) -> None:
        changes = {} if self.changes is None else self.changes.types
        self._changes = {
            key: TypeChanges.of(
                self.options.mode,
                one.rows.num_rows,
                one.existing.num_rows,
                base.table(key).table.pin.row_count,
            )
            for key, one in changes.items()
        }

    def _check_bound(self) -> None:
        limit = self.options.max_rejects
        if limit is not None and len(self.rejects) > limit:
            raise too_many(limit, count_codes(self.rejects), self.rejects)

    def _list_rejects(self) -> None:
        """Before anything is published: a load whose rejects cannot be listed must not happen."""
        directory = self.options.rejects
        if directory is None or not (self.rejects or self._listed):
            return
        self._listed = write_rejects(directory, self.commit.id, self.rejects)

    @property
    def outcome(self) -> Mapping[str, Any]:
        """How many rows of each type were loaded, and what was left out."""
        return self._accepted.outcome

    @property
    def _accepted(self) -> Accepted:
        return Accepted(
            {type_key(batch.type): batch.rows.num_rows for batch in self.batches},
            count_codes(self.rejects),
            None if self._listed is None else str(self._listed),
        )

    def result(self, written: WriteOutcome) -> LoadResult:
        """How many rows of each type were loaded, and what was left out."""
        return load_result(
            self.options,
            written,
            self.actor,
            self._accepted,
            changes=self._changes,
            samples=samples_of(self.rejects) if self.options.report else (),
        )


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load.

    ``rejects`` is the directory for the list of rows that were left out, ``max_rejects``
    the most that may be. A second load with the ``run_id`` of a first one changes nothing.
    """

    mode: LoadMode
    on_error: OnError = "fail"
    rejects: str | None = None
    max_rejects: int | None = None
    run_id: str | None = None
    dry_run: bool = False
    csv: CsvOptions | None = None
    report: str | None = None
    order: RowOrder = field(default_factory=RowOrder)

    @property
    def notes(self) -> dict[str, Any]:
        """What the commit of the load says about them."""
        return {"mode": self.mode}

    def run(self, target: Target, data: Callable[[], object]) -> RunId | None:
        """What tells the load apart from all others, if the caller has named it.

        ``data`` says what is loaded, in values of JSON's; where the rejects are listed and which
        engine is used do not matter.
        """
        if self.run_id is None:
            return None
        request: dict[str, Any] = {
            "branch": target.branch,
            "from_branch": target.fork_from,
            "mode": self.mode,
            "on_error": self.on_error,
            "max_rejects": self.max_rejects,
            "data": data(),
        }
        if self.csv is not None:
            request["csv"] = msgspec.to_builtins(self.csv)
        return RunId.of(self.run_id, "load", request)

    @classmethod
    def of(
        cls,
        mode: str,
        *,
        on_error: str = "fail",
        rejects: str | None = None,
        max_rejects: int | None = None,
        run_id: str | None = None,
        dry_run: bool = False,
        csv: CsvOptions | None = None,
        report: str | None = None,
        order_by: OrderBy | None = None,
    ) -> LoadOptions:
        """Options as a caller spells them."""
        if csv is not None and not isinstance(csv, CsvOptions):
            raise BadRequest(f"csv takes CsvOptions, found {type(csv).__name__}")
        if max_rejects is not None and max_rejects < 0:
            raise BadRequest(f"max_rejects counts rows: {max_rejects} is less than none")
        if on_error == "fail" and max_rejects is not None:
            raise BadRequest('max_rejects is for loads that skip rows: add on_error="skip"')
        if run_id is not None:
            require_run_id(run_id)
        return cls(
            _load_mode(mode),
            _on_error(on_error),
            rejects,
            max_rejects,
            run_id,
            dry_run,
            csv,
            report,
            RowOrder.of(order_by),
        )


def _load_mode(mode: str) -> LoadMode:
    for known in MODES:
        if mode == known:
            return known
    raise BadRequest(f"there is no load mode {mode!r}: choose {', '.join(MODES)}")


def _on_error(wanted: str) -> OnError:
    known: tuple[OnError, ...] = get_args(OnError)
    for one in known:
        if wanted == one:
            return one
    raise BadRequest(f"on_error is one of {', '.join(known)}, not {wanted!r}")


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a load has taken and left: rows by type key, rejects by code, and their list."""

    rows: Mapping[str, int] = field(default_factory=dict)
    rejects: Mapping[str, int] = field(default_factory=dict)
    rejects_file: str | None = None
    engine: str = "inline"

    @property
    def outcome(self) -> Mapping[str, Any]:
        """The same, for those who repeat the load."""
        told: Mapping[str, Any] = msgspec.to_builtins(self)
        return told

    def of(self, kind: str) -> dict[str, int]:
        """The rows of nodes or of edges, by the name of their type."""
        named = {key.partition(":")[::2]: count for key, count in self.rows.items()}
        return {name: count for (found, name), count in named.items() if found == kind}


def load_result(
    options: LoadOptions,
    written: WriteOutcome,
    actor: str | None,
    accepted: Accepted,
    *,
    work: BulkWork | None = None,
    changes: Mapping[str, TypeChanges] | None = None,
    samples: tuple[RejectSample, ...] = (),
) -> LoadResult:
    """What a load did; of one that was done before, what that did."""
    if written.repeats:
        # A micro-batch that is played again has no run id, and tells nobody.
        accepted = msgspec.convert(written.first, Accepted) if written.first else Accepted()
    return LoadResult(
        written.branch,
        options.mode,
        accepted.of("node"),
        accepted.of("edge"),
        written.commit,
        actor if written.commit is None else written.commit.actor,
        written.fork_from,
        written.branch_created,
        rejects=accepted.rejects,
        rejects_file=accepted.rejects_file,
        engine=accepted.engine,
        is_dry_run=options.dry_run and not written.repeats,
        repeats_run=written.repeats,
        work=work,
        changes={} if written.repeats or changes is None else changes,
        samples=() if written.repeats else samples,
    )
