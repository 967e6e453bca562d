"""Prose: titles and bodies, made of common and of rare words.

Owns how words become text, for whole columns at a time. Texts have no line breaks, so that one
line of a file is one row; they do have quotes, commas and letters beyond ASCII.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.generate import vocabulary as words
from omnigraph.generate.draws import Draws, Integers

_FEWEST, _MOST = 2, 8
"""Sentences of a body."""
_RARE_WORDS = 1_000_000


def joined(*parts: pa.Array | str, between: str = "") -> pa.Array:
    """The parts of every row as one text; null where one of them is."""
    return pc.binary_join_element_wise(*map(_literal, parts), between)


def _literal(part: pa.Array | str) -> pa.Array | pa.Scalar:
    return pa.scalar(part) if isinstance(part, str) else part


def picked(entries: Sequence[str], numbers: Integers) -> pa.Array:
    """The entries of a list that some numbers mean."""
    return pa.array(entries, pa.string()).take(pa.array(numbers))


class Prose:
    """What documents are called and what they say."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def topics(self, rows: Integers) -> tuple[pa.Array, pa.Array]:
        """The two words a document is about."""
        return (
            self._some("Document.adjective", rows, words.ADJECTIVES),
            self._some("Document.noun", rows, words.NOUNS),
        )

    def titles(self, rows: Integers) -> pa.Array:
        """What the documents are called."""
        openings = self._some("Document.opening", rows, words.TITLE_OPENINGS)
        return joined(openings, *self.topics(rows), between=" ")

    def bodies(self, rows: Integers) -> pa.Array:
        """What the documents say: a few sentences, and one number that is nearly theirs alone."""
        spread = _MOST - _FEWEST + 1
        counts = _FEWEST + self._draws.below("Document.sentences", rows, spread)
        ends = np.cumsum(counts)
        places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        sentences = self._sentences(np.repeat(rows, counts) * _MOST + places)
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        texts = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), sentences), " ")
        files = self._draws.below("Document.file", rows, _RARE_WORDS)
        return joined("File ", pa.array(files).cast(pa.string()), ". ", texts)

    def _sentences(self, rows: Integers) -> pa.Array:
        return joined(
            self._some("Sentence.subject", rows, words.SUBJECTS),
            self._some("Sentence.verb", rows, words.VERBS),
            "the",
            self._some("Sentence.adjective", rows, words.ADJECTIVES),
            self._some("Sentence.noun", rows, words.NOUNS),
            self._some("Sentence.ending", rows, words.SENTENCE_ENDINGS),
            between=" ",
        )

    def _some(self, name: str, rows: Integers, entries: Sequence[str]) -> pa.Array:
        return picked(entries, self._draws.skewed(name, rows, len(entries)))
