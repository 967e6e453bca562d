"""Markup: the few elements that everything in a notebook is shown with.

Owns that texts of people are escaped: whatever is not `Html` already becomes text. Asks nothing of
the network: no scripts, no fonts, no style sheets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

SHOWN = 20
"""So many rows of anything are shown; the rest is counted."""
LONGEST = 200
"""How many characters of a value are shown."""


class Html(str):
    """Markup that is finished: nothing of it is escaped again."""

    __slots__ = ()


def marked(value: object) -> str:
    """A value as markup."""
    return value if isinstance(value, Html) else escape(str(value))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element; names of attributes are written with `_` for `-`."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{given}>{''.join(map(marked, content))}</{tag}>")


def joined(parts: Iterable[object]) -> Html:
    """One thing after the other."""
    return Html("".join(map(marked, parts)))


def paragraph(*content: object) -> Html:
    """A line of text."""
    return element("p", *content)


def table(
    heads: Sequence[object], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()
) -> Html:
    """A table; columns of ``numbers`` stand to the right."""
    style = dict.fromkeys(numbers, "text-align: right")
    head = element("tr", *(element("th", one) for one in heads))
    body = joined(
        element("tr", *(element("td", cell, style=style.get(at)) for at, cell in enumerate(cells)))
        for cells in rows
    )
    return element("table", element("thead", head), element("tbody", body))


def first_of(count: int, noun: str, shown: int = SHOWN) -> Html:
    """What is said of the rows that are not shown; nothing if all are."""
    more = count - shown
    return paragraph(f"… and {counted(more, f'more {noun}')}") if more > 0 else Html()


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, with its end left out if it is long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def moment(microseconds: int) -> str:
    """A time since the epoch, for people, to the second."""
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
