"""Generated input: small stories about a few entities, told by right and wrong lines.

Everything comes from one `random.Random`, so a seed says it all. The names of a story are
its own and few, so that rows of one batch, and of batches loaded one after another, meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from tests.pipeline.wrong_lines import MISFITS, Values, catalogue, edge, node

SCHEMA = """
node Person {
    name: String @key
    email: String? @unique
    age: I32?
    level: I32 @default(1)
    mood: enum(happy, sad-ish)?
    tags: [String]?
    born: Date? @default("2000-02-29")
    seen: DateTime?
    score: F32?
    at: Vector(3)?
    @range(age, 0..150)
    @check(email, "@")
}

node Slot {
    room: String
    day: Date
    label: String
    size: U64?
    @key(room, day)
    @unique(label, size)
}

node Note {
    text: String?
    code: I64? @unique
    done: Bool @default(false)
    numbers: [I32]?
    body: Blob?
}

node Team {
    name: String @key
    budget: F64?
    @range(budget, 0.5..)
}

edge Knows: Person -> Person {
    since: Date?
    @unique(src, dst)
}

edge Boss: Person -> Person @card(0..1) {
    badge: String? @unique
}

edge Holds: Team -> Slot @card(1..2) {
    weight: F64 @default(0.5)
}

edge About: Note -> Person

edge Wrote: Person -> Note {
    ref: String?
    rank: U32?
    @unique(dst, ref)
}

edge Meets: Person -> Person {
    on: Date
    weight: F64 @default(0.5)
    ref: String?
    @key(src, dst, on)
    @unique(dst, ref)
}
"""


@dataclass(frozen=True)
class Batch:
    """Files to load together, in this order."""

    files: tuple[tuple[str, bytes], ...]

    def write(self, directory: Path) -> list[Path]:
        """The paths of the files below a directory."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in self.files:
            (directory / name).write_bytes(content)
        return [directory / name for name, _ in self.files]


