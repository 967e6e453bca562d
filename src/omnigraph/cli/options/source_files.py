"""Reading and replacing source files for the verbs that work on them.

Owns decoding and atomic replacement. What cannot be read is an error that
names the file; a file is replaced whole or not at all.
"""

from __future__ import annotations

from pathlib import Path

from omnigraph.errors import BadRequest
from omnigraph.lang.source import Source
from omnigraph.storage.objects.files import replaced_file


def read_source(path: Path) -> Source:
    """The text of a file, named by its path."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    try:
        return Source(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not UTF-8 text (byte {error.start})") from error


def replace_text(path: Path, text: str) -> None:
    """Replace a file's content, keeping its permissions; links are followed."""
    target = path.resolve()
    with replaced_file(target, mode=target.stat().st_mode & 0o7777) as file:
        file.write(text.encode())
