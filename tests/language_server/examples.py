"""A small schema and its queries, and reading texts with a mark where the cursor is."""

from __future__ import annotations

from omnigraph.lang.source import Source
from omnigraph.language_server.declared import declared_in
from omnigraph.language_server.meaning import Language, Text

SCHEMA = """\
interface Named {
    name: String @key
}

// Somebody who acts.
// Or directs.
node Person @description("a human being") implements Named {
    name: String @key
    // In whole years.
    age: I32? @description("years since birth")
}

node Film {
    title: String @key
    year: I32?
}

edge ActedIn: Person -> Film {
    role: String?
}
"""


def text_at(marked: str, *, language: Language = "gq", schema: str = SCHEMA) -> tuple[Text, int]:
    """A text and the offset of its `‸`."""
    before, _, after = marked.partition("‸")
    source = Source(before + after, f"x.{language}")
    declared = declared_in(source if language == "pg" else Source(schema, "x.pg"))
    return Text(source, language, declared), len(before)
