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
from bench.search.data import Asked, Library
from bench.search.fusion import Rows, fused
from bench.search.questions import ARMS, QUESTIONS, WANTED, Question, nearest_of
from bench.search.systems import OURS, PEER, RAW
from bench.search.tables import (
    RECALL_GOAL,
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

Answers = dict[str, list[Rows]]
Quality = dict[str, float]


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
        lines = _lines(library, asked, workers, size.runs)
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


def _lines(
    library: Library, asked: list[Asked], workers: list[SearchWorker], runs: int
) -> list[Line]:
    """One for each question; fused rankings are judged by the two that they are made of."""
    lines: list[Line] = []
    for question in QUESTIONS:
        times, answers = _asked(question, asked, workers, runs)
        match question.ranking:
            case "nearest":
                quality = _near(question, library, asked, answers)
            case "bm25":
                quality = _worded(question, asked, answers)
            case "rrf":
                arms = [one for one in ARMS if one.shape == question.shape]
                ranked = [
                    workers[0].ask(arm, [arm.params(one) for one in asked])[1] for arm in arms
                ]
                quality = _fused(question, ranked, answers)
        lines.append(Line(question, times, quality))
    return lines


def _asked(
    question: Question, asked: list[Asked], workers: list[SearchWorker], runs: int
) -> tuple[dict[str, Times], Answers]:
    """Every system in turns, so many searches at a time; the first of them are not timed."""
    times: dict[str, list[float]] = {worker.name: [] for worker in workers}
    answers: Answers = {worker.name: [] for worker in workers}
    for start in range(0, len(asked), runs):
        params = [question.params(one) for one in asked[start : start + runs]]
        for worker in workers:
            seconds, found = worker.ask(question, params)
            answers[worker.name] += found
            if start:
                times[worker.name] += seconds
    return {name: Times(tuple(seconds)) for name, seconds in times.items()}, answers


def _near(question: Question, library: Library, asked: list[Asked], answers: Answers) -> Quality:
    """How many of the documents that are nearest, which looking at all of them tells."""
    wanted = [
        [f"doc-{number}" for number in nearest_of(library, question, one).tolist()] for one in asked
    ]
    return {name: recall(wanted, found) for name, found in answers.items()}


def _worded(question: Question, asked: list[Asked], answers: Answers) -> Quality:
    """Words have one answer, and everybody has to give it."""
    for name, found in answers.items():
        for one, ours, theirs in zip(asked, answers[OURS], found, strict=True):
            if not same_rows(ours, theirs):
                said = f"{name} says {theirs[:3]}, {OURS} says {ours[:3]}"
                raise RuntimeError(f"{question.name} for {one.words!r}: {said}")
    return {name: agreement(answers[OURS], found) for name, found in answers.items()}


def _fused(question: Question, arms: list[list[Rows]], answers: Answers) -> Quality:
    """What our two rankings come to: ours has to be just that, a peer's may be about that."""
    wanted = [fused(pair, WANTED) for pair in zip(*arms, strict=True)]
    slugs = [[row[0] for row in rows] for rows in wanted]
    found = {name: recall(slugs, given) for name, given in answers.items()}
    if found[OURS] < RECALL_GOAL:
        raise RuntimeError(f"{question.name} is not what its rankings come to")
    return found
