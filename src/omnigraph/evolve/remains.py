"""Remains: the tables of an init that died, told from everything else that lies where tables do.

Owns the judgement on files below a root without a manifest. Whatever it is not sure of may
be needed by somebody: it never counts as remains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.tables.reachable_files import version_of

TABLES = ("nodes", "edges")
_SHOWN = 3

_IN_TABLE = re.compile(r"((?:nodes|edges)/[0-9a-f]{16}-[0-9a-f]{16})/(.+)")
# Beside its first version, a table that nobody has written to consists of the transaction
# that made it, a hint of the newest version, and what a put that was cut short has left.
_BESIDE_FIRST = re.compile(
    r"_transactions/0-[0-9a-f-]{36}\.txn|_versions/latest_version_hint\.json"
    r"|(?:_transactions|_versions)/\.tmp\w+"
)
_CUT_SHORT = re.compile(r"#\d+$")


@dataclass(frozen=True, slots=True)
class Remains:
    """What lies in the directories of tables: files of tables as an init makes them, and others.

    ``others`` are tables that hold more than an init puts there, and files of no table.
    """

    files: tuple[str, ...]
    others: tuple[str, ...]

    def describe_others(self) -> str:
        """Some of the others by name, and how many more there are."""
        shown = ", ".join(self.others[:_SHOWN])
        more = len(self.others) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown


def find_remains(objects: ControlObjects) -> Remains:
    """Judge every file in the directories of tables."""
    files: list[str] = []
    # A dict keeps the order, and names each table once.
    others: dict[str, None] = {}
    for directory in TABLES:
        for entry in objects.entries(directory):
            placed = _IN_TABLE.fullmatch(entry.name)
            if placed is None:
                others[entry.name] = None
            elif _is_of_empty_table(placed[2]):
                files.append(entry.name)
            else:
                others[f"{placed[1]} (a table that was written to)"] = None
    return Remains(tuple(files), tuple(others))


def _is_of_empty_table(name: str) -> bool:
    """Whether a file of a table can be there before anything was ever written to it.

    Rows are data files, and every write makes a version of its own beside the first.
    """
    first = version_of(_CUT_SHORT.sub("", name)) == 1
    return first or _BESIDE_FIRST.fullmatch(name) is not None