class Story:
    """A few entities with names of their own, and lines about them."""

    def __init__(self, random: Random, name: str, era: str) -> None:
        self.random = random
        self.name = name
        self.era = era
        self.lines: list[bytes] = []

    def tell(self) -> list[bytes]:
        """All lines, in no order."""
        for teller, most in (
            (self._person, 6),
            (self._slot, 5),
            (self._note, 4),
            (self._team, 4),
            (self._knows, 5),
            (self._boss, 5),
            (self._holds, 5),
            (self._about, 2),
            (self._wrote, 4),
            (self._meets, 6),
        ):
            self.lines += (teller() for _ in range(self.random.randint(0, most)))
        return self.lines

    # -- drawing -----------------------------------------------------------------------

    def _one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def _some(self, likely: float, **values: Any) -> Values:
        return {name: one for name, one in values.items() if self.random.random() < likely}

    def _spoilt(self, data: Values) -> Values:
        """Values, now and then one of them such as cannot be."""
        if self.random.random() > 0.07:
            return data
        name = self.random.choice([name for name in data if name in MISFITS] or ["id"])
        return {**data, name: self.random.choice(MISFITS[name])}

    def _person_id(self) -> str:
        return f"{self.name}-{self._one_of('ann', 'ben', 'cléo', 'dan')}"

    def _team_id(self) -> str:
        return f"{self.name}{self.era}-{self._one_of('red', 'blue')}"

    def _note_id(self) -> str:
        return f"{self.name}-n{self._one_of(1, 2, 3)}"

    def _end(self, known: str) -> str:
        return known if self.random.random() < 0.93 else f"{self.name}-nobody"

    # -- nodes -------------------------------------------------------------------------

    def _person(self) -> bytes:
        name = self._person_id()
        data: Values = {"name": name, **self._some(0.05, id=self._one_of(name, name, "wrong"))}
        data |= self._some(
            0.5,
            email=f"{self._one_of('x', 'y', 'z')}@{self.name}",
            age=self._one_of(0, 30, 150, None),
            level=self._one_of(1, 2),
            mood=self._one_of("happy", "sad-ish", None),
            tags=self._one_of([], ["a", "ü"], None),
            born=self._one_of("1999-12-31", -1, 0, None),
            seen=self._one_of("2024-05-01T12:00:00.123Z", 0, "2024-05-01T12:00:00+02:00"),
            score=self._one_of(0.1, 1, -0.0, 16777217),
            at=self._one_of([1, 2.5, -3], [0, 0, 0.1], None),
        )
        return node("Person", **self._spoilt(data))

    def _slot_key(self) -> tuple[str, Any]:
        return f"{self.name} room", self._one_of("2020-05-01", "2020-05-02", 18383)

    def _slot_id(self) -> str:
        return f'["{self._one_of(18383, 18384)}","{self.name} room"]'

    def _slot(self) -> bytes:
        room, day = self._slot_key()
        data: Values = {"room": room, "day": day, "label": f"{self.name}{self._one_of('a', 'b')}"}
        data |= self._some(0.7, size=self._one_of(1, 2, 2**64 - 1, None))
        data |= self._some(0.1, id=self._slot_id())
        return node("Slot", **self._spoilt(data))

    def _note(self) -> bytes:
        data: Values = self._some(0.6, id=self._note_id())
        data |= self._some(
            0.5,
            text=self._one_of("t", "", "\u0000", "line\nbreak", None),
            code=int(self.name[1:]) * 10 + self.random.randint(0, 2),
            done=self._one_of(True, False),
            numbers=self._one_of([1, 2], [], None),
            body=self._one_of("base64:aGVsbG8=", "base64:", None),
        )
        return node("Note", **self._spoilt(data))

    def _team(self) -> bytes:
        data: Values = {"name": self._team_id()} | self._some(0.5, budget=self._one_of(0.5, 7))
        return node("Team", **self._spoilt(data))

    # -- edges -------------------------------------------------------------------------

    def _knows(self) -> bytes:
        data = self._some(0.4, id=f"{self.name}-k{self._one_of(1, 2)}")
        data |= self._some(0.3, since=self._one_of("2020-05-01", 5, None))
        kind = self._one_of("Knows", "Knows", "knows", "KNOWS")
        ends = self._end(self._person_id()), self._end(self._person_id())
        return edge(kind, *ends, **self._spoilt(data))

    def _boss(self) -> bytes:
        data = self._some(0.4, id=f"{self.name}-b{self._one_of(1, 2)}")
        data |= self._some(0.4, badge=f"{self.name}{self._one_of('p', 'q')}")
        ends = self._end(self._person_id()), self._end(self._person_id())
        return edge("Boss", *ends, **self._spoilt(data))

    def _holds(self) -> bytes:
        # Its source is part of the id: an edge that changes its source may leave one without.
        team = self._end(self._team_id())
        data = self._some(0.5, id=f"{team}-h{self._one_of(1, 2)}")
        data |= self._some(0.3, weight=self._one_of(0.25, 1, 1e300))
        return edge("Holds", team, self._end(self._slot_id()), **self._spoilt(data))

    def _about(self) -> bytes:
        data = self._some(0.4, id=f"{self.name}-a{self._one_of(1, 2)}")
        ends = self._end(self._note_id()), self._end(self._person_id())
        return edge("About", *ends, **self._spoilt(data))

    def _wrote(self) -> bytes:
        data = self._some(0.4, id=f"{self.name}-w{self._one_of(1, 2)}")
        data |= self._some(0.6, ref=self._one_of("r", "s", None), rank=self._one_of(0, 2**32 - 1))
        ends = self._end(self._person_id()), self._end(self._note_id())
        return edge("Wrote", *ends, **self._spoilt(data))

    def _meets(self) -> bytes:
        ends = self._end(self._person_id()), self._end(self._person_id())
        # Two spellings of one day, and another day.
        day, number = self._one_of(("1970-01-06", 5), (5, 5), ("1970-01-07", 6))
        right = json.dumps([*ends, str(number)], separators=(",", ":"), ensure_ascii=False)
        data: Values = {"on": day, **self._some(0.2, id=self._one_of(right, right, "wrong"))}
        data |= self._some(0.3, weight=self._one_of(0.25, 2), ref=self._one_of("r", "s", "t"))
        return edge("Meets", *ends, **self._spoilt(data))


