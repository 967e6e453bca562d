"""Inputs: the files that a load reads, and what is in each of them.

Owns finding files by path, directory and pattern, and which type the rows of a table belong
to. Never opens a file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from glob import has_magic
from os import PathLike
from pathlib import Path
from typing import Literal

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import did_you_mean, name_hint
from omnigraph.pipeline.input.input_files import (
    FoundFile,
    below,
    children,
    find,
    is_hidden,
    is_remote,
    join,
)
from omnigraph.storage.objects.location import Location
from omnigraph.write.load.csv_options import CsvOptions

Format = Literal["jsonl", "csv", "parquet"]
Compression = Literal["gzip", "zstd"]

_FORMATS: Mapping[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
_COMPRESSIONS: Mapping[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_ACCEPTED = (
    "the name of an input file ends in .jsonl, .ndjson or .csv (each also with .gz or .zst"
    " behind it), or in .parquet"
)
_RULE = (
    "the type of a table is the name of its directory (Person/part-0.csv), else of the file"
    ' (Person.csv); or say it: {"Person": path}'
)


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to load.

    ``size`` is in bytes as it lies there. ``type_name`` is the type of all rows of a CSV or
    Parquet file; the lines of JSON say theirs themselves, or are the rows of the type.
    ``version`` is the content as an object store names it. ``label`` is what a person knows the
    rows by, if the file was written for the load alone; it is empty for what has no name.
    """

    uri: str
    format: Format
    size: int
    compression: Compression | None = None
    type_name: str | None = None
    version: str | None = None
    label: str | None = None
    csv: CsvOptions = field(default_factory=CsvOptions)

    @property
    def name(self) -> str | None:
        """What a person is told about where a row came from."""
        return self.uri if self.label is None else self.label or None


def find_inputs(
    data: object, type_names: Collection[str], csv: CsvOptions | None = None
) -> list[InputFile]:
    """The files of paths, directories and patterns, in the order of loading.

    ``data`` is one of these, several, or a mapping of type names to them. A directory is
    read with all below it, sorted by path; names that begin with `_` or `.` are passed over.
    """
    if isinstance(data, Mapping):
        files = [
            file
            for name, paths in data.items()
            for file in _of_type(_known_type(name, type_names), paths)
        ]
    else:
        files = [
            _typed(found, file, type_names)
            for path in _paths(data)
            for found in _search(path)
            for file in [_recognised(found.file)]
        ]
    if not files:
        raise BadRequest("there is nothing to load: give at least one path")
    _refuse_repeated(files)
    return files if csv is None else [replace(file, csv=csv) for file in files]


def find_files(path: str) -> list[FoundFile]:
    """The files of a path, a directory or a pattern, whatever is in them."""
    return [found.file for found in _search(path)]


@dataclass(frozen=True, slots=True)
class _Found:
    """A file, and the directories below the given one that lead to it, with that one."""

    file: FoundFile
    directories: tuple[str, ...]


# -- what was given ----------------------------------------------------------------


def _paths(data: object) -> list[str]:
    if isinstance(data, (str, PathLike)):
        return [_path(data)]
    is_data = isinstance(data, (bytes, bytearray, memoryview)) or hasattr(data, "columns")
    if is_data or not isinstance(data, Iterable):
        raise BadRequest(
            f"cannot load {type(data).__name__} from files: give a path, a directory, a pattern"
            ' like data/*.jsonl, several of them, or {"Person": path}'
        )
    given = list(data)
    for one in given:
        if not isinstance(one, (str, PathLike)):
            raise BadRequest(f"a list of paths, then {type(one).__name__}: give paths only")
    return list(map(_path, given))


def _path(given: str | PathLike[str]) -> str:
    text = os.fspath(given)
    if not isinstance(text, str):
        raise BadRequest(f"a path is text, found {text!r}")
    if "\n" in text or text.lstrip().startswith("{"):
        raise BadRequest("this is data and not a path: write it to a .jsonl file and give that")
    return text


def _of_type(type_name: str, paths: object) -> Iterator[InputFile]:
    for path in _paths(paths):
        for found in _search(path):
            file = _recognised(found.file)
            _refuse_partitions(found)
            yield _with_type(file, type_name)


def _refuse_repeated(files: list[InputFile]) -> None:
    seen: set[str] = set()
    for file in files:
        if file.uri in seen:
            raise BadRequest(f"{file.uri} is given twice: its rows would be loaded twice")
        seen.add(file.uri)


# -- finding -----------------------------------------------------------------------


def _search(path: str) -> list[_Found]:
    uri = _address(path)
    found = _literally(uri)
    if found is None and has_magic(uri):
        found = _matching(uri)
        if not found:
            raise BadRequest(f"no file matches {path}")
    if found is None:
        raise BadRequest(f"cannot load {path}: there is no such file or directory")
    if not found:
        raise BadRequest(f"no file to load in the directory {path}: {_ACCEPTED}")
    return found


