"""What analysts ask, each in our language and as the SQL that DuckDB answers fastest.

Owns the texts and the limit. The answers must be equal, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.traversal.data import People
from bench.traversal.questions import Params, Question

LIMIT = 1.2
KNOWN = "FROM person p JOIN knows k ON k.src = p.number"


def _nothing(_: People, runs: int) -> Sequence[Params]:
    return [{}] * runs


def _asked(name: str, ours: str, sql: str, *, ordered: bool = False) -> Question:
    text = f"query q() {{ match {{ {ours} }}"
    return Question(name, text, "", sql, _nothing, ordered=ordered, limit=LIMIT)


QUESTIONS = (
    _asked(
        "count(distinct) of texts",
        "$p: Person } return { count(distinct $p.mail) as m, count(distinct $p.city) as c }",
        "SELECT count(DISTINCT mail), count(DISTINCT city) FROM person",
    ),
    _asked(
        "count(distinct) over edges, by city",
        "$p: Person $p knows $t } return { $p.city, count(distinct $t) as c }",
        f"SELECT p.city, count(DISTINCT k.dst) {KNOWN} GROUP BY p.city",
    ),
    _asked(
        "group by computed keys, persons",
        "$p: Person } return { $p.age - $p.age % 10 as decade, $p.mail is null as silent,"
        " count($p) as c, avg($p.age) as a }",
        "SELECT age - age % 10 AS decade, mail IS NULL AS silent, count(*), avg(age)"
        " FROM person GROUP BY decade, silent",
    ),
    _asked(
        "group by computed keys, edges",
        "$p: Person $p $k:knows $t } return { year($k.since) as y, month($k.since) as m,"
        " count($k.@id) as c, sum($k.weight) as w } order { y, m }",
        "SELECT year(since) AS y, month(since) AS m, count(*), sum(weight) FROM knows"
        " GROUP BY y, m ORDER BY y, m",
        ordered=True,
    ),
    _asked(
        "limit 3 per, persons",
        "$p: Person } return { $p.city, $p.name, $p.age } order { $p.age desc, $p.name }"
        " limit 3 per { $p.city }",
        "SELECT city, name, age FROM person"
        " QUALIFY row_number() OVER (PARTITION BY city ORDER BY age DESC, name) <= 3",
    ),
    _asked(
        "limit 3 per, edges",
        "$p: Person $p $k:knows $t } return { $p.city, $k.weight, $k.since, $p.name,"
        " $t.number } order { $k.weight desc, $k.since desc, $p.name, $t.number }"
        " limit 3 per { $p.city }",
        f"SELECT p.city, k.weight, k.since::VARCHAR, p.name, k.dst {KNOWN}"
        " QUALIFY row_number() OVER (PARTITION BY p.city"
        " ORDER BY k.weight DESC, k.since DESC, p.name, k.dst) <= 3",
    ),
    _asked(
        "block count",
        "$p: Person let $n = count { $p knows $_ } $n >= 40 }"
        " return { $p.name, $n } order { $n desc, $p.name } limit 20",
        f"SELECT p.name, count(*) AS n {KNOWN} GROUP BY p.name HAVING n >= 40"
        " ORDER BY n DESC, p.name LIMIT 20",
        ordered=True,
    ),
    _asked(
        "block count with a condition, by city",
        "$p: Person let $n = count { $p knows $t $t.age >= 60 } }"
        " return { $p.city, sum($n) as known, max($n) as most }",
        "SELECT p.city, sum(coalesce(n, 0))::BIGINT, max(coalesce(n, 0)) FROM person p LEFT JOIN"
        " (SELECT k.src, count(*) AS n FROM knows k JOIN person t ON t.number = k.dst"
        " WHERE t.age >= 60 GROUP BY k.src) ON src = p.number GROUP BY p.city",
    ),
    _asked(
        "block sum of weights, the largest",
        "$p: Person let $w = sum($k.weight) { $p $k:knows $_ } $w is not null }"
        " return { $p.name, $w } order { $w desc, $p.name } limit 20",
        f"SELECT p.name, sum(k.weight) AS w {KNOWN} GROUP BY p.name"
        " ORDER BY w DESC, p.name LIMIT 20",
        ordered=True,
    ),
    _asked(
        "join by value, one key",
        "$p: Person $q: Person $p.born = $q.born $p.number < $q.number }"
        " return { count(*) as c, sum($q.age - $p.age) as s }",
        "SELECT count(*), sum(q.age - p.age)::BIGINT FROM person p JOIN person q"
        " ON p.born = q.born AND p.number < q.number",
    ),
    _asked(
        "join by value, two keys",
        "$p: Person $q: Person $p.born = $q.born $p.city = $q.city $p.number < $q.number }"
        " return { $p.city, count(*) as c }",
        "SELECT p.city, count(*) FROM person p JOIN person q"
        " ON p.born = q.born AND p.city = q.city AND p.number < q.number GROUP BY p.city",
    ),
    _asked(
        "filters with functions, persons",
        '$p: Person lower($p.mail) ends_with "post.example" year($p.joined) = 2019'
        " length($p.name) % 2 = 0 } return { count($p) as c, min($p.born) as b }",
        "SELECT count(*), min(born)::VARCHAR FROM person WHERE lower(mail) LIKE '%post.example'"
        " AND year(joined) = 2019 AND length(name) % 2 = 0",
    ),
    _asked(
        "filters with functions, edges",
        "$p: Person $p $k:knows $t month($k.since) = 12 round($k.weight / 10.0) = 5.0 }"
        " return { count($k.@id) as c, avg($k.weight) as w }",
        "SELECT count(*), avg(weight) FROM knows WHERE month(since) = 12"
        " AND round(weight / 10) = 5",
    ),
)