def batch(seed: int, stories: int, *, first: int = 0, era: str = "", files: int = 4) -> Batch:
    """Stories all mixed up, with everything else that can be wrong, in several files.

    ``first`` and the following numbers name the stories; another ``era`` has other teams.
    """
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    lines = [*sound(f"sound{seed}"), *catalogue(f"wrong{seed}")]
    for at in range(first, first + stories):
        lines += Story(random, f"s{at}", era).tell()
    random.shuffle(lines)
    return _in_files(lines, random, files)


def sound(name: str) -> Sequence[bytes]:
    """One row of each type with nothing wrong about it: every type is touched."""
    slot = f'["0","{name}"]'
    return (
        node("Person", name=name),
        node("Slot", room=name, day="1970-01-01", label=name),
        node("Note", id=name, text=name),
        node("Team", name=name),
        edge("Knows", name, name, id=name),
        edge("Boss", name, name),
        edge("Holds", name, slot),
        edge("About", name, name),
        edge("Wrote", name, name, ref="first"),
        edge("Meets", name, name, on=0, id=f'["{name}","{name}","0"]'),
    )


def _in_files(lines: Sequence[bytes], random: Random, files: int) -> Batch:
    bounds = sorted(random.randint(0, len(lines)) for _ in range(files - 1))
    found = []
    for at, (start, end) in enumerate(zip([0, *bounds], [*bounds, len(lines)], strict=True)):
        ends = (b"\n", b"\r\n", b"\n\n", b"\n")[at % 4]
        text = ends.join(lines[start:end])
        mark = b"\xef\xbb\xbf" if at % 4 == 1 else b""
        # The last line need not end.
        found.append((f"part-{at}.jsonl", mark + text + (ends if at % 2 else b"")))
    return Batch(tuple(found))


def tables(seed: int, people: int) -> dict[str, pa.Table]:
    """People, notes and edges as tables, with whatever can be wrong in rows of columns."""
    random = Random(seed)  # noqa: S311 - repeatable, not secret

    def column(count: int, *values: Any, type_: pa.DataType | None = None) -> pa.Array:
        return pa.array(random.choices(values, k=count), type_)

    names = [f"p{random.randint(0, people)}" for _ in range(people)]
    notes = [f"n{random.randint(0, people)}" for _ in range(people)]
    ends = [*names, "nobody"]
    return {
        "Note": pa.table(
            {
                "id": [one if random.random() < 0.6 else None for one in notes],
                "code": column(people, *range(3 * people), None),
                "done": column(people, *[True] * 9, None),
                "numbers": column(people, [1, 2], [], *[None] * 8, [1, None]),
            }
        ),
        "Person": pa.table(
            {
                "name": [one if random.random() < 0.97 else None for one in names],
                "age": column(people, 0, 150, *[None] * 20, 151, -1, type_=pa.int64()),
                "email": column(people, *(f"{at}@x" for at in range(2 * people)), *["wrong"] * 10),
                "mood": column(people, "happy", None, *["sad-ish"] * 20, "angry"),
                "score": column(people, 0.5, *[None] * 20, float("nan"), type_=pa.float64()),
                "at": column(people, [1.0, 2.0, 3.0], *[None] * 20, [1.0], type_=_NUMBERS),
            }
        ),
        "Boss": pa.table(
            {
                "from": column(people // 2, *ends, None),
                "to": column(people // 2, *ends),
                "badge": column(people // 2, *(str(at) for at in range(people)), None),
            }
        ),
        "Knows": pa.table(
            {
                "id": column(people, *(f"k{at}" for at in range(people)), None),
                "src": column(people, *ends),
                "dst": column(people, *ends),
                "since": column(people, date(2020, 5, 1), None),
            }
        ),
        "Meets": pa.table(
            {
                "from": column(people, *ends[:15], "nobody"),
                "to": column(people, *ends[:15]),
                "on": column(people, *[date(2020, 5, day) for day in range(1, 5)], None),
            }
        ),
    }


_NUMBERS = pa.list_(pa.float32())


def written(*lines: bytes) -> Batch:
    """The lines as they are, in one file."""
    return Batch((("part-0.jsonl", b"\n".join(lines) + b"\n"),))


def several(*files: Iterable[bytes]) -> Batch:
    """The lines of each file as they are."""
    return Batch(
        tuple((f"part-{at}.jsonl", b"\n".join([*lines, b""])) for at, lines in enumerate(files))
    )
