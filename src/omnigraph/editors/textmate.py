"""Grammars of both languages as TextMate has them: for VS Code, Sublime Text, GitHub and others.

Owns their scopes. `python -m omnigraph.editors.textmate DIRECTORY` writes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnigraph.lang.query import words as gq
from omnigraph.lang.schema import words as pg

Rule = Mapping[str, Any]

_SHARED: tuple[Rule, ...] = (
    {"name": "comment.line.double-slash", "match": "//.*$"},
    {"name": "comment.block", "begin": r"/\*", "end": r"\*/"},
    {
        "name": "string.quoted.double",
        "begin": '"',
        "end": '"',
        "patterns": [{"name": "constant.character.escape", "match": r"\\."}],
    },
    {"name": "constant.numeric", "match": r"\b[0-9]+(\.[0-9]+)?\b"},
)
_REST: tuple[Rule, ...] = (
    {"name": "entity.name.type", "match": r"\b[A-Z]\w*\b"},
    {"name": "keyword.operator", "match": r"->|\.\.|<=|>=|!=|[<>=+\-*/%|]"},
)


def _words(scope: str, several: Sequence[str], *, before: str = r"\b", after: str = r"\b") -> Rule:
    return {"name": scope, "match": f"{before}({'|'.join(several)}){after}"}


def grammars() -> dict[str, dict[str, Any]]:
    """Each grammar by the name of its file."""
    query = (
        *_SHARED,
        {"name": "variable.other", "match": r"\$[a-z_]\w*"},
        {"name": "variable.other.property", "match": r"(?<=\.)@?[a-z_]\w*"},
        _words("entity.other.attribute-name", gq.ANNOTATIONS, before="@"),
        {
            "match": r"\b(query)\s+([a-z_]\w*)",
            "captures": {"1": {"name": "keyword.other"}, "2": {"name": "entity.name.function"}},
        },
        _words("support.function", gq.CALLS, after=r"(?=\s*\()"),
        _words("constant.language", gq.CONSTANTS),
        _words("keyword.operator.word", gq.WORD_OPERATORS),
        _words("keyword.other", gq.KEYWORDS),
        _words("storage.type", gq.TYPES),
        *_REST,
    )
    schema = (
        *_SHARED,
        {"name": "entity.other.attribute-name", "match": r"@[a-z_]\w*"},
        _words("constant.language", pg.CONSTANTS),
        _words("keyword.other", pg.KEYWORDS, after=r"\b(?!\s*:)"),
        _words("storage.type", pg.TYPES),
        {"name": "variable.other.property", "match": r"\b[a-z_]\w*(?=\s*:)"},
        *_REST,
    )
    return {
        "gq.tmLanguage.json": _grammar("OmniGraph query", "source.gq", "gq", query),
        "pg.tmLanguage.json": _grammar("OmniGraph schema", "source.pg", "pg", schema),
    }


def _grammar(name: str, scope: str, extension: str, rules: Sequence[Rule]) -> dict[str, Any]:
    return {
        "name": name,
        "scopeName": scope,
        "fileTypes": [extension],
        "patterns": [dict(rule) for rule in rules],
    }


def written(grammar: Mapping[str, Any]) -> str:
    """A grammar as its file has it."""
    return json.dumps(grammar, indent=2) + "\n"


def write(directory: Path) -> None:
    """Write the grammars into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, grammar in grammars().items():
        (directory / name).write_text(written(grammar), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
