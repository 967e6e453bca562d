"""What searches mean, in plain Python over one text or one vector at a time.

Written from the language's definition alone and shares no code with the engine: its own
words, its own statistics, its own distances.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import TypeVar

from Stemmer import Stemmer

K1 = 1.2
B = 0.75
LONG = 40
"""A word of so many bytes is no word any more."""
DECIMALS = 9
"""Scores that agree to so many digits are equal."""

# Circled letters and the vowel signs of one script stand for all that is alphabetic without
# being a letter by category.
_WORD = re.compile("(?:[^\\W_]|[\u24b6-\u24e9\u0900-\u0903\u093e-\u094c])+")
_STOPPED = """
    a about after again against all am an and are as at be been below between both but by can
    did do down each few for from further had has have he her here herself him himself his how
    i if in into is it itself just me more most my myself now of off on or other our out over
    own re same she should so some such than that the their them then there these they this
    those through to too under until up was we were what when where which while who whom will
    with you your yourself
"""
_PLAIN = {"ß": "ss", "æ": "ae", "ø": "o", "ł": "l", "œ": "oe", "đ": "d", "þ": "th", "ð": "d"}

Key = TypeVar("Key", bound=Hashable)


# -- words ---------------------------------------------------------------------------------


@cache
def term(word: str) -> str | None:
    """What a word is found by; None for a word that finds nothing."""
    if len(word.encode()) >= LONG:
        return None
    stem = Stemmer("english").stemWord("".join(letter.lower() for letter in word))
    return None if stem in _STOPPED.split() else "".join(map(_folded, stem))


def _folded(letter: str) -> str:
    parts = unicodedata.normalize("NFKD", letter)
    plain = "".join(part if ord(part) < 128 else _PLAIN.get(part, "") for part in parts)
    return plain or letter


def terms(text: str | None) -> list[tuple[int, str]]:
    """The terms of a text with their places; words that are no terms take a place too."""
    found = enumerate(map(term, _WORD.findall(text or "")))
    return [(place, name) for place, name in found if name is not None]


def has_any(text: str | None, query: str) -> bool:
    """`search`: any of the words."""
    wanted = {name for _, name in terms(query)}
    return any(name in wanted for _, name in terms(text))


def has_phrase(text: str | None, query: str) -> bool:
    """`match_text`: all of the words, as far apart as in the query."""
    wanted = terms(query)
    held = set(terms(text))
    if not wanted:
        return False
    first = wanted[0][0]
    starts = [place for place, _ in held]
    return any(
        all((start + place - first, name) in held for place, name in wanted) for start in starts
    )


def has_near(text: str | None, query: str, edits: int) -> bool:
    """`fuzzy`: any of the words, give or take so many edits."""
    return any(
        distance(held, wanted) <= edits for _, held in terms(text) for _, wanted in terms(query)
    )


def distance(left: str, right: str) -> int:
    """The fewest letters to insert, remove or replace."""
    row = list(range(len(right) + 1))
    for i, letter in enumerate(left, 1):
        above, row = row, [i]
        for j, other in enumerate(right, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != other)))
    return row[-1]


# -- scores --------------------------------------------------------------------------------


def bm25(texts: Mapping[Key, str | None], query: str) -> dict[Key, float]:
    """The scores of the texts that have any of the words."""
    counted = {key: Counter(name for _, name in terms(text)) for key, text in texts.items()}
    filled = {key: counts for key, counts in counted.items() if counts}
    if not filled:
        return {}
    average = sum(counts.total() for counts in filled.values()) / len(filled)
    scores: dict[Key, float] = {}
    for _, name in terms(query):
        holders = sum(name in counts for counts in filled.values())
        rarity = math.log(1 + (len(filled) - holders + 0.5) / (holders + 0.5))
        for key, counts in filled.items():
            if name in counts:
                weight = K1 * (1 - B + B * counts.total() / average)
                score = rarity * counts[name] * (K1 + 1) / (counts[name] + weight)
                scores[key] = scores.get(key, 0.0) + score
    return scores


def cosine(vector: Sequence[float] | None, query: Sequence[float]) -> float | None:
    """The distance; a vector without a direction is at a right angle to everything."""
    if vector is None:
        return None
    lengths = math.sqrt(math.fsum(x * x for x in vector)) * math.sqrt(
        math.fsum(x * x for x in query)
    )
    if not lengths:
        return 1.0
    return max(0.0, 1 - math.fsum(x * y for x, y in zip(vector, query, strict=True)) / lengths)


def fused(arms: Sequence[Sequence[Key]], k: int) -> dict[Key, float]:
    """Reciprocal rank fusion of what each arm lists, each entry by its first appearance."""
    scores: dict[Key, float] = {}
    for arm in arms:
        for rank, key in enumerate(dict.fromkeys(arm)):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank + 1)
    return scores
