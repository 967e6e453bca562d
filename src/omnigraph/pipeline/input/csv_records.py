"""CSV records: where rows and values begin and end, by the quotes alone (RFC 4180).

Owns the structure of CSV bytes. A value that holds a quote, a comma or a line end is quoted,
its quotes doubled; then the number of quotes before a place tells whether it is inside a
value, and a file can be cut anywhere. Whatever breaks this rule is refused, never guessed at.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from omnigraph.errors import BadRequest
from omnigraph.pipeline.input.byte_ranges import BOM, read_forward, read_range, refuse_long_line
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.write.load.csv_options import CsvOptions

_LF, _CR = b"\n\r"
_RFC = CsvOptions()
_BREAKS = np.array([_LF, _CR], dtype=np.uint8)
_HEADER_PIECE = 64 << 10


@dataclass(frozen=True, slots=True)
class Header:
    """The names of the columns; the rows begin ``size`` bytes into the file."""

    names: tuple[str, ...]
    size: int


def quote_count(file: InputFile, start: int, end: int) -> int:
    """The number of quotes in a range of bytes."""
    with closing(read_range(file, start, end)) as pieces:
        quote = file.csv.quote.encode()
        return sum(piece.count(quote) for piece in pieces)


def record_ends(data: bytes, *, inside: bool = False, csv: CsvOptions = _RFC) -> np.ndarray:
    """The places behind the line feeds that end records.

    ``inside`` tells whether the bytes begin in a quoted value. A carriage return alone ends
    a record too, but no file is cut there.
    """
    return _Marks(data, b"\n", csv, inside=inside).outside(_LF) + 1


def last_record_end(data: bytes, *, inside: bool = False, csv: CsvOptions = _RFC) -> int:
    """The last of these places, 0 if there is none."""
    feed = data.rfind(b"\n")
    if feed < 0 or (data.count(csv.quote.encode(), 0, feed) + inside) % 2 == 0:
        return feed + 1
    ends = record_ends(data, inside=inside, csv=csv)
    return int(ends[-1]) if len(ends) else 0


class _Marks:
    """The places of quotes and of some other bytes, and which of these are outside of values."""

    def __init__(
        self, data: bytes, wanted: bytes, csv: CsvOptions, *, inside: bool = False
    ) -> None:
        quote = ord(csv.quote)
        self.data = np.frombuffer(data, dtype=np.uint8)
        is_mark = self.data == quote
        for byte in wanted:
            is_mark |= self.data == byte
        self._places = np.flatnonzero(is_mark)
        self._bytes = self.data[self._places]
        is_quote = self._bytes == quote
        self.quotes = self._places[is_quote]
        # Wraps around at 256, which leaves odd and even as they are.
        before = np.cumsum(is_quote, dtype=np.uint8)
        self._is_outside = (before + inside) % 2 == 0

    def outside(self, byte: int) -> np.ndarray:
        """The places of a byte outside of quoted values."""
        places: np.ndarray = self._places[self._is_outside & (self._bytes == byte)]
        return places


class Records:
    """The records of some bytes, which begin and end with a record.

    Blank lines are left out, but where there is ``one_column``: there, each is a null.
    ``offset`` is where the bytes stand in the file, ``first_line`` how many lines of the
    split stand before them. ``ends`` are behind the line ends. ``value_counts`` is how many
    values each record has, ``stray_quote`` the place of the first quote that neither opens
    nor closes a value, nor is doubled.
    """

    def __init__(
        self,
        data: bytes,
        offset: int,
        first_line: int,
        *,
        one_column: bool = False,
        csv: CsvOptions = _RFC,
    ) -> None:
        self.data = data
        self.offset = offset
        self.first_line = first_line
        self.csv = csv
        delimiter = csv.delimiter.encode()
        marks = _Marks(data, delimiter + b"\r\n", csv)
        self.starts, self.ends = _spans(marks, with_blank=one_column)
        self.value_counts = _between(marks.outside(delimiter[0]), self.starts, self.ends) + 1
        self.stray_quote = _stray_quote(
            marks, np.frombuffer(csv.quote.encode() + delimiter + b"\r\n", dtype=np.uint8)
        )

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lines(self) -> int:
        """How many lines the bytes have."""
        return self.data.count(b"\n") + (bool(self.data) and not self.data.endswith(b"\n"))

    def line(self, record: int) -> int:
        """The line on which a record begins, counted from 0 in the split."""
        return self.first_line + self.data.count(b"\n", 0, int(self.starts[record]))

    def position(self, record: int) -> int:
        """The byte of the file at which a record begins."""
        return self.offset + int(self.starts[record])

    def raw(self, record: int) -> bytes:
        """A record as it is written, without its line end."""
        return self.data[self.starts[record] : self.ends[record]].rstrip(b"\r\n")

    def text(self, record: int) -> str:
        """The same as text."""
        return self.raw(record).decode(self.csv.encoding, errors="replace")

    def without(self, records: Sequence[int]) -> bytes:
        """The bytes of all other records; the numbers are in order."""
        kept, at = [], 0
        for record in records:
            kept.append(self.data[at : self.starts[record]])
            at = int(self.ends[record])
        return b"".join([*kept, self.data[at:]])


def _spans(marks: _Marks, *, with_blank: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where the records begin, and where they end; blank ones only if they are wanted."""
    data, size = marks.data, len(marks.data)
    ends = marks.outside(_LF) + 1
    alone = marks.outside(_CR) + 1
    if len(alone):
        is_pair = (alone < size) & (data[np.minimum(alone, size - 1)] == _LF)
        ends = np.sort(np.concatenate([ends, alone[~is_pair]]))
    if size and (not len(ends) or ends[-1] != size):
        ends = np.append(ends, size)
    starts = np.concatenate([np.zeros(1, ends.dtype), ends[:-1]])[: len(ends)]
    if with_blank:
        return starts, ends
    is_blank = np.isin(data[starts], _BREAKS)
    return starts[~is_blank], ends[~is_blank]