def _address(path: str) -> str:
    """A path as the absolute path or the ``s3://`` address it stands for."""
    scheme, separator, rest = path.partition("://")
    if separator and scheme.lower() == "s3":
        names = rest.split("/")
        plain = [name for at, name in enumerate(names) if not has_magic("/".join(names[: at + 1]))]
        # A `?` is refused in locations, and a wildcard here.
        base = Location.parse(f"s3://{'/'.join(plain)}").uri
        return "/".join([base, *(name for name in names[len(plain) :] if name)])
    if separator:
        return Location.parse(path).uri
    return Location.parse(str(Path(path).expanduser()) if path.strip() else path).uri


def _literally(uri: str) -> list[_Found] | None:
    """The file of this very name, or all files of the directory."""
    file = find(uri)
    if file is not None:
        return [_Found(file, (_parent(uri),))]
    files = below(uri)
    return None if files is None else [_found(file, uri) for file in files]


def _matching(uri: str) -> list[_Found]:
    scheme = "s3://" if is_remote(uri) else "/"
    names = uri.removeprefix(scheme).split("/")
    first = next(at for at, name in enumerate(names) if has_magic(name))
    base = scheme + "/".join(names[:first])
    matching = {file.uri: file for file in _expanded(base, names[first:])}
    return [_found(matching[one], base) for one in sorted(matching)]


def _expanded(base: str, patterns: list[str]) -> Iterator[FoundFile]:
    """The files that fit patterns, one for each level; a directory that fits gives all of its."""
    if not patterns:
        yield from (one.file for one in _literally(base) or ())
        return
    head, *rest = patterns
    if head == "**":
        for file in below(base) or ():
            if _fits(_names_below(file.uri, base), patterns):
                yield file
    elif not has_magic(head):
        yield from _expanded(join(base, head), rest)
    else:
        level = children(base, lambda name: _is_like(name, head))
        for name in level.directories:
            yield from _expanded(join(base, name), rest)
        if not rest:
            yield from level.files


def _fits(names: list[str], patterns: list[str]) -> bool:
    """Whether patterns describe a path or a directory on the way to it."""
    if not patterns:
        return True
    head, *rest = patterns
    if head == "**":
        return any(_fits(names[at:], rest) for at in range(len(names)))
    return bool(names) and _is_like(names[0], head) and _fits(names[1:], rest)


def _is_like(name: str, pattern: str) -> bool:
    if is_hidden(name) and not pattern.startswith(name[0]):
        return False
    return fnmatchcase(name, pattern)


def _found(file: FoundFile, base: str) -> _Found:
    return _Found(file, (_name(base), *_names_below(file.uri, base)[:-1]))


def _names_below(uri: str, base: str) -> list[str]:
    return uri[len(base) :].strip("/").split("/")


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def _parent(uri: str) -> str:
    return _name(uri.rpartition("/")[0])


# -- what is in a file -------------------------------------------------------------


def _recognised(file: FoundFile) -> InputFile:
    name = _name(file.uri).lower()
    stem, dot, last = name.rpartition(".")
    compression = _COMPRESSIONS.get(dot + last)
    if compression is not None:
        dot, last = ".", stem.rpartition(".")[2] if "." in stem else ""
    format_ = _FORMATS.get(dot + last)
    if format_ is None or (format_ == "parquet" and compression is not None):
        hint = "; name it .jsonl if each line is one JSON object" if last == "json" else ""
        raise BadRequest(f"cannot load {file.uri}: {_ACCEPTED}{hint}")
    return InputFile(file.uri, format_, file.size, compression, version=file.version)


def _typed(found: _Found, file: InputFile, type_names: Collection[str]) -> InputFile:
    if file.format == "jsonl":
        return file
    _refuse_partitions(found)
    for name in (*reversed(found.directories), _stem(file.uri)):
        known = _find_type(name, type_names)
        if known is not None:
            return _with_type(file, known)
    written = (found.directories[-1], _stem(file.uri))
    near = (did_you_mean(name, type_names) for name in written)
    hint = next(filter(None, near), None) or name_hint(written[1], type_names)
    raise BadRequest(
        f"cannot tell the type of the rows of {file.uri}: {_RULE}" + (f"; {hint}" if hint else "")
    )


def _refuse_partitions(found: _Found) -> None:
    for name in found.directories[1:]:
        if "=" in name:
            raise BadRequest(
                f"cannot load {found.file.uri}: '{name}' is a column kept in the name of a"
                " directory, and only columns in files are read; write the table without"
                " partitions"
            )


def _stem(uri: str) -> str:
    return _name(uri).partition(".")[0]


def _with_type(file: InputFile, type_name: str) -> InputFile:
    return InputFile(
        file.uri, file.format, file.size, file.compression, type_name, version=file.version
    )


def _known_type(name: object, type_names: Collection[str]) -> str:
    if not isinstance(name, str):
        raise BadRequest(f"files are named by their type, found the name {name!r}")
    known = _find_type(name, type_names)
    if known is None:
        hint = name_hint(name, type_names)
        raise BadRequest(f"no type '{name}' for these files" + (f"; {hint}" if hint else ""))
    return known


def _find_type(name: str, type_names: Collection[str]) -> str | None:
    """A type by its exact name, else by its name in any case if that is only one."""
    if name in type_names:
        return name
    alike = [known for known in type_names if known.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
