"""The people of the model: each a list of steps, each step at most one operation on storage.

A step is a method: it takes the world and what the actor knows, and returns what may come of it.
Reading, checking and publishing again until the publish succeeds is one step where nothing that
was read before the publish survives a failure: only the attempt that succeeds has an effect.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from tests.protocol.world import (
    DATASETS,
    NOBODY,
    OPEN,
    REVOKED,
    SPARE,
    WITHDRAWN,
    Commit,
    Local,
    Mistake,
    Step,
    Violation,
    World,
    done,
)


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Somebody at work. ``seat`` tells actors apart and gives them ids of their own."""

    seat: int = 0
    mistakes: Collection[Mistake] = ()

    first_intent: int = 0
    first_branch: int = 0
    first_claim: int = 0

    intents: ClassVar[int] = 0
    """How many intents it may write."""
    branches: ClassVar[int] = 0
    """How many branch ids it may use."""
    claims: ClassVar[int] = 0
    """How many claims to the run id it may make."""

    @property
    def begin(self) -> Local:
        raise NotImplementedError

    def steps(self, world: World, local: Local) -> list[Step]:
        found: list[Step] = getattr(self, local[0])(world, *local[1:])
        return found

    def is_settled(self, world: World, local: Local) -> bool:
        """Whether the next step's outcome is fixed and changes nothing for others.

        Versions only grow: a publish on a version that has passed is lost, whenever it is tried.
        """
        if local[0] != "publish" or Mistake.ACKNOWLEDGED_UNPROVEN in self.mistakes:
            return False
        state = world.branches[local[1]]
        return state is not None and state.version != local[2]

    def file(self, attempt: int) -> int:
        assert attempt < SPARE
        return 1 << DATASETS + self.seat * SPARE + attempt

    def swap(self, world: World, branch: int, version: int, commit: Commit) -> World | None:
        """The compare-and-swap on a branch; None when another has published since."""
        state = world.branches[branch]
        assert state is not None
        return world.published(branch, commit) if state.version == version else None

    def lost(self, world: World, branch: int, version: int, again: Local) -> Step:
        """A publish without effect: a conflict, or a landing where versions have been removed."""
        state = world.branches[branch]
        assert state is not None
        if Mistake.ACKNOWLEDGED_UNPROVEN in self.mistakes and version + 1 < state.removed:
            return world, done("acknowledged", branch)
        return world, again


@dataclass(frozen=True, kw_only=True)
class Writer(Actor):
    """A request-sized write: adds a file to the head's, or replaces them by it."""

    name: int
    replaces: bool = False

    @property
    def begin(self) -> Local:
        return ("resolve",)

    def resolve(self, world: World) -> list[Step]:
        branch = world.names[self.name]
        if branch == NOBODY:
            return [(world, done("not found"))]
        return [(world, ("capture", branch))]

    def capture(self, world: World, branch: int) -> list[Step]:
        if (state := world.live(branch)) is None:
            return [(world, done("not found"))]
        return [(world, ("stage", branch, state.version, state.epoch, 0))]

    def stage(self, world: World, branch: int, version: int, epoch: int, n: int) -> list[Step]:
        world = world._replace(files=world.files | self.file(n))
        return [(world, ("publish", branch, version, epoch, n))]

    def publish(self, world: World, branch: int, version: int, epoch: int, n: int) -> list[Step]:
        state = world.branches[branch]
        assert state is not None
        kept = 0 if self.replaces else state.head.needs
        commit = Commit(self.seat, kept | self.file(n))
        if after := self.swap(world, branch, version, commit):
            return [(after, done("acknowledged", branch))]
        return [self.lost(world, branch, version, ("recapture", branch, epoch, n))]

    def recapture(self, world: World, branch: int, epoch: int, n: int) -> list[Step]:
        captured = branch
        if Mistake.REBASED_BY_NAME in self.mistakes:
            branch = world.names[self.name]
        if branch == NOBODY or (state := world.live(branch)) is None:
            return [(world, done("not found"))]
        if state.epoch == epoch or Mistake.FILES_ACROSS_EPOCHS in self.mistakes:
            if branch != captured:
                raise Violation("a commit goes to another branch than the one captured")
            return [(world, ("publish", branch, state.version, epoch, n))]
        return [(world, ("stage", branch, state.version, state.epoch, n + 1))]


@dataclass(frozen=True, kw_only=True)
class LongWriter(Actor):
    """A load that shelters its files by an intent and publishes them under any epoch."""

    name: int
    replaces: bool = False
    intents: ClassVar[int] = 2

    @property
    def begin(self) -> Local:
        return ("resolve",)

    def resolve(self, world: World) -> list[Step]:
        branch = world.names[self.name]
        if branch == NOBODY:
            return [(world, done("not found"))]
        return [(world, ("announce", branch, 0))]

    def announce(self, world: World, branch: int, n: int) -> list[Step]:
        world = world.with_intent(self.first_intent + n, OPEN)
        return [(world, ("stage", branch, n))]

    def stage(self, world: World, branch: int, n: int) -> list[Step]:
        world = world._replace(files=world.files | self.file(n))
        if Mistake.INTENT_BEFORE_HEAD in self.mistakes:
            return [(world, ("look", branch, NOBODY, n))]
        return [(world, ("capture", branch, n))]

    def capture(self, world: World, branch: int, n: int) -> list[Step]:
        if (state := world.live(branch)) is None:
            return [(world, ("withdraw", n, done("not found")))]
        if {Mistake.INTENT_BEFORE_HEAD, Mistake.INTENT_UNREAD} & {*self.mistakes}:
            return [(world, ("publish", branch, state.version, n))]
        return [(world, ("look", branch, state.version, n))]

    def look(self, world: World, branch: int, version: int, n: int) -> list[Step]:
        if world.intents[self.first_intent + n] == REVOKED:
            over = done("gave up") if n + 1 == self.intents else ("announce", branch, n + 1)
            return [(world, over)]
        if Mistake.INTENT_BEFORE_HEAD in self.mistakes:
            return [(world, ("capture", branch, n))]
        return [(world, ("publish", branch, version, n))]

    def publish(self, world: World, branch: int, version: int, n: int) -> list[Step]:
        state = world.branches[branch]
        assert state is not None
        kept = 0 if self.replaces else state.head.needs
        commit = Commit(self.seat, kept | self.file(n))
        if after := self.swap(world, branch, version, commit):
            return [(after, ("withdraw", n, done("acknowledged", branch)))]
        again: Local = ("capture", branch, n)
        if Mistake.INTENT_BEFORE_HEAD in self.mistakes:
            again = ("look", branch, NOBODY, n)
        return [self.lost(world, branch, version, again)]

    def withdraw(self, world: World, n: int, outcome: Local) -> list[Step]:
        return [(world.with_intent(self.first_intent + n, WITHDRAWN), outcome)]
