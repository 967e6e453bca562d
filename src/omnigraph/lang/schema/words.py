"""The words of `.pg`: what keywords, annotations and types are called.

Owns the lists that editors and highlighting share; a grammar takes words in context.
"""

from __future__ import annotations

from omnigraph.lang.types import BASE_NAMES, Scalar

KEYWORDS: tuple[str, ...] = ("node", "edge", "interface", "implements", "enum")
CONSTANTS: tuple[str, ...] = ("true", "false", "null")
TYPES: tuple[str, ...] = (*BASE_NAMES, Scalar.VECTOR.value)
ANNOTATIONS: tuple[str, ...] = (
    *("key", "unique", "index", "range", "check", "card", "default", "embed"),
    *("description", "instruction", "merge", "rename_from"),
)
