"""A small social network of the shape of LDBC SNB, as rows, as graph lines and as SQL tables.

Owns the generator: everything follows from a seed, and no two moments are equal.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]

FILES = Path(__file__).parents[2] / "examples/snb"

START = datetime(2012, 1, 1, tzinfo=UTC)
FIRST_NAMES = ("Ann", "Ben", "Cat", "Dan", "Eve")
LAST_NAMES = ("Berg", "Dahl", "Lund", "Moe")
COUNTRIES = ("Norway", "Italy", "Chile")
TABLES: Mapping[str, str] = {
    "country": "number BIGINT, name VARCHAR",
    "city": "number BIGINT, name VARCHAR, country BIGINT",
    "tagclass": "number BIGINT, name VARCHAR, parent BIGINT",
    "tag": "number BIGINT, name VARCHAR, class BIGINT",
    "university": "number BIGINT, name VARCHAR, city BIGINT",
    "company": "number BIGINT, name VARCHAR, country BIGINT",
    "person": "number BIGINT, firstName VARCHAR, lastName VARCHAR, gender VARCHAR, birthday DATE, "
    "creationDate TIMESTAMP, ip VARCHAR, browser VARCHAR, city BIGINT",
    "knows": "a BIGINT, b BIGINT, creationDate TIMESTAMP",
    "interest": "person BIGINT, tag BIGINT",
    "study": "person BIGINT, university BIGINT, classYear INT",
    "work": "person BIGINT, company BIGINT, workFrom INT",
    "forum": "number BIGINT, title VARCHAR, creationDate TIMESTAMP, moderator BIGINT",
    "member": "forum BIGINT, person BIGINT, joinDate TIMESTAMP",
    "message": "number BIGINT, kind VARCHAR, creationDate TIMESTAMP, content VARCHAR, "
    "imageFile VARCHAR, creator BIGINT, country BIGINT, forum BIGINT, parent BIGINT",
    "message_tag": "message BIGINT, tag BIGINT",
    "likes": "person BIGINT, message BIGINT, creationDate TIMESTAMP",
}


def generate(seed: int, persons: int = 30) -> dict[str, list[Row]]:
    """The rows of every table."""
    rng = random.Random(seed)  # noqa: S311 - a network, no secret
    ticks = iter(rng.sample(range(1_000_000), 20 * persons + 2000))

    def moment() -> datetime:
        return START + timedelta(seconds=next(ticks) * 60)

    def some(things: Sequence[int], most: int) -> list[int]:
        return sorted(rng.sample(things, rng.randint(0, most)))

    people, tags = list(range(1, persons + 1)), list(range(10))
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    rows["country"] = list(enumerate(COUNTRIES))
    rows["city"] = [(100 + n, f"City{n}", n % 3) for n in range(6)]
    rows["tagclass"] = [(n, f"Class{n}", None if n == 0 else (n - 1) // 2) for n in range(5)]
    rows["tag"] = [(n, f"Tag{n}", rng.randrange(5)) for n in tags]
    rows["university"] = [(n, f"University{n}", 100 + n) for n in range(3)]
    rows["company"] = [(n, f"Company{n}", n % 3) for n in range(5)]
    for n in people:
        name = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES), rng.choice(("female", "male"))
        born = date(1980, 1, 1) + timedelta(days=rng.randrange(9000))
        city = 100 + rng.randrange(6)
        rows["person"].append((n, *name, born, moment(), f"1.2.3.{n}", "Firefox", city))
        rows["interest"] += [(n, tag) for tag in some(tags, 4)]
        rows["study"] += [(n, one, 2000 + n % 7) for one in some(range(3), 2)]
        rows["work"] += [(n, one, 2000 + rng.randrange(12)) for one in some(range(5), 2)]
    pairs = [(a, b) for a in people[:-2] for b in people[:-2] if a < b]
    for a, b in sorted(rng.sample(pairs, 2 * persons)):
        rows["knows"].append((*rng.sample((a, b), 2), moment()))
    for n in range(6):
        rows["forum"].append((n, f"Forum{n}", moment(), rng.choice(people)))
        rows["member"] += [(n, one, moment()) for one in some(people, 15)]
    for n in range(8 * persons):
        is_post = n < 2 * persons
        image = f"{n}.png" if is_post and n % 5 == 0 else None
        rows["message"].append(
            (
                *(n, "Post" if is_post else "Comment", moment()),
                *(None if image else f"text {n}", image),
                *(rng.choice(people), rng.randrange(3)),
                *(rng.randrange(6) if is_post else None, None if is_post else rng.randrange(n)),
            )
        )
        rows["message_tag"] += [(n, tag) for tag in some(tags, 3)]
        rows["likes"] += [(one, n, moment()) for one in some(people, 2)]
    return rows


def lines(rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """The network as a graph takes it."""
    yield from map(json.dumps, _records(rows))


def _records(rows: Mapping[str, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    named = (("country", "Country"), ("city", "City"), ("tagclass", "TagClass"), ("tag", "Tag"))
    for table, type_ in (*named, ("university", "University"), ("company", "Company")):
        for number, name, *_ in rows[table]:
            yield _node(type_, number=number, name=name)
    for number, _, country in rows["city"]:
        yield _edge("IsPartOf", number, country)
    for number, _, parent in rows["tagclass"]:
        if parent is not None:
            yield _edge("IsSubclassOf", number, parent)
    for number, _, of in rows["tag"]:
        yield _edge("HasType", number, of)
    for number, _, city in rows["university"]:
        yield _edge("IsLocatedIn", _end("University", number), _end("City", city))
    for number, _, country in rows["company"]:
        yield _edge("IsLocatedIn", _end("Company", number), _end("Country", country))
    yield from _people(rows)
    yield from _talk(rows)


def _people(rows: Mapping[str, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    for number, first, last, gender, birthday, created, ip, browser, city in rows["person"]:
        yield _node(
            "Person",
            number=number,
            firstName=first,
            lastName=last,
            gender=gender,
            birthday=str(birthday),
            creationDate=spelled(created),
            locationIP=ip,
            browserUsed=browser,
        )
        yield _edge("IsLocatedIn", _end("Person", number), _end("City", city))
    for a, b, created in rows["knows"]:
        yield _edge("Knows", a, b, creationDate=spelled(created))
    for person, tag in rows["interest"]:
        yield _edge("HasInterest", person, tag)
    for person, university, year in rows["study"]:
        yield _edge("StudyAt", person, university, classYear=year)
    for person, company, year in rows["work"]:
        yield _edge("WorkAt", person, company, workFrom=year)


def _talk(rows: Mapping[str, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    for number, title, created, moderator in rows["forum"]:
        yield _node("Forum", number=number, title=title, creationDate=spelled(created))
        yield _edge("HasModerator", number, moderator)
    for forum, person, joined in rows["member"]:
        yield _edge("HasMember", forum, person, joinDate=spelled(joined))
    kinds = {}
    for number, kind, created, content, image, creator, country, forum, parent in rows["message"]:
        kinds[number] = kind
        own = {"imageFile": image} if kind == "Post" else {}
        yield _node(
            kind,
            number=number,
            creationDate=spelled(created),
            locationIP="1.1.1.1",
            browserUsed="Chrome",
            content=content,
            length=len(content or ""),
            **own,
        )
        me = _end(kind, number)
        yield _edge("HasCreator", me, creator)
        yield _edge("IsLocatedIn", me, _end("Country", country))
        if forum is not None:
            yield _edge("ContainerOf", forum, number)
        if parent is not None:
            yield _edge("ReplyOf", number, _end(kinds[parent], parent))
    for message, tag in rows["message_tag"]:
        yield _edge("HasTag", _end(kinds[message], message), tag)
    for person, message, created in rows["likes"]:
        yield _edge("Likes", person, _end(kinds[message], message), creationDate=spelled(created))


def _node(type_: str, **data: Any) -> dict[str, Any]:
    return {"type": type_, "data": data}


def _edge(type_: str, src: Any, dst: Any, **data: Any) -> dict[str, Any]:
    return {"edge": type_, "from": src, "to": dst, "data": data}


def _end(type_: str, key: int) -> dict[str, Any]:
    return {"@type": type_, "key": key}


def spelled(moment: datetime) -> str:
    """A moment as results have it."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
