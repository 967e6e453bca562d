"""Sets of actors on a small graph, ready to be explored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tests.protocol.actors import Actor
from tests.protocol.cleaner import Cleaner
from tests.protocol.explorer import Exploration, Search, describe
from tests.protocol.world import (
    ABSENT,
    DATASETS,
    FEATURE,
    MAIN,
    NOBODY,
    SPARE,
    TOPIC,
    Branch,
    Claim,
    Commit,
    Mistake,
    World,
)

OLD, HEAD = 101, 102
"""The authors of the two commits that each branch has at the beginning, both retained."""


@dataclass(frozen=True)
class Scenario:
    """Who is at work, and which names have a branch at the beginning."""

    actors: tuple[Actor, ...]
    existing: tuple[int, ...] = (MAIN,)
    prologue: str = ""
    """Steps that have been taken when the search begins: the seats of who took them, and for a
    step with several outcomes which one, as in ``2 2 2:1 0``."""

    def explore(
        self, mistakes: Collection[Mistake] = (), *, looks_last: bool = False
    ) -> Exploration:
        world, actors = self.opening(frozenset(mistakes), looks_last=looks_last)
        places = [actor.begin for actor in actors]
        taken = []
        for step in self.prologue.split():
            seat, _, outcome = step.partition(":")
            n = int(seat)
            taken.append(describe(actors[n], n, places[n]))
            world, places[n] = actors[n].steps(world, places[n])[int(outcome or 0)]
        return Search(world, actors, places).run(tuple(taken))

    def opening(
        self, mistakes: frozenset[Mistake], *, looks_last: bool
    ) -> tuple[World, tuple[Actor, ...]]:
        """The world at the beginning, and the actors with ids of their own."""
        names = (MAIN, FEATURE, TOPIC)
        branches: list[Branch | None] = [None] * len(names)
        bit = 1 << DATASETS + len(self.actors) * SPARE
        files = 0
        for name in self.existing:
            branches[name] = Branch((Commit(OLD, bit), Commit(HEAD, bit << 1)))
            files |= bit | bit << 1 | 1 << name
            bit <<= 2
        seated: list[Actor] = []
        shelters: list[int] = []
        claims: list[Claim] = []
        for seat, actor in enumerate(self.actors):
            placed = replace(
                actor,
                seat=seat,
                mistakes=mistakes,
                first_intent=len(shelters),
                first_branch=len(branches),
                first_claim=len(claims),
            )
            claims += [Claim(seat)] * actor.claims
            shelters += [placed.file(n) for n in range(actor.intents)]
            branches += [None] * actor.branches
            seated.append(placed)
        world = World(
            files=files,
            branches=tuple(branches),
            names=tuple(name if name in self.existing else NOBODY for name in names),
            intents=(ABSENT,) * len(shelters),
            claims=tuple(claims),
        )
        cleaner = Cleaner(mistakes=mistakes, shelters=tuple(shelters), looks_last=looks_last)
        return world, tuple(cleaner if isinstance(a, Cleaner) else a for a in seated)
