"""Forms of SQL, Cypher and GQL, recognised where parsing fails and answered with our own.

Owns which forms those are, as data, and finding one under a cursor. Never changes what parses:
it is asked only about text that has no meaning in this language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.query import terms, words
from omnigraph.lang.source import Span
from omnigraph.lang.tokens import Kind

_A_HOP = "a hop is written `$a knows $b`; its direction follows from the schema"
_AN_OUTER_JOIN = "write `optional { … }`"
_A_JOIN = "walk an edge, `$a knows $b`, or compare values, `$a.city = $b.city`"
_A_CASE = 'write `case { when $p.age > 17: "adult" else: "child" }`'
_A_QUERY = "write `match { $a: Type } return { $a.property }`"
_A_REGEX = 'write `matches($p.name, "regex")`'

WORDS: Mapping[str, str] = {
    "select": "write `match { … } return { … }`",
    "from": "bind a variable to a type: `$p: Person`",
    "where": "conditions are clauses of `match { … }`; of `update … set { … }` they come last",
    "having": "test the aggregate of a block in `match`: `count { … } > 2`",
    "with": "name a value within `match { … }`: `let $n = …`",
    "group by": "rows are grouped by every output that is no aggregate",
    "group": "rows are grouped by every output that is no aggregate",
    "by": "write `order { $p.name }`",
    "partition by": "write `limit 3 per { $p.city }`",
    "over": "write `limit 3 per { $p.city }`",
    "left join": _AN_OUTER_JOIN,
    "left outer join": _AN_OUTER_JOIN,
    "full join": _AN_OUTER_JOIN,
    "optional match": _AN_OUTER_JOIN,
    "inner join": _A_JOIN,
    "cross join": _A_JOIN,
    "join": _A_JOIN,
    "unwind": "write `for $x in $list`",
    "unnest": "write `for $x in $list`",
    "foreach": "write `for $x in $list { … }`",
    "skip": "write `limit 10 offset 20`",
    "top": "write `limit 10` at the end",
    "fetch": "write `limit 10` at the end",
    "between": "write `$p.age >= 18 and $p.age <= 65`",
    "not in": 'write `not ($p.name in ["Ann", "Ben"])`',
    "not like": 'write `not like($p.name, "A%")`',
    "like": 'write `like($p.name, "A%")`',
    "ilike": 'write `like(lower($p.name), "a%")`',
    "rlike": _A_REGEX,
    "regexp": _A_REGEX,
    "similar to": _A_REGEX,
    "starts with": "write `starts_with`",
    "ends with": "write `ends_with`",
    "case": _A_CASE,
    "when": _A_CASE,
    "then": _A_CASE,
    "end": _A_CASE,
    "except": "write `not { … }`",
    "minus": "write `not { … }`",
    "intersect": "write `exists { … }`",
    "merge": "write `upsert Person { … }`",
    "set": 'write `update Person set { age: 31 } where name = "Ann"`',
    "values": 'write `insert Person { name: "Ann" }`',
    "into": 'write `insert Person { name: "Ann" }`',
    "remove": "write `update Person set { age: null } where …`",
    "detach delete": "write `delete Person where …`: edges go with their nodes",
    "interval": "write `plus_days($p.born, 7)`",
}
"""Words that mean something elsewhere, and how that is said here."""

CALLS: Mapping[str, str] = {
    "array_agg": "collect(…)",
    "cast": "to_int(…), to_float(…), to_string(…)",
    "ceiling": "ceil(x)",
    "char_length": "length(s)",
    "collect_list": "collect(…)",
    "current_date": "today()",
    "current_timestamp": "now()",
    "date_add": "plus_days(d, n)",
    "date_diff": "days_between(a, b)",
    "date_format": 'format(d, "%Y-%m")',
    "date_part": "year(d), month(d), day(d)",
    "date_trunc": 'truncate(d, "month")',
    "dateadd": "plus_days(d, n)",
    "datediff": "days_between(a, b)",
    "datetrunc": 'truncate(d, "month")',
    "duration": "plus_days(d, n), plus_months(d, n)",
    "endswith": "ends_with(s, end)",
    "extract": "year(d), month(d), day(d)",
    "getdate": "now()",
    "greatest": "max_of(a, b)",
    "group_concat": 'join(list, ", ")',
    "head": "first(list)",
    "id": "`$p.@id`",
    "ifnull": "coalesce(a, b)",
    "iif": "if(condition, a, b)",
    "instr": "contains(s, x)",
    "isnull": "`… is null`",
    "labels": "type($p)",
    "lcase": "lower(s)",
    "least": "min_of(a, b)",
    "len": "length(s), size(list)",
    "list_contains": "contains(list, x)",
    "log": "ln(x)",
    "lpad": "pad_left(s, n)",
    "ltrim": "trim(s)",
    "mod": "`a % b`",
    "nullif": "if(a = b, …)",
    "nvl": "coalesce(a, b)",
    "position": "contains(s, x)",
    "power": "pow(x, y)",
    "regexp_like": "matches(s, regex)",
    "regexp_matches": "matches(s, regex)",
    "rpad": "pad_right(s, n)",
    "rtrim": "trim(s)",
    "row_number": "`limit 3 per { … }`",
    "rank": "`limit 3 per { … }`",
    "shortestpath": "a way: `$a $w:knows{1,} $b`",
    "allshortestpaths": "ways: `$a every $w:knows{1,} $b`",
    "startswith": "starts_with(s, start)",
    "strftime": 'format(d, "%Y-%m")',
    "string_agg": 'join(list, ", ")',
    "strlen": "length(s)",
    "str_split": "split(s, separator)",
    "string_split": "split(s, separator)",
    "substr": "substring(s, start, n)",
    "sysdate": "now()",
    "tail": "slice(list, 1)",
    "to_char": 'format(d, "%Y-%m")',
    "toboolean": "to_bool(s)",
    "tofloat": "to_float(x)",
    "tointeger": "to_int(x)",
    "tolower": "lower(s)",
    "tostring": "to_string(x)",
    "toupper": "upper(s)",
    "ucase": "upper(s)",
}
"""Functions that other languages have, in lower case, and which ones do their work here."""

_SIGNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"&&?", "write `and`"),
        (r"\|\|", "write `or`; texts are joined by `+`"),
        (r"!(?!=)", "write `not …`, or `not { … }` around clauses"),
        (r"~", _A_REGEX),
        (r"::", "write `to_int(…)`, `to_date(…)` and their kin"),
        (r"<?-+>|<-|>(?<=->)", _A_HOP),
        (r"\*(?=[0-9.])", "write `knows{1,3}`"),
        (r"`", "names are written without quotes"),
    )
)
_IN_BRACKETS = re.compile(r"\[\s*\w*\s*\Z")
_IN_PARENTHESES = re.compile(r"\bin\s*\([^()]*\Z", re.IGNORECASE)
_KEYWORDS = frozenset((*words.KEYWORDS, *words.WORD_OPERATORS, *words.CONSTANTS))
_LONGEST = 3


def teach(cursor: Cursor) -> None:
    """Fail with a lesson if what stands under the cursor is known from elsewhere."""
    lesson = _sign(cursor) or _phrase(cursor)
    if lesson is not None:
        span, hint = lesson
        shown = cursor.reporter.source.text[span.start : span.end]
        cursor.fail(span, f"`{shown}` is not of this language", hint=hint)


def function_hint(name: str) -> str | None:
    """What does here what a function of another language does."""
    here = CALLS.get(name.lower())
    if here is not None:
        return f"write {here if here.startswith('`') or ': `' in here else f'`{here}`'}"
    plain = name.lower()
    return f"write `{plain}(…)`" if plain in FUNCTIONS and plain != name else None


def _sign(cursor: Cursor) -> tuple[Span, str] | None:
    """A sign of another language, and what is written for it."""
    token, text = cursor.token, cursor.reporter.source.text
    if token.kind is Kind.STRING:
        return None
    if token.text == ":" and cursor.peek().kind is Kind.TYPE:
        hint = f"a type stands at the binding: `$p: {cursor.peek().text}`"
        is_hop = _IN_BRACKETS.search(text, 0, token.start) is not None
        return token.span.to(cursor.peek().span), _A_HOP if is_hop else hint
    if token.text == "," and _IN_PARENTHESES.search(text, 0, token.start):
        return token.span, "a list takes brackets: `in [1, 2]`"
    for pattern, hint in _SIGNS:
        found = pattern.match(text, token.start)
        if found is not None:
            start = token.start - text.endswith("=~", 0, found.end())
            return Span(start, found.end()), hint
    return None


def _phrase(cursor: Cursor) -> tuple[Span, str] | None:
    """One or more words of another language, and what is written for them."""
    token = cursor.token
    if token.kind is not Kind.IDENT and not (token.kind is Kind.TYPE and token.text.isupper()):
        return None
    found = list(_words(cursor))
    for count in range(len(found), 0, -1):
        hint = WORDS.get(" ".join(word for word, _ in found[:count]))
        if hint is not None:
            span = Span(token.start, found[count - 1][1])
            return span, hint if cursor.index else _A_QUERY
    plain = found[0][0]
    if plain == "match" and not cursor.index:
        return token.span, _A_QUERY
    if token.kind is Kind.IDENT:
        return None
    if cursor.peek().text == "(":
        known = plain in FUNCTIONS or plain in terms.AGGREGATES
        hint = f"write `{plain}(…)`" if known else function_hint(plain)
        return (token.span, hint) if hint else None
    if plain in _KEYWORDS:
        return token.span, f"keywords are in lower case: `{plain}`"
    return None


def _words(cursor: Cursor) -> Iterator[tuple[str, int]]:
    """The words from the cursor on, in lower case, and where each ends."""
    token = cursor.token
    for ahead in range(1, _LONGEST + 1):
        if token.kind not in (Kind.IDENT, Kind.TYPE):
            return
        yield token.text.lower(), token.end
        token = cursor.peek(ahead)