def _between(places: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    counts: np.ndarray = np.searchsorted(places, ends) - np.searchsorted(places, starts)
    return counts


def _stray_quote(marks: _Marks, edges: np.ndarray) -> int | None:
    data, quotes = marks.data, marks.quotes
    if not len(quotes):
        return None
    opening, closing_ = quotes[0::2], quotes[1::2]
    opens = np.isin(data[np.maximum(opening - 1, 0)], edges) | (opening == 0)
    last = len(data) - 1
    closes = np.isin(data[np.minimum(closing_ + 1, last)], edges) | (closing_ == last)
    stray = np.concatenate([opening[~opens], closing_[~closes]])
    if len(stray):
        return int(stray.min())
    return int(quotes[-1]) if len(quotes) % 2 else None


def read_header(file: InputFile) -> Header:
    """The names of the columns, from the first line that is not blank."""
    held: list[bytes] = []
    size = seen = 0
    with closing(read_forward(file, 0, None, _HEADER_PIECE)) as pieces:
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            # Looked at whenever it has doubled, so that a long one is not looked at too often.
            if size >= 2 * seen:
                data, seen = b"".join(held), size
                ends = record_ends(data, csv=file.csv)
                if len(ends) and (found := find_header(file, data[: ends[-1]])) is not None:
                    return found
            refuse_long_line(file, size, 0)
    data = b"".join(held)
    found = find_header(file, data)
    if found is None:
        raise BadRequest(f"{file.uri} is empty: the first line of a CSV file names its columns")
    return found


def find_header(file: InputFile, data: bytes) -> Header | None:
    """The same from the beginning of a file; None if there are only blank lines yet."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadRequest(f"{file.uri} is UTF-16; save it as UTF-8")
    skipped = len(BOM) if data.startswith(BOM) else 0
    options = file.csv
    if not options.header and options.columns is not None:
        return Header(tuple(options.columns), skipped)
    records = Records(data[skipped:], skipped, 0, csv=options)
    if not len(records):
        return None
    size = skipped + int(records.ends[0])
    check_quotes(file, Records(data[skipped:size], skipped, 0, csv=options))
    if options.columns is not None:
        return Header(tuple(options.columns), size)
    try:
        line = records.raw(0).decode(options.encoding)
    except UnicodeDecodeError:
        raise BadRequest(
            f"the first line of {file.uri} is not {options.encoding.upper()}; save the file so"
        ) from None
    try:
        rows = csv.reader([line], strict=True, delimiter=options.delimiter, quotechar=options.quote)
        names = tuple(next(rows))
    except csv.Error as error:
        raise BadRequest(f"the first line of {file.uri} names no columns: {error}") from None
    names = options.named(names, file.type_name)
    _check_names(file, names)
    return Header(names, size)


def check_quotes(file: InputFile, records: Records) -> None:
    """Refuse a file whose quotes do not tell where values begin and end."""
    at = records.stray_quote
    if at is None:
        return
    record = max(int(np.searchsorted(records.starts, at, side="right")) - 1, 0)
    shown = records.raw(record)[:80].decode(errors="replace")
    raise BadRequest(
        f"{file.uri} is no valid CSV at byte {records.offset + at}: a value with a quote in it is"
        f" written in quotes, with that quote doubled; the row begins {shown!r}",
        details={"file": file.uri, "offset": records.offset + at},
    )


def _check_names(file: InputFile, names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if not name:
            raise BadRequest(f"column {at + 1} of {file.uri} has no name in the first line")
        if name in names[:at]:
            raise BadRequest(f"{file.uri} has two columns '{name}'")
    found = next((mark for mark in ";\t|," if mark in names[0]), None) if len(names) == 1 else None
    if found is not None:
        raise BadRequest(
            f"{file.uri} has only the column {names[0]!r}: values are separated by commas, or by"
            f" what the option delimiter says, which may be {found!r} here"
        )
