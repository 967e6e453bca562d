"""The questions every system answers, each in its own language.

Owns the texts and their parameters. The Cypher forms are the fastest of several that
were tried, the SQL is written once as plain joins; the answers must be equal, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.traversal.data import People

Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """One line of the table."""

    name: str
    ours: str
    cypher: str
    sql: str
    params: Callable[[People, int], Sequence[Params]]
    others: Mapping[str, str] = field(default_factory=dict)
    """Forms for single systems, by their names."""
    ordered: bool = False
    limit: float = float("inf")
    """What our time over that of the fastest peer may be at most."""

    def may_ask(self, system: str) -> bool:
        """Whether a system has a form of it that ends in time."""
        return bool(self.text(system))

    def text(self, system: str) -> str:
        """What to ask a system."""
        known = {"omnigraph": self.ours, "duckdb": self.sql}
        return self.others.get(system) or known.get(system, self.cypher)


def _person(people: People, runs: int) -> Sequence[Params]:
    return [{"n": name} for name in people.starts(runs)]


def _pairs(people: People, runs: int) -> Sequence[Params]:
    starts, ends = people.starts(runs), people.ends(runs)
    return [{"n": start, "m": end} for start, end in zip(starts, ends, strict=True)][
        : max(1, runs // 5)
    ]


def _filtered(people: People, runs: int) -> Sequence[Params]:
    half = people.cities[len(people.cities) // 2]
    return [{"n": name, "half": half} for name in people.starts(runs)]


def _city(people: People, runs: int) -> Sequence[Params]:
    return [{"city": city} for city in people.cities[: max(1, runs // 5)]]


def _nothing(_: People, runs: int) -> Sequence[Params]:
    return [{}] * max(1, runs // 5)


_TWO = "query q($n: String, $m: String) { match { $p: Person { name: $n } $t: Person { name: $m }"
_START = "WITH h0 AS (SELECT number AS dst FROM person WHERE name = $n), "
_HOP = "h{} AS (SELECT DISTINCT k.dst FROM h{} h JOIN knows k ON k.src = h.dst)"
_REACHED = "SELECT dst FROM h{}"
_ALL = " SELECT count(*) FROM ({}) WHERE dst <> (SELECT dst FROM h0)"


def _hops(hops: int, *, limit: float = float("inf")) -> Question:
    numbers = range(1, hops + 1)
    steps = [_HOP.format(hop, hop - 1) for hop in numbers]
    every = " UNION ".join(_REACHED.format(hop) for hop in numbers)
    return Question(
        f"within {hops} hop{'s' if hops > 1 else ''}",
        "query q($n: String) { match { $p: Person { name: $n } $p knows{1,H} $t }"
        " return { count($t) as c } }".replace("H", str(hops)),
        f"MATCH (p:Person {{name: $n}})-[:Knows* SHORTEST 1..{hops}]->(t:Person) RETURN count(*)"
        if hops > 1
        else "MATCH (p:Person {name: $n})-[:Knows]->(t:Person) RETURN count(DISTINCT t)",
        _START + ", ".join(steps) + _ALL.format(every),
        _person,
        limit=limit,
    )


QUESTIONS = (
    Question(
        "point lookup by key",
        "query q($n: String) { match { $p: Person { name: $n } } return { $p.age, $p.city } }",
        "MATCH (p:Person {name: $n}) RETURN p.age, p.city",
        "SELECT age, city FROM person WHERE name = $n",
        _person,
    ),
    _hops(1),
    _hops(2),
    _hops(3),
    Question(
        # Distinct pairs of a start and somebody reached.
        "within 2 hops of a city, pairs",
        "query q($city: String) { match { $p: Person { city: $city } $p knows{1,2} $t }"
        " return { count($t) as c } }",
        "MATCH (p:Person)-[:Knows* SHORTEST 1..2]->(t:Person) WHERE p.city = $city RETURN count(*)",
        "WITH s AS (SELECT number FROM person WHERE city = $city),"
        " h1 AS (SELECT s.number, k.dst FROM s JOIN knows k ON k.src = s.number),"
        " h2 AS (SELECT h1.number, k.dst FROM h1 JOIN knows k ON k.src = h1.dst)"
        " SELECT count(*) FROM (SELECT * FROM h1 UNION SELECT * FROM h2) WHERE number <> dst",
        _city,
        others={
            "ladybug": "MATCH (p:Person)-[:Knows]->(m:Person) WHERE p.city = $city"
            " OPTIONAL MATCH (m)-[:Knows]->(t:Person) UNWIND [id(m), id(t)] AS x"
            " WITH DISTINCT id(p) AS a, x WHERE x IS NOT NULL AND x <> a RETURN count(*)"
        },
    ),
    Question(
        # Every way counts, also to the same person.
        "2 steps from a city, ways",
        "query q($city: String) { match { $p: Person { city: $city } $p knows $f $f knows $t }"
        " return { count($t) as c } }",
        "MATCH (p:Person)-[:Knows]->(f:Person)-[:Knows]->(t:Person) WHERE p.city = $city"
        " RETURN count(*)",
        "SELECT count(*) FROM person p JOIN knows x ON x.src = p.number"
        " JOIN knows y ON y.src = x.dst WHERE p.city = $city",
        _city,
    ),
    Question(
        "2 hops, filtered, top 10",
        "query q($n: String, $half: String) { match { $p: Person { name: $n } $p knows{1,2} $t"
        " $t.age >= 40 $t.city < $half }"
        " return { $t.name, $t.age, $t.city } order { $t.age desc, $t.name } limit 10 }",
        "MATCH (p:Person {name: $n})-[:Knows* SHORTEST 1..2]->(t:Person) WITH t"
        " WHERE t.age >= 40 AND t.city < $half"
        " RETURN t.name, t.age, t.city ORDER BY t.age DESC, t.name LIMIT 10",
        "WITH s AS (SELECT number AS dst FROM person WHERE name = $n),"
        " h1 AS (SELECT k.dst FROM s JOIN knows k ON k.src = s.dst),"
        " h2 AS (SELECT k.dst FROM h1 JOIN knows k ON k.src = h1.dst)"
        " SELECT name, age, city FROM (SELECT dst FROM h1 UNION SELECT dst FROM h2)"
        " JOIN person ON number = dst WHERE name <> $n AND age >= 40 AND city < $half"
        " ORDER BY age DESC, name LIMIT 10",
        _filtered,
        ordered=True,
    ),
    Question(
        "triangles of a person",
        "query q($n: String) { match { $a: Person { name: $n } $a knows $b $b knows $c"
        " $c knows $a } return { count($c) as c } }",
        "MATCH (a:Person {name: $n})-[:Knows]->(b:Person)-[:Knows]->(c:Person)-[:Knows]->(a)"
        " RETURN count(*)",
        "WITH s AS (SELECT number FROM person WHERE name = $n)"
        " SELECT count(*) FROM s JOIN knows x ON x.src = s.number JOIN knows y ON y.src = x.dst"
        " JOIN knows z ON z.src = y.dst AND z.dst = s.number",
        _person,
    ),
    Question(
        "2 steps, not known already",
        "query q($n: String) { match { $p: Person { name: $n } $p knows $f $f knows $t"
        " not { $p knows $t } } return { count($t) as c } }",
        "MATCH (p:Person {name: $n})-[:Knows]->(f:Person)-[:Knows]->(t:Person)"
        " OPTIONAL MATCH (p)-[k:Knows]->(t) WITH t, k WHERE k IS NULL RETURN count(*)",
        "WITH s AS (SELECT number FROM person WHERE name = $n),"
        " h1 AS (SELECT k.dst FROM s JOIN knows k ON k.src = s.number)"
        " SELECT count(*) FROM h1 JOIN knows k ON k.src = h1.dst"
        " WHERE k.dst NOT IN (SELECT dst FROM h1)",
        _person,
    ),
    Question(
        "who knows nobody",
        "query q() { match { $p: Person not { $p knows $_ } } return { count($p) as c } }",
        "MATCH (p:Person) WHERE NOT EXISTS { MATCH (p)-[:Knows]->(:Person) } RETURN count(*)",
        "SELECT count(*) FROM person p WHERE NOT EXISTS"
        " (SELECT 1 FROM knows k WHERE k.src = p.number)",
        _nothing,
    ),
    Question(
        "average age by city",
        "query q() { match { $p: Person } return { $p.city, avg($p.age) as a, count($p) as c } }",
        "MATCH (p:Person) RETURN p.city, avg(p.age), count(*)",
        "SELECT city, avg(age), count(*) FROM person GROUP BY city",
        _nothing,
    ),
)

WAYS = (
    Question(
        # Its nodes are looked at, so that it has to be found, and not its length alone.
        "a shortest way between two",
        _TWO + " $p $w:knows{1,} $t } return { $w.@hops as h, size($w.@ids) as s } }",
        "MATCH p = (a:Person {name: $n})-[e:Knows* SHORTEST 1..30]->(b:Person {name: $m})"
        " RETURN length(e), size(nodes(p))",
        "",
        _pairs,
        limit=1.0,
    ),
    Question(
        "all shortest ways between two",
        _TWO + " $p every $w:knows{1,} $t } return { count($w) as c } }",
        "MATCH (a:Person {name: $n})-[:Knows* ALL SHORTEST 1..30]->(b:Person {name: $m})"
        " RETURN count(*)",
        "",
        _pairs,
        limit=1.5,
    ),
    Question(
        "the way of least weight between two",
        _TWO + " $p $w:knows{1,} $t each $k, $_ by $k.weight } return { $w.@cost as c } }",
        "MATCH (a:Person {name: $n})-[e:Knows* WSHORTEST(weight)]->(b:Person {name: $m})"
        " RETURN cost(e)",
        "",
        _pairs,
        limit=2.0,
    ),
)
"""Questions of the language benchmark, which the systems of this one answer."""
