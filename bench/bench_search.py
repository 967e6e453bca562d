"""How fast and how good search is beside a peer that holds the same documents.

Owns the sizes, the order of measuring and the limits. `OMNIGRAPH_BENCH_BIG=1` asks for ten
times the documents. A peer that is not installed is left out; index builds are measured
beside raw Lance in any case.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.bench_traversal import BIG
from bench.ratio import Ratio
from bench.search.data import Asked, Library, exact
from bench.search.questions import QUESTIONS, WANTED, Question
from bench.search.systems import OURS, PEER, RAW, Rows
from bench.search.tables import (
    Line,
    agreement,
    build_table,
    recall,
    recall_text,
    same_rows,
    search_table,
)
from bench.search.workers import Built, SearchWorker
from bench.traversal.systems import is_installed
from bench.traversal.tables import Times

BUILD_LIMIT = 1.5
# Fused ranks jump where scores tie: of all places, so many hold an equally good row.
FUSED_AGREEMENT = 0.9


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    documents: int
    runs: int = 30
    rounds: int = 5


NORMAL = Size(100_000)
LARGE = Size(1_000_000, rounds=3)


def run() -> list[Ratio]:
    """Print the tables; the ratios carry the limits."""
    return measure(LARGE if os.environ.get(BIG, "0") not in ("", "0") else NORMAL)


def measure(size: Size) -> list[Ratio]:
    """All lines for a library of one size."""
    peers = [PEER] if is_installed(PEER) else []
    library = Library(size.documents)
    print(
        f"{size.documents:,} documents, {len(library.wrote[0]):,} edges; "
        f"load average {os.getloadavg()[0]:.1f}"
    )
    if not peers:
        print(f"{PEER} is not installed and left out")
    with TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        library.write(directory)
        workers = [
            stack.enter_context(SearchWorker(system, directory / system))
            for system in (OURS, *peers)
        ]
        for worker in workers:
            print(f"{worker.name:<10} loaded in {worker.load(directory):6.1f} s")
        builds = {worker.name: worker.index() for worker in workers}
        builds[RAW] = _built_raw(directory)
        print(build_table(builds))
        # The first round fills the caches; every round asks something else.
        asked = library.asked(size.runs * (1 + size.rounds))
        lines = [_line(question, library, asked, workers, size.runs) for question in QUESTIONS]
    print(search_table(lines))
    print(recall_text(lines))
    print(f"load average {os.getloadavg()[0]:.1f}")
    ratios = [ratio for line in lines if (ratio := line.ratio()) is not None]
    took, raw = builds[OURS].seconds, builds[RAW].seconds
    return [*ratios, Ratio("index build / raw Lance", took, raw, BUILD_LIMIT)]


def _built_raw(directory: Path) -> Built:
    """The indexes that our graph has, on the same rows, in a process that ends with it."""
    with SearchWorker(RAW, directory / RAW) as worker:
        worker.load(directory / OURS / "graph.omni")
        return worker.index()


def _line(
    question: Question,
    library: Library,
    asked: list[Asked],
    workers: list[SearchWorker],
    runs: int,
) -> Line:
    """Every system in turns, so many searches at a time; the first of them are not timed."""
    times: dict[str, list[float]] = {worker.name: [] for worker in workers}
    answers: dict[str, list[Rows]] = {worker.name: [] for worker in workers}
    for start in range(0, len(asked), runs):
        params = [question.params(one) for one in asked[start : start + runs]]
        for worker in workers:
            seconds, found = worker.ask(question, params)
            answers[worker.name] += found
            if start:
                times[worker.name] += seconds
    measured = {name: Times(tuple(seconds)) for name, seconds in times.items()}
    return Line(question, measured, _quality(question, library, asked, answers))


def _quality(
    question: Question, library: Library, asked: list[Asked], answers: dict[str, list[Rows]]
) -> dict[str, float]:
    """How good the answers are; words have one answer, which both have to give."""
    if question.ranking == "nearest":
        wanted = [
            [
                f"doc-{number}"
                for number in exact(
                    library.vectors, one.vector, question.candidates(library, one), WANTED
                ).tolist()
            ]
            for one in asked
        ]
        return {name: recall(wanted, found) for name, found in answers.items()}
    if PEER not in answers:
        return {}
    ours, theirs = answers[OURS], answers[PEER]
    if question.ranking == "bm25":
        for mine, other, one in zip(ours, theirs, asked, strict=True):
            if not same_rows(mine, other):
                found = f"{PEER} says {other[:3]}, {OURS} says {mine[:3]}"
                raise RuntimeError(f"{question.name} for {one.words!r}: {found}")
    agreed = agreement(ours, theirs)
    if agreed < FUSED_AGREEMENT:
        raise RuntimeError(f"{question.name}: only {agreed:.0%} of the rows agree")
    return {OURS: agreed}
