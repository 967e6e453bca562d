"""Writers of the model that share one run id: only one of them may publish, on whatever branch.

Each does what write/publish/run_claims.py says. Their commits need no files of their own: what
becomes of files is explored with other actors. How long a claim is left alone is left open: any
claim may be ended at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tests.protocol.actors import Actor
from tests.protocol.world import (
    GONE,
    NOBODY,
    OPEN,
    REVOKED,
    Claim,
    Commit,
    Local,
    Mistake,
    Step,
    World,
    done,
)

NONE = -1


class Known(NamedTuple):
    """What a writer knows of claims: its own, and those of others that are dead."""

    own: int = NONE
    used: int = 0
    dead: tuple[int, ...] = ()


Todo = tuple[int, ...]
"""The claims of others that are left to end."""


@dataclass(frozen=True, kw_only=True)
class RunWriter(Actor):
    """A write under the run id that all of these share."""

    name: int
    claims: ClassVar[int] = 2

    @property
    def begin(self) -> Local:
        return ("resolve",)

    def resolve(self, world: World) -> list[Step]:
        branch = world.names[self.name]
        if branch == NOBODY:
            return [(world, done("not found"))]
        return [(world, ("look", branch, Known()))]

    def others(self, world: World, known: Known) -> Todo:
        """The claims that a listing shows and that are not known to be dead."""
        return tuple(
            slot
            for slot, claim in enumerate(world.claims)
            if claim.author != self.seat and claim.is_there and slot not in known.dead
        )

    def look(self, world: World, branch: int, known: Known) -> list[Step]:
        """List the claims of others, and find out what became of them."""
        return [(world, self.ending(branch, known, self.others(world, known)))]

    def ending(self, branch: int, known: Known, todo: Todo) -> Local:
        return ("revoke", branch, known, todo) if todo else ("capture", branch, known)

    def revoke(self, world: World, branch: int, known: Known, todo: Todo) -> list[Step]:
        slot = todo[0]
        claim = world.claims[slot]
        if claim.status == OPEN and Mistake.CLAIM_UNMARKED not in self.mistakes:
            world = world.with_claim(slot, claim._replace(status=REVOKED))
        return [(world, ("end", branch, known, todo, claim.branch))]

    def end(self, world: World, branch: int, known: Known, todo: Todo, of: int) -> list[Step]:
        """Move the head of the branch of a claim, and look for the commit there."""
        slot, *rest = todo
        state = world.present(of)
        author = world.claims[slot].author
        if state is not None:
            if state.has(author):
                return [(world, ("withdraw", known, done("repeated")))]
            if not state.ended and Mistake.CLAIM_UNFENCED not in self.mistakes:
                world = world.with_branch(of, state._replace(version=state.version + 1))
        known = known._replace(dead=tuple(sorted((*known.dead, slot))))
        return [(world, self.ending(branch, known, tuple(rest)))]

    def capture(self, world: World, branch: int, known: Known) -> list[Step]:
        if (state := world.live(branch)) is None:
            return [(world, ("withdraw", known, done("not found")))]
        return [(world, self.captured(world, branch, known, state.version, state.epoch))]

    def captured(self, world: World, branch: int, known: Known, version: int, epoch: int) -> Local:
        holds = known.own != NONE and (
            world.claims[known.own].epoch == epoch or Mistake.CLAIM_ACROSS_EPOCHS in self.mistakes
        )
        if holds:
            return ("check", branch, known, version, epoch)
        if Mistake.CLAIM_AFTER_LISTING in self.mistakes:
            return ("check", branch, known._replace(own=NONE), version, epoch)
        return ("announce", branch, known, version, epoch)

    def announce(
        self, world: World, branch: int, known: Known, version: int, epoch: int
    ) -> list[Step]:
        """Make a claim; an older one is given up."""
        if known.used == self.claims:
            return [(world, ("withdraw", known, done("gave up")))]
        if known.own != NONE:
            world = self.without(world, known.own)
        slot = self.first_claim + known.used
        world = world.with_claim(slot, Claim(self.seat, OPEN, branch, epoch))
        known = known._replace(own=slot, used=known.used + 1)
        if Mistake.CLAIM_AFTER_LISTING in self.mistakes:
            return [(world, ("publish", branch, version, known))]
        return [(world, ("check", branch, known, version, epoch))]

    def check(
        self, world: World, branch: int, known: Known, version: int, epoch: int
    ) -> list[Step]:
        """List the claims: this one has to be there, and no other that may be alive."""
        if others := self.others(world, known):
            return [(world, ("revoke", branch, known, others))]
        if known.own == NONE:
            return [(world, ("announce", branch, known, version, epoch))]
        if world.claims[known.own].status != OPEN:
            return [(world, ("announce", branch, known, version, epoch))]
        if Mistake.CLAIMS_LISTED_FIRST in self.mistakes:
            return [(world, ("capture_late", branch, known))]
        return [(world, ("publish", branch, version, known))]

    def capture_late(self, world: World, branch: int, known: Known) -> list[Step]:
        if (state := world.live(branch)) is None:
            return [(world, ("withdraw", known, done("not found")))]
        return [(world, ("publish", branch, state.version, known))]

    def publish(self, world: World, branch: int, version: int, known: Known) -> list[Step]:
        state = world.branches[branch]
        assert state is not None
        commit = Commit(self.seat, state.head.needs)
        if after := self.swap(world, branch, version, commit):
            return [(after, done("acknowledged", branch))]
        again: Local = ("capture", branch, known)
        return [self.lost(world, branch, version, again)]

    def withdraw(self, world: World, known: Known, outcome: Local) -> list[Step]:
        return [(self.without(world, known.own), outcome)]

    def without(self, world: World, slot: int) -> World:
        if slot == NONE or not world.claims[slot].is_there:
            return world
        return world.with_claim(slot, world.claims[slot]._replace(status=GONE))
