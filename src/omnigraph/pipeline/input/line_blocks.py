"""Line blocks: the lines of a split of JSON lines, many at a time.

Owns which lines belong to a split: those that begin in it. Never ends a block inside a line,
and never looks into one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from omnigraph.pipeline.input.byte_ranges import BOM, PIECE, end_of, read_forward, refuse_long_line
from omnigraph.pipeline.input.splits import Split


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines as they are written, line ends included.

    ``first_line`` counts the lines of the split before this block; ``offset`` is where the
    block begins in the file, after decompression.
    """

    data: bytes
    first_line: int
    offset: int

    @property
    def lines(self) -> int:
        """How many lines there are, also blank ones; the last may lack its line end."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


def line_blocks(split: Split, block_bytes: int = PIECE) -> Iterator[LineBlock]:
    """The lines that begin in a split, in order.

    Holds one block and the beginning of one line. A byte order mark is left out.
    """
    line = 0
    for data, offset in _whole_lines(split, block_bytes):
        skipped = len(BOM) if offset == 0 and data.startswith(BOM) else 0
        block = LineBlock(data[skipped:], line, offset + skipped)
        if block.data:
            yield block
            line += block.lines


def _whole_lines(split: Split, block_bytes: int) -> Iterator[tuple[bytes, int]]:
    """The bytes of the lines and where they begin."""
    end = end_of(split.file, split.end)
    # The byte before tells whether a line begins right here.
    position = max(split.start - 1, 0)
    is_aligned = split.start == 0
    pending: list[bytes] = []
    begins = 0
    with closing(read_forward(split.file, position, end, block_bytes)) as pieces:
        for piece in pieces:
            data = piece
            if not is_aligned:
                cut = data.find(b"\n") + 1
                position += cut or len(data)
                if not cut:
                    refuse_long_line(split.file, position - split.start, split.start)
                    continue
                data = data[cut:]
                is_aligned = True
                begins = position
            if end is not None and begins >= end:
                return
            stop = 0
            if end is not None and position + len(data) >= end:
                stop = data.find(b"\n", max(end - 1 - position, 0)) + 1
            cut = stop or data.rfind(b"\n") + 1
            if cut:
                yield b"".join([*pending, data[:cut]]), begins
                pending.clear()
                begins = position + cut
            if stop:
                return
            if cut < len(data):
                pending.append(data[cut:])
            position += len(data)
            refuse_long_line(split.file, position - begins, begins)
    if pending:
        yield b"".join(pending), begins
