"""The older dialect of `omnigraph.yaml`: its spellings, and what version 1 says instead.

Owns the table of them. They are accepted for ever; where both spellings of a thing are written,
that of version 1 counts.
"""

from __future__ import annotations

from collections.abc import Mapping

SECTIONS: Mapping[str, str] = {"targets": "graphs"}
"""Whole sections that have another name."""
MEMBERS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("cli", "graph"): ("default", "graph"),
    ("cli", "target"): ("default", "graph"),
    ("cli", "branch"): ("default", "branch"),
    ("cli", "output_format"): ("output", "format"),
    ("cli", "table_max_column_width"): ("output", "table_max_column_width"),
    ("cli", "table_cell_layout"): ("output", "table_cell_layout"),
}
"""Members of a section that have moved into another one."""
ENTRIES: Mapping[tuple[str, str], str] = {
    ("graphs", "storage"): "uri",
    ("aliases", "target"): "graph",
}
"""Members of the entries of a section that have another name."""
PROVIDER_KIND = "provider"
"""Another word for `kind` of a provider, in every version."""
COMMANDS: Mapping[str, str] = {
    "read": "query",
    "query": "query",
    "change": "mutate",
    "mutate": "mutate",
}
"""What the `command` of an alias is called today."""
