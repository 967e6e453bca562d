"""Names in the model: making a branch, a load that makes its own, deleting and renaming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.protocol.actors import Actor, Writer
from tests.protocol.world import NOBODY, SPARE, Branch, Commit, Local, Mistake, Step, World, done


@dataclass(frozen=True, kw_only=True)
class Brancher(Actor):
    """Makes a branch (or a tag) of the source's head, or of an older commit of it."""

    source: int
    name: int
    wanted: int | None = None
    branches: ClassVar[int] = SPARE

    @property
    def begin(self) -> Local:
        return ("read_names", 0)

    def read_names(self, world: World, n: int, *load: int) -> list[Step]:
        source = world.names[self.source]
        if source == NOBODY:
            return [(world, done("not found"))]
        return [(world, ("read_source", world.names_epoch, source, n, *load))]

    def read_source(self, world: World, epoch: int, source: int, n: int, *load: int) -> list[Step]:
        if (state := world.live(source)) is None:
            return [(world, done("not found"))]
        commit: Commit | None = state.head
        if self.wanted is not None:
            commit = state.retains(self.wanted)
            if Mistake.RETENTION_UNREAD in self.mistakes:
                commit = next(c for c in state.line if c.author == self.wanted)
        if commit is None:
            return [(world, done("refused"))]
        if Mistake.NAME_FIRST in self.mistakes:
            return [(world, ("enter", epoch, n, commit, *load))]
        return [(world, ("create", epoch, n, commit, *load))]

    def create(self, world: World, epoch: int, n: int, commit: Commit, *load: int) -> list[Step]:
        branch = self.first_branch + n
        assert n < self.branches
        world = world._replace(files=world.files | 1 << branch)
        world = world.with_branch(branch, Branch((commit,), epoch=epoch))
        if Mistake.NAME_FIRST in self.mistakes:
            return [(world, done("created", branch))]
        return [(world, ("enter", epoch, n, *load))]

    def enter(self, world: World, epoch: int, n: int, *load: int) -> list[Step]:
        """Publish the name. An end mark stays, so the holder's may be read before the publish."""
        holder = world.names[self.name]
        if world.names_epoch != epoch and Mistake.DATASET_REUSED not in self.mistakes:
            return [(world, ("read_names", n + 1, *load))]
        if holder != NOBODY and world.live(holder) is not None:
            return [(world, done("taken"))]
        world = world.with_name(self.name, self.first_branch + n)
        if Mistake.NAME_FIRST in self.mistakes:
            return [(world, ("create", epoch, n, *load))]
        return [(world, self.entered(epoch, n, *load))]

    def entered(self, epoch: int, n: int, *load: int) -> Local:
        del epoch, load
        return done("created", self.first_branch + n)


@dataclass(frozen=True, kw_only=True)
class ForkingLoad(Brancher):
    """A load that stages against the source and then makes the branch it publishes on."""

    @property
    def begin(self) -> Local:
        return ("open",)

    def open(self, world: World) -> list[Step]:
        source = world.names[self.source]
        if source == NOBODY:
            return [(world, done("not found"))]
        return [(world, ("capture_source", world.names_epoch, source))]

    def capture_source(self, world: World, epoch: int, source: int) -> list[Step]:
        if world.live(source) is None:
            return [(world, done("not found"))]
        return [(world, ("stage_first", epoch))]

    def stage_first(self, world: World, epoch: int) -> list[Step]:
        world = world._replace(files=world.files | self.file(0))
        return [(world, ("read_names", 0, epoch))]

    def entered(self, epoch: int, n: int, *load: int) -> Local:
        branch = self.first_branch + n
        if load[0] == epoch or Mistake.FORK_UNCOMPARED in self.mistakes:
            return ("publish", branch, 0, epoch, 0)
        return ("recapture", branch, NOBODY, 0)

    def as_writer(self) -> Writer:
        return Writer(seat=self.seat, mistakes=self.mistakes, name=self.name)

    def publish(self, world: World, branch: int, version: int, epoch: int, n: int) -> list[Step]:
        return self.as_writer().publish(world, branch, version, epoch, n)

    def recapture(self, world: World, branch: int, epoch: int, n: int) -> list[Step]:
        return self.as_writer().recapture(world, branch, epoch, n)

    def stage(self, world: World, branch: int, version: int, epoch: int, n: int) -> list[Step]:
        return self.as_writer().stage(world, branch, version, epoch, n)


@dataclass(frozen=True, kw_only=True)
class Deleter(Actor):
    """Ends the branch that a name means, then removes the name."""

    name: int

    @property
    def begin(self) -> Local:
        return ("resolve",)

    def resolve(self, world: World) -> list[Step]:
        branch = world.names[self.name]
        if branch == NOBODY:
            return [(world, done("not found"))]
        if Mistake.NO_END_MARK in self.mistakes:
            return [(world, ("remove_name", branch))]
        if Mistake.END_UNPROVEN in self.mistakes:
            return [(world, ("capture", branch))]
        return [(world, ("end", branch))]

    def capture(self, world: World, branch: int) -> list[Step]:
        if (state := world.live(branch)) is None:
            return [(world, done("not found"))]
        return [(world, ("trust", branch, state.version))]

    def trust(self, world: World, branch: int, version: int) -> list[Step]:
        """The publish of an end mark that looks for a conflict and for nothing else."""
        state = world.live(branch)
        if state is not None and version + 1 < state.removed:
            return [(world, ("remove_name", branch))]
        if state is not None and version != state.version:
            return [(world, ("capture", branch))]
        return self.end(world, branch)

    def end(self, world: World, branch: int) -> list[Step]:
        if (state := world.live(branch)) is None:
            return [(world, done("not found"))]
        ended = state._replace(ended=True, version=state.version + 1)
        return [(world.with_branch(branch, ended), ("remove_name", branch))]

    def remove_name(self, world: World, branch: int) -> list[Step]:
        if world.names[self.name] == branch or Mistake.NAME_REMOVED_BLINDLY in self.mistakes:
            world = world.with_name(self.name, NOBODY)
        state = world.branches[branch]
        assert state is not None
        world = world.with_branch(branch, state._replace(buried=True))
        return [(world, done("deleted", branch))]


@dataclass(frozen=True, kw_only=True)
class Renamer(Actor):
    """Gives a branch another name that is free."""

    old: int
    new: int

    @property
    def begin(self) -> Local:
        return ("rename",)

    def rename(self, world: World) -> list[Step]:
        branch = world.names[self.old]
        if branch == NOBODY or world.names[self.new] != NOBODY:
            return [(world, done("not found"))]
        return [(world.with_name(self.old, NOBODY).with_name(self.new, branch), done("renamed"))]
