"""The functions of texts: parts, letters, patterns. Characters are Unicode code points.

Owns what a pattern of `like` means. No text is made before there is room for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError, quoted
from omnigraph.rows.functions.call import (
    Call,
    Integers,
    Kernel,
    bounded,
    by_constant,
    valid,
)
from omnigraph.rows.functions.ragged import characters, cut
from omnigraph.rows.patterns import found_in

_FAR = 2**40
_WILDCARDS = {"%": ".*", "_": "."}


def _plain(work: Callable[[pa.Array], pa.Array]) -> Kernel:
    return lambda call: work(call.column(0))


def _lengths(texts: pa.Array) -> Integers:
    return cast("Integers", pc.utf8_length(texts).cast(pa.int64()).fill_null(0).to_numpy())


def _bytes(texts: pa.Array) -> Integers:
    return cast("Integers", pc.binary_length(texts).cast(pa.int64()).fill_null(0).to_numpy())


def _known(call: Call, made: pa.Array) -> pa.Array:
    """What was made, null where an argument behind the first is."""
    known = valid(made, *[call.column(place) for place in range(1, len(call.arguments))])
    return made if known.all() else pc.if_else(pa.array(known), made, pa.scalar(None, made.type))


# -- parts ---------------------------------------------------------------------------


def _substring(call: Call) -> pa.Array:
    texts = call.column(0)
    fixed = [call.constant(place) for place in range(1, len(call.arguments))]
    known = [one.as_py() for one in fixed if one is not None]
    if len(known) == len(fixed):
        begin = known[0]
        low = min(max(begin, 0), _FAR)
        high = _FAR if len(known) < 2 else min(max(begin + known[1], low), _FAR)
        return pc.utf8_slice_codeunits(texts, low, high)
    start = bounded(call.column(1), _FAR)
    end = start + bounded(call.column(2), _FAR) if call.has(2) else np.full(call.count, _FAR)
    return _known(call, cut(texts, start, end))


def _left(call: Call) -> pa.Array:
    one = call.constant(1)
    if one is not None:
        stop = min(max(one.as_py(), 0), _FAR)
        return pc.utf8_slice_codeunits(call.column(0), 0, stop)
    end = bounded(call.column(1), _FAR)
    return _known(call, cut(call.column(0), np.zeros(call.count, dtype=np.int64), end))


def _right(call: Call) -> pa.Array:
    texts = call.column(0)
    length = _lengths(texts)
    start = length - np.maximum(bounded(call.column(1), _FAR), 0)
    return _known(call, cut(texts, np.maximum(start, 0), length))


def _split(call: Call) -> pa.Array:
    def work(texts: pa.Array, separator: object) -> pa.Array:
        if separator == "":
            return characters(texts)
        return pc.split_pattern(texts, separator)

    return by_constant(call, 1, work)


# -- making texts --------------------------------------------------------------------


def _replace(call: Call) -> pa.Array:
    pattern, replacement = call.constant(1), call.constant(2)
    if pattern is None or replacement is None:
        pairs = pa.StructArray.from_arrays([call.column(1), call.column(2)], ["a", "b"])
        return _known(call, _replaced_by_row(call, pairs))
    return _replaced(call, call.column(0), pattern.as_py(), replacement.as_py())


def _replaced(call: Call, texts: pa.Array, pattern: str, replacement: str) -> pa.Array:
    # Arrow never ends looking for an empty text.
    if not pattern:
        return texts
    growth = len(replacement.encode()) - len(pattern.encode())
    if growth > 0:
        found = pc.count_substring(texts, pattern).cast(pa.int64())
        call.need_bytes(int(_bytes(texts).sum()) + growth * (pc.sum(found).as_py() or 0))
    return pc.replace_substring(texts, pattern, replacement)


def _replaced_by_row(call: Call, pairs: pa.Array) -> pa.Array:
    """Each text by its own pair; the rows of one pair together."""
    if not call.count:
        return call.column(0)
    first, second = (pairs.field(place).dictionary_encode() for place in (0, 1))
    width = len(second.dictionary) + 1
    codes = first.indices.fill_null(len(first.dictionary)).to_numpy().astype(np.int64) * width
    codes += second.indices.fill_null(width - 1).to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    texts = call.column(0).take(pa.array(order))
    parts = []
    for start, end in zip(starts, [*starts[1:], call.count], strict=True):
        call.bounds.look()
        some, (one, other) = (
            texts.slice(start, end - start),
            divmod(int(codes[order[start]]), width),
        )
        if one < len(first.dictionary) and other < width - 1:
            pattern, replacement = first.dictionary[one].as_py(), second.dictionary[other].as_py()
            some = _replaced(call, some, pattern, replacement)
        parts.append(some)
    back = np.empty(call.count, dtype=np.int64)
    back[order] = np.arange(call.count)
    return pa.concat_arrays(parts).take(pa.array(back))


def _concat(call: Call) -> pa.Array:
    texts = [call.column(place).cast(pa.string()) for place in range(len(call.arguments))]
    call.need_bytes(sum(int(_bytes(text).sum()) for text in texts))
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _join(call: Call) -> pa.Array:
    separator = call.arguments[1]
    return pc.binary_join(call.column(0).cast(pa.list_(pa.string())), separator)


def _repeat(call: Call) -> pa.Array:
    texts = call.column(0)
    times = np.maximum(bounded(call.column(1), _FAR), 0)
    return _known(call, _repeated(call, texts, times))


def _repeated(call: Call, texts: pa.Array, times: Integers) -> pa.Array:
    # As floats: a sum of products of 64 bits may wrap.
    call.need_bytes(int((_bytes(texts).astype(np.float64) * times).sum()))
    times = np.where(_bytes(texts) > 0, times, 0)
    return pc.binary_repeat(texts, pa.array(times))


def _padded(*, on_the_left: bool) -> Kernel:
    def kernel(call: Call) -> pa.Array:
        texts = call.column(0)
        missing = np.maximum(bounded(call.column(1), _FAR) - _lengths(texts), 0)
        filling = call.column(2) if call.has(2) else pa.repeat(pa.scalar(" "), call.count)
        width = _lengths(filling)
        times = -(-missing // np.maximum(width, 1))
        padding = _repeated(call, filling, np.where(valid(texts), times, 0))
        padding = cut(padding, np.zeros(call.count, dtype=np.int64), missing)
        pair = (padding, texts) if on_the_left else (texts, padding)
        return _known(call, pc.binary_join_element_wise(*pair, "", null_handling="emit_null"))

    return kernel


# -- conditions ----------------------------------------------------------------------


def _condition(work: Callable[[pa.Array, str], pa.Array]) -> Kernel:
    return lambda call: by_constant(call, 1, cast("Callable[[pa.Array, object], pa.Array]", work))


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    try:
        return found_in(texts, pattern)
    except ValueError as refused:
        raise QueryError(
            f"`{quoted(pattern)}` is no regular expression: {refused}",
            details={"function": "matches", "pattern": quoted(pattern)},
        ) from None


def like_regex(pattern: str) -> str:
    """The regular expression of RE2 that a pattern of `like` stands for."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            # At the end, a backslash stands for itself.
            parts.append(re.escape(next(characters, "\\")))
        else:
            parts.append(_WILDCARDS.get(character) or re.escape(character))
    return rf"(?s)\A(?:{''.join(parts)})\z"


def _like(texts: pa.Array, pattern: str) -> pa.Array:
    return found_in(texts, like_regex(pattern))


KERNELS: Mapping[str, Kernel] = {
    "length": _plain(lambda texts: pc.utf8_length(texts).cast(pa.int64())),
    "lower": _plain(pc.utf8_lower),
    "upper": _plain(pc.utf8_upper),
    "trim": _plain(pc.utf8_trim_whitespace),
    "reverse": _plain(pc.utf8_reverse),
    "substring": _substring,
    "left": _left,
    "right": _right,
    "split": _split,
    "replace": _replace,
    "concat": _concat,
    "join": _join,
    "repeat": _repeat,
    "pad_left": _padded(on_the_left=True),
    "pad_right": _padded(on_the_left=False),
    "starts_with": _condition(pc.starts_with),
    "ends_with": _condition(pc.ends_with),
    "matches": _condition(_matches),
    "like": _condition(_like),
}


def has_part(call: Call) -> pa.Array:
    """Whether one text stands in another."""
    return _condition(pc.match_substring)(call)
