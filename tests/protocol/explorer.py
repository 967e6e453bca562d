"""Exhaustive search over the interleavings of some actors, breadth first: traces are shortest.

Worlds and standpoints are numbered, and a state is one packed integer. What an actor can do
depends on the world and on where it stands, so it is worked out once for each such pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.protocol.actors import Actor
from tests.protocol.cleaner import Cleaner
from tests.protocol.naming import Brancher, Deleter, Renamer
from tests.protocol.world import (
    Local,
    Mistake,
    Violation,
    World,
    check_outcome,
    check_world,
    unneeded_claims,
)

BITS = 20
MASK = (1 << BITS) - 1
ALONE = 60
"""More steps than anybody needs who is left alone."""

LISTS = {"list_files", "list_last"}
MAKES = {"stage", "stage_first", "create"}
"""Steps that make a file only a listing can find, until its maker publishes it."""
READS_NAMES = {"resolve", "read_names", "read_names_last"}
"""Steps that read the names and nothing else."""

Options = tuple[tuple[int, int], ...]
"""The numbers of the worlds, and of the places in them, that a step can lead to."""


@dataclass(frozen=True)
class Loss:
    """A promise that was broken, and the shortest way there."""

    promise: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        lines = (f"{n:3} {step}" for n, step in enumerate(self.trace, 1))
        return "\n".join((self.promise, *lines))


@dataclass(frozen=True)
class Exploration:
    """What a search has seen."""

    states: int
    loss: Loss | None = None


def describe(actor: Actor, n: int, local: Local) -> str:
    """One line of a trace: who takes which step."""
    return f"{type(actor).__name__} {n}: {local[0].replace('_', ' ')}"


class Search:
    """All that some actors can do to a world, one step at a time."""

    def __init__(self, world: World, actors: Sequence[Actor], places: Sequence[Local]) -> None:
        self.actors = tuple(actors)
        self.prologue: tuple[str, ...] = ()
        self.janitor = Cleaner(
            always_revokes=True,
            shelters=next((a.shelters for a in actors if isinstance(a, Cleaner)), ()),
        )
        self.worlds: list[World] = []
        self.world_numbers: dict[World, int] = {}
        self.locals: list[Local] = []
        self.local_numbers: dict[Local, int] = {}
        self.known: tuple[dict[int, Options], ...] = tuple({} for _ in actors)
        self.settled: tuple[set[int], ...] = tuple(set() for _ in actors)
        self.unfinished: tuple[dict[int, int], ...] = tuple({} for _ in actors)
        self.swept: set[int] = set()
        self.listing: set[int] = set()
        self.resolving: set[int] = set()
        self.unseen: set[int] = set()
        self.makes_openly = any(
            {Mistake.LIST_LAST, Mistake.NAME_FIRST} & {*actor.mistakes} for actor in actors
        )
        self.names_stay = not any(isinstance(a, Brancher | Deleter | Renamer) for a in actors)
        self.parents: dict[int, int] = {}
        # Two runs of cleanup own no ids: which of them is where makes no difference.
        alike = [n for n, actor in enumerate(self.actors) if isinstance(actor, Cleaner)]
        assert all(self.actors[n] == self.actors[alike[0]] for n in alike)
        self.alike = alike if len(alike) > 1 else []
        self.shifts = [BITS * n for n in reversed(range(len(actors)))]
        self.width = BITS * len(actors)
        self.places = (1 << self.width) - 1
        self.start = self.pack(self.number(world), [self.place(local) for local in places])

    def number(self, world: World) -> int:
        found = self.world_numbers.get(world)
        if found is None:
            check_world(world)
            found = self.world_numbers[world] = len(self.worlds)
            self.worlds.append(world)
        return found

    def place(self, local: Local) -> int:
        found = self.local_numbers.get(local)
        if found is None:
            found = self.local_numbers[local] = len(self.locals)
            assert found <= MASK
            self.locals.append(local)
            if local[0] in LISTS:
                self.listing.add(found)
            elif local[0] in READS_NAMES and self.names_stay:
                self.resolving.add(found)
                self.unseen.add(found)
            elif local[0] in MAKES and not self.makes_openly:
                self.unseen.add(found)
        return found

    def pack(self, world: int, places: list[int]) -> int:
        if self.alike:
            ordered = sorted(places[n] for n in self.alike)
            for n, place in zip(self.alike, ordered, strict=True):
                places[n] = place
        for place in places:
            world = world << BITS | place
        return world

    def unpack(self, state: int) -> tuple[int, list[int]]:
        return state >> self.width, [state >> shift & MASK for shift in self.shifts]

    def options(self, n: int, world: int, place: int) -> Options:
        """Where a step of one actor can lead; nowhere when it is done."""
        key = world << BITS | place
        found = self.known[n].get(key)
        if found is None:
            found = self.known[n][key] = self.work_out(n, world, place)
            if self.actors[n].is_settled(self.worlds[world], self.locals[place]):
                self.settled[n].add(key)
        return found

    def work_out(self, n: int, world: int, place: int) -> Options:
        actor, here, local = self.actors[n], self.worlds[world], self.locals[place]
        if local[0] == "done":
            check_outcome(here, actor.seat, local)
            return ()
        return tuple(
            (self.number(after), self.place(then)) for after, then in actor.steps(here, local)
        )

    def successors(self, state: int) -> list[tuple[int, int]]:
        """The next states, each with the actor that takes the step.

        A step that nobody else can see or influence is taken at once: its order does not matter.
        """
        world, places = self.unpack(state)
        found = []
        unseen = self.resolving if self.listing.intersection(places) else self.unseen
        for n, place in enumerate(places):
            options = self.options(n, world, place)
            if options and (place in unseen or world << BITS | place in self.settled[n]):
                return [(n, self.moved(state, n, place, options[0]))]
            found += [(n, self.moved(state, n, place, option)) for option in options]
        return found

    def moved(self, state: int, n: int, place: int, option: tuple[int, int]) -> int:
        """The state after one actor has left its place for another, in a world that has changed."""
        world, then = option
        after = world << self.width | state & self.places ^ (place ^ then) << self.shifts[n]
        if n in self.alike:
            return self.pack(*self.unpack(after))
        return after

    def run(self, prologue: tuple[str, ...] = ()) -> Exploration:
        """Visit every state that can be reached; stop at the first broken promise."""
        self.prologue = prologue
        self.parents = {self.start: self.start}
        frontier = [self.start]
        while frontier:
            reached = []
            for state in frontier:
                try:
                    following = self.successors(state)
                    if not following:
                        self.sweep(state)
                except Violation as violation:
                    return Exploration(len(self.parents), self.loss(state, str(violation)))
                for _, after in following:
                    if after not in self.parents:
                        self.parents[after] = state
                        reached.append(after)
            frontier = reached
        return Exploration(len(self.parents), self.check_progress())

    def loss(self, state: int, promise: str) -> Loss:
        """The way to a state and, if it is a step from there that breaks the promise, that step."""
        path = [state]
        while path[-1] != self.start:
            path.append(self.parents[path[-1]])
        path.reverse()
        trace = list(self.prologue)
        # Runs of cleanup change places in a packed state; the trace tells them apart.
        world, places = self.unpack(self.start)
        for after in path[1:]:
            n, (world, place) = next(
                (n, option)
                for n, option in self.moves(world, places)
                if self.pack(option[0], [*places[:n], option[1], *places[n + 1 :]]) == after
            )
            trace.append(self.describe(n, places))
            places[n] = place
        for n, place in enumerate(places):
            try:
                self.options(n, world, place)
            except Violation:
                if self.locals[place][0] != "done":
                    trace.append(self.describe(n, places))
                break
        return Loss(promise, tuple(trace))

    def moves(self, world: int, places: list[int]) -> Iterator[tuple[int, tuple[int, int]]]:
        """Each step that somebody can take."""
        for n, place in enumerate(places):
            for option in self.options(n, world, place):
                yield n, option

    def describe(self, n: int, places: list[int]) -> str:
        return describe(self.actors[n], n, self.locals[places[n]])

    def check_progress(self) -> Loss | None:
        """Whoever is left alone, anywhere, comes to an end by its own steps."""
        for n, known in enumerate(self.known):
            for key in list(known):
                if self.steps_left(n, key >> BITS, key & MASK, 0) > ALONE:
                    return Loss("somebody left alone does not come to an end", ())
        return None

    def steps_left(self, n: int, world: int, place: int, depth: int) -> int:
        memory = self.unfinished[n]
        key = world << BITS | place
        found = memory.get(key)
        if found is None:
            if depth > ALONE:
                return depth
            options = self.options(n, world, place)
            if not options and self.locals[place][0] != "done":
                raise Violation("somebody cannot go on")
            found = 1 + max((self.steps_left(n, *o, depth + 1) for o in options), default=-1)
            memory[key] = found
        return found

    def sweep(self, state: int) -> None:
        """When all are done, one more run of cleanup leaves nothing that is not needed."""
        number = self.unpack(state)[0]
        if number in self.swept:
            return
        self.swept.add(number)
        world, local = self.worlds[number], self.janitor.begin
        while local[0] != "done":
            world, local = self.janitor.steps(world, local)[0]
            check_world(world)
        if local[1] != "cleaned" or world.files != world.needed or unneeded_claims(world):
            raise Violation("a run of cleanup alone leaves what nothing needs")
