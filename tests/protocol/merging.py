"""Merges in the model: a commit on one branch that refers to files of a commit on another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tests.protocol.actors import Actor
from tests.protocol.world import (
    NOBODY,
    OPEN,
    REVOKED,
    WITHDRAWN,
    Commit,
    Local,
    Mistake,
    Step,
    World,
    done,
)


class Loan(NamedTuple):
    """What a merge knows: the branches, the target's epoch, the files it borrows, the attempt."""

    source: int
    target: int
    epoch: int = NOBODY
    files: int = 0
    n: int = 0


@dataclass(frozen=True, kw_only=True)
class Merger(Actor):
    """Merges a commit of the source, its head unless told, and refers to the source's files.

    With one branch as source and target it puts back what an older commit of it held.
    """

    source: int
    target: int
    wanted: int | None = None

    @property
    def begin(self) -> Local:
        return ("resolve",)

    def resolve(self, world: World) -> list[Step]:
        loan = Loan(world.names[self.source], world.names[self.target])
        if NOBODY in loan[:2]:
            return [(world, done("not found"))]
        return [(world, self.resolved(loan))]

    def resolved(self, loan: Loan) -> Local:
        if Mistake.SOURCE_FIRST in self.mistakes:
            return ("read_source", NOBODY, loan)
        return ("capture", loan)

    def capture(self, world: World, loan: Loan) -> list[Step]:
        if (state := world.live(loan.target)) is None:
            return [(world, done("not found"))]
        loan = loan._replace(epoch=state.epoch)
        then = "stage" if Mistake.SOURCE_FIRST in self.mistakes else "read_source"
        return [(world, (then, state.version, loan))]

    def read_source(self, world: World, version: int, loan: Loan) -> list[Step]:
        if (commit := self.lender(world, loan.source)) is None:
            return [(world, done("not found"))]
        loan = loan._replace(files=commit.needs)
        if Mistake.SOURCE_FIRST in self.mistakes:
            return [(world, ("capture", loan))]
        return [(world, ("stage", version, loan))]

    def lender(self, world: World, source: int) -> Commit | None:
        """The commit to merge, if the source is live and retains it."""
        if (state := world.live(source)) is None:
            return None
        return state.head if self.wanted is None else state.retains(self.wanted)

    def stage(self, world: World, version: int, loan: Loan) -> list[Step]:
        world = world._replace(files=world.files | self.file(loan.n))
        return [(world, ("publish", loan.target, version, loan))]

    def publish(self, world: World, target: int, version: int, loan: Loan) -> list[Step]:
        state = world.branches[target]
        assert state is not None
        commit = Commit(self.seat, state.head.needs | self.file(loan.n) | loan.files)
        if after := self.swap(world, target, version, commit):
            return [(after, done("acknowledged", target))]
        return [self.lost(world, target, version, ("recapture", loan))]

    def recapture(self, world: World, loan: Loan) -> list[Step]:
        if (state := world.live(loan.target)) is None:
            return [(world, done("not found"))]
        if state.epoch == loan.epoch:
            return [(world, ("publish", loan.target, state.version, loan))]
        again = loan._replace(epoch=state.epoch, n=loan.n + 1)
        if Mistake.SOURCE_READ_ONCE in self.mistakes:
            return [(world, ("stage", state.version, again))]
        return [(world, ("read_source", state.version, again._replace(files=0)))]


@dataclass(frozen=True, kw_only=True)
class LongMerger(Merger):
    """A merge whose own files are sheltered by an intent; what it borrows is not.

    Under a new epoch of the target it may keep its files, but it reads the source again.
    """

    intents: ClassVar[int] = 2

    def resolved(self, loan: Loan) -> Local:
        return ("announce", loan)

    def announce(self, world: World, loan: Loan) -> list[Step]:
        return [(world.with_intent(self.first_intent + loan.n, OPEN), ("capture", loan))]

    def stage(self, world: World, version: int, loan: Loan) -> list[Step]:
        world = world._replace(files=world.files | self.file(loan.n))
        return [(world, ("look", version, loan))]

    def look(self, world: World, version: int, loan: Loan) -> list[Step]:
        if world.intents[self.first_intent + loan.n] != REVOKED:
            return [(world, ("publish", loan.target, version, loan))]
        if loan.n + 1 == self.intents:
            return [(world, done("gave up"))]
        return [(world, ("announce", Loan(loan.source, loan.target, n=loan.n + 1)))]

    def publish(self, world: World, target: int, version: int, loan: Loan) -> list[Step]:
        [(after, then)] = super().publish(world, target, version, loan)
        return [(after, ("withdraw", loan.n, then) if then[0] == "done" else then)]

    def recapture(self, world: World, loan: Loan) -> list[Step]:
        if (state := world.live(loan.target)) is None:
            return [(world, done("not found"))]
        if state.epoch == loan.epoch or Mistake.SOURCE_READ_ONCE in self.mistakes:
            return [(world, ("look", state.version, loan))]
        return [(world, ("read_again", state.version, loan._replace(epoch=state.epoch)))]

    def read_again(self, world: World, version: int, loan: Loan) -> list[Step]:
        if (commit := self.lender(world, loan.source)) is None:
            return [(world, done("not found"))]
        return [(world, ("look", version, loan._replace(files=commit.needs)))]

    def withdraw(self, world: World, n: int, outcome: Local) -> list[Step]:
        return [(world.with_intent(self.first_intent + n, WITHDRAWN), outcome)]
