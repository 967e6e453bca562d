"""Which engine a load runs on, when the caller leaves it open.

Owns the rule: what one request could carry is loaded in this process, in milliseconds; files
beyond that, many files and tables of columns go to Spark. Never starts anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from glob import has_magic
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

from omnigraph.errors import BadRequest
from omnigraph.write.load.input import SUFFIXES, is_text
from omnigraph.write.recovery.intent_scope import REQUEST_BYTES

Engine = Literal["inline", "spark"]
ENGINES: tuple[str, ...] = ("auto", *get_args(Engine))


def choose_engine(data: object, wanted: str = "auto") -> Engine:
    """The engine for some data."""
    match wanted:
        case "inline":
            return "inline"
        case "spark":
            return "spark"
        case "auto":
            return "spark" if _is_for_spark(data) else "inline"
    raise BadRequest(f"there is no load engine {wanted!r}: choose {' or '.join(ENGINES)}")


def _is_for_spark(data: object) -> bool:
    if isinstance(data, Mapping):
        return any(_is_spark_frame(frame) or _is_path(frame) for frame in data.values())
    if isinstance(data, (list, tuple)):
        paths = [one for one in data if _is_path(one)]
        return any(map(_is_large, paths)) or sum(map(_size, paths)) > REQUEST_BYTES
    return _is_path(data) and _is_large(data)


def _is_path(data: object) -> bool:
    return isinstance(data, PathLike) or (isinstance(data, str) and not is_text(data))


def _is_large(path: object) -> bool:
    text = str(path)
    if "://" in text and not text.startswith("file://"):
        return True
    place = Path(text.removeprefix("file://")).expanduser()
    if place.is_dir():
        return True
    if not place.exists() and has_magic(text):
        return True
    return place.suffix not in SUFFIXES or _size(path) > REQUEST_BYTES


def _size(path: object) -> int:
    try:
        return Path(str(path)).expanduser().stat().st_size
    except OSError:
        return 0


def _is_spark_frame(frame: object) -> bool:
    return type(frame).__module__.startswith("pyspark.")


def are_paths(data: object) -> bool:
    """Whether data names files, alone or several."""
    if isinstance(data, Mapping):
        return bool(data) and all(map(_names_files, data.values()))
    return _names_files(data)


def _names_files(data: object) -> bool:
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, PathLike, Mapping)):
        return isinstance(data, (list, tuple)) and bool(data) and all(map(_is_path, data))
    return _is_path(data)
