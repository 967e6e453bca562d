"""Analysis: from a text to the terms it is found by.

Owns the rules, which are those that text indexes are built with: runs of letters and
digits, in lower case, stemmed as English, without stop words and accents. Works on whole
columns: every distinct word is looked at once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.search.letters import BETWEEN_WORDS

if TYPE_CHECKING:
    from Stemmer import Stemmer

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

# A word of so many bytes, or more, is no word.
MAX_BYTES = 40
# Stems, not words: what is left out is decided after stemming.
_NO_TERMS = (
    "a about after again against all am an and are as at be been below between both but by "
    "can did do down each few for from further had has have he her here herself him himself "
    "his how i if in into is it itself just me more most my myself now of off on or other our "
    "out over own re same she should so some such than that the their them then there these "
    "they this those through to too under until up was we were what when where which while "
    "who whom will with you your yourself"
)
_STOP_WORDS = frozenset(_NO_TERMS.split())
# Letters that fall apart into nothing simpler, but have a plain spelling.
_SPELLED = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "AE",
    "œ": "oe",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "ħ": "h",
    "Ħ": "H",
    "\N{LATIN SMALL LETTER DOTLESS I}": "i",
    "ĸ": "k",
    "ł": "l",
    "ŋ": "n",
    "ŧ": "t",
    "þ": "th",
}
_ASCII_WORDS = re.compile(r"[A-Za-z0-9]+")
_stemming = Lock()


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a column of texts: those of text ``i`` stand between two offsets.

    ``codes`` number the terms of the vocabulary; ``places`` count the words of a text, those
    that are no terms as well.
    """

    vocabulary: pa.Array
    codes: Codes
    places: Codes
    offsets: Offsets

    @property
    def size(self) -> int:
        """Bytes held."""
        held = self.codes.nbytes + self.places.nbytes + self.offsets.nbytes
        return held + int(self.vocabulary.nbytes)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many terms each text has."""
        return np.diff(self.offsets)

    def owners(self) -> npt.NDArray[np.int64]:
        """The text that each term stands in."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)


def analyze(texts: pa.Array) -> Terms:
    """The terms of every text; null has none."""
    words = pc.split_pattern_regex(texts, BETWEEN_WORDS)
    flat = pc.list_flatten(words)
    owners = pc.list_parent_indices(words).to_numpy().astype(np.int64)
    is_word = pc.greater(pc.binary_length(flat), 0)
    flat, owners = flat.filter(is_word), owners[_numpy(is_word)]
    places = _places(owners)
    encoded = flat.dictionary_encode()
    spelled = terms_of(encoded.dictionary.to_pylist())
    known = pa.array([term or None for term in spelled], pa.string()).dictionary_encode()
    numbers = known.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    codes: Codes = numbers[encoded.indices.to_numpy()] if len(flat) else np.empty(0, np.int32)
    kept = codes >= 0
    counts = np.bincount(owners[kept], minlength=len(texts))
    offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return Terms(known.dictionary, codes[kept], places[kept], offsets)


def terms_of(words: Sequence[str]) -> list[str]:
    """The term of each word, empty for a word that is none."""
    short = [word if len(word.encode()) < MAX_BYTES else "" for word in words]
    with _stemming:
        stems = _stemmer().stemWords([_lowered(word) for word in short])
    return ["" if stem in _STOP_WORDS else _folded(stem) for stem in stems]


def query_terms(text: str) -> list[tuple[str, int]]:
    """The terms of a query, each with its place among the words."""
    if text.isascii():
        # The pattern for all letters takes longer to read than a short text.
        words = _ASCII_WORDS.findall(text)
        return [(term, place) for place, term in enumerate(terms_of(words)) if term]
    found = analyze(pa.array([text]))
    names = found.vocabulary.to_pylist()
    return [
        (names[code], int(place)) for code, place in zip(found.codes, found.places, strict=True)
    ]


def _lowered(word: str) -> str:
    """In lower case letter by letter: where in a word a letter stands does not matter."""
    return word.lower() if word.isascii() else "".join(map(str.lower, word))


def _folded(word: str) -> str:
    return word if word.isascii() else "".join(map(_plain, word))


def _plain(letter: str) -> str:
    """The plain letters in a letter; one that has none stays as it is."""
    apart = unicodedata.normalize("NFKD", letter)
    return "".join(part if part.isascii() else _SPELLED.get(part, "") for part in apart) or letter


def _places(owners: Offsets) -> Codes:
    """The number of each word within its text."""
    if not len(owners):
        return np.empty(0, dtype=np.int32)
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    starts = np.repeat(first, np.diff(np.append(first, len(owners))))
    return (np.arange(len(owners)) - starts).astype(np.int32)


def _numpy(mask: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return found


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer:
    from Stemmer import Stemmer

    return Stemmer("english")
