"""How a CSV file is written, where it is not as RFC 4180 has it.

Owns the options a person gives and their checks. Never reads a file.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.errors import BadRequest

# Those in which a byte of ASCII means that character wherever it stands, so that files can be cut.
ENCODINGS = ("utf-8", "iso8859-1", "cp1252", "iso8859-15", "ascii")
_ASCII = 128


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """The options of the CSV files of one load.

    ``columns`` are the names of the columns, instead of those in the first line; with ``header``
    false there is no such line. An unquoted ``null`` is a null, as nothing between two delimiters
    is always. ``rename`` says what columns of the first line stand for: `{"origin": "from"}`, or of
    the files of one type, `{"Flight.origin": "from"}`. With ``ignore_extra`` columns that are no
    property of their type are left out, of Parquet as well.
    """

    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    columns: Sequence[str] | None = None
    null: str | None = None
    encoding: str = "utf-8"
    rename: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    ignore_extra: bool = False

    def __post_init__(self) -> None:
        renamed = dict(self.rename)
        if not all(old.strip() and new.strip() for old, new in renamed.items()):
            raise BadRequest("rename says what a column stands for, by its name")
        object.__setattr__(self, "rename", tuple(sorted(renamed.items())))
        for name, text in (("delimiter", self.delimiter), ("quote", self.quote)):
            if len(text) != 1 or ord(text) >= _ASCII or text in "\r\n\0":
                raise BadRequest(f"the {name} of CSV is one character of ASCII, found {text!r}")
        if self.delimiter == self.quote:
            raise BadRequest("the delimiter and the quote of CSV cannot be the same")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
            if not self.columns or not all(self.columns):
                raise BadRequest("columns are the names of the columns of CSV: give all of them")
            twice = sorted({one for one in self.columns if list(self.columns).count(one) > 1})
            if twice:
                raise BadRequest(f"columns names '{twice[0]}' twice")
        elif not self.header:
            raise BadRequest("CSV without a header needs the names of its columns: give columns")
        if self.null is not None and any(one in self.null for one in self.special):
            raise BadRequest(f"{self.null!r} cannot be an unquoted value of CSV")
        object.__setattr__(self, "encoding", _known(self.encoding))

    def named(self, columns: Sequence[str], type_name: str | None) -> tuple[str, ...]:
        """What the columns of a file stand for."""
        renamed = dict(self.rename)
        return tuple(renamed.get(f"{type_name}.{one}", renamed.get(one, one)) for one in columns)

    @property
    def special(self) -> tuple[str, ...]:
        """What only a quoted value may hold."""
        return (self.delimiter, self.quote, "\r", "\n")

    @property
    def nulls(self) -> list[str]:
        """The unquoted values that are null."""
        return [""] if self.null is None else ["", self.null]


def _known(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        name = ""
    if name not in ENCODINGS:
        raise BadRequest(
            f"CSV is read in the encodings {', '.join(ENCODINGS)}, not {encoding!r}: save it as"
            " UTF-8"
        )
    return name
