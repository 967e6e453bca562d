"""The tables of the search benchmark: ours and the peer side by side, times and answers.

Owns judging the answers and the text of the tables. Must never print or measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.ratio import Ratio
from bench.search.fusion import Rows
from bench.search.questions import Question
from bench.search.systems import OURS, PEER
from bench.search.workers import Built
from bench.traversal.tables import Times

RECALL_GOAL = 0.95
# Scores of one formula, computed with other numbers of digits.
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Line:
    """What was measured for one question, and how good the answers were.

    Of `nearest` that is how many of the truly nearest were found, of `rrf` how many of what
    the two rankings come to; of `bm25` how many places of both systems are equally good.
    """

    question: Question
    times: dict[str, Times]
    quality: dict[str, float]

    def ratio(self) -> Ratio | None:
        """Ours over the peer; None without one."""
        if PEER not in self.times:
            return None
        ours, theirs = self.times[OURS].median, self.times[PEER].median
        return Ratio(f"{self.question.name} / {PEER}", ours, theirs, self.question.limit)


def recall(wanted: Sequence[Sequence[str]], answers: Sequence[Rows]) -> float:
    """How many of the documents that should be found were found, of all searches together."""
    pairs = [
        (set(slugs), {row[0] for row in rows}) for slugs, rows in zip(wanted, answers, strict=True)
    ]
    hits = sum(len(slugs & found) for slugs, found in pairs)
    return hits / max(1, sum(len(slugs) for slugs, _ in pairs))


def agreement(ours: Sequence[Rows], theirs: Sequence[Rows]) -> float:
    """How many places of two answers have rows that are equally good, of all searches together.

    Where rows are equally good, a cut may take any of them: so the scores are compared.
    """
    same = total = 0
    for left, right in zip(ours, theirs, strict=True):
        total += max(len(left), len(right))
        same += sum(_close(one[-1], other[-1]) for one, other in zip(left, right, strict=False))
    return same / total if total else 1.0


def same_rows(ours: Rows, theirs: Rows) -> bool:
    """Whether two answers are equal, but for which of the rows at the cut made it."""
    if not ours or not theirs:
        return ours == theirs
    if agreement([ours], [theirs]) < 1.0:
        return False
    last = ours[-1][-1]
    better = [
        {tuple(row[:-1]) for row in rows if not _close(row[-1], last)} for rows in (ours, theirs)
    ]
    return better[0] == better[1]


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))


def search_table(lines: Sequence[Line]) -> str:
    """Milliseconds; the quality of the answers; our median over that of the peer."""
    width = max(len(line.question.name) for line in lines)
    heads = ["ours", "p95", PEER, "ratio", "found", PEER]
    text = [f"{'ms, median':<{width}}" + "".join(f"{head:>9}" for head in heads)]
    for line in lines:
        ours, theirs = line.times[OURS], line.times.get(PEER)
        ratio = line.ratio()
        cells = [
            f"{1e3 * ours.median:.2f}",
            f"{1e3 * ours.p95:.2f}",
            "" if theirs is None else f"{1e3 * theirs.median:.2f}",
            "" if ratio is None else f"{ratio.value:.2f}",
            *(f"{line.quality[name]:.3f}" if name in line.quality else "" for name in (OURS, PEER)),
        ]
        text.append(f"{line.question.name:<{width}}" + "".join(f"{cell:>9}" for cell in cells))
    return "\n".join(text)


def build_table(builds: dict[str, Built]) -> str:
    """How long the indexes took, and which they were."""
    width = max(len(name) for name in builds)
    return "\n".join(
        f"{name:<{width}}{built.seconds:>8.2f} s for {len(built.names)} indexes"
        for name, built in builds.items()
    )


def recall_text(lines: Sequence[Line]) -> str:
    """Whether the nearest are found at our default settings."""
    (plain,) = (line for line in lines if line.question.name == "nearest")
    found = plain.quality[OURS]
    verdict = "reached" if found >= RECALL_GOAL else "missed"
    return f"recall@10 of nearest {found:.3f}, goal {RECALL_GOAL:.2f}: {verdict}"
