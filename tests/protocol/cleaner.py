"""The collector of the model, which needs no clock and never blocks anybody.

It keeps one commit of each branch. A run may look at the branches a last time before it deletes
(``looks_last``): that can only make it keep more, so what holds without the look holds with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests.protocol.actors import Actor
from tests.protocol.world import (
    DATASETS,
    GONE,
    OPEN,
    REVOKED,
    Branch,
    Local,
    Mistake,
    Step,
    World,
    done,
)


class Run(NamedTuple):
    """What a run knows: files it may delete, files it keeps, the oldest commits it has set."""

    listed: int = 0
    kept: int = 0
    marks: tuple[tuple[int, int], ...] = ()
    claims: tuple[int, ...] = ()
    """Claims to the run id that it may delete."""
    seen: tuple[int, ...] = ()
    """Whose commits it has met."""

    def seeing(self, state: Branch) -> Run:
        """Keep what a branch retains, and the claims of the commits that it has."""
        authors = {commit.author for commit in state.line}
        return self.keeping(retained(state))._replace(seen=tuple(sorted({*self.seen, *authors})))

    def keeping(self, files: int) -> Run:
        return self._replace(kept=self.kept | files)

    def marking(self, branch: int, oldest: int) -> Run:
        return self._replace(marks=tuple(sorted((*self.marks, (branch, oldest)))))

    def mark(self, branch: int) -> int | None:
        return next((oldest for marked, oldest in self.marks if marked == branch), None)


Todo = tuple[int, ...]
"""The branches that are left to fence; any of them may be the next."""


@dataclass(frozen=True, kw_only=True)
class Cleaner(Actor):
    """One run of cleanup.

    ``shelters`` are the files that each intent speaks for. Clocks are arbitrary, so a run may
    believe of any open intent that it has expired, or that it has not.
    """

    shelters: tuple[int, ...] = ()
    always_revokes: bool = False
    looks_last: bool = False

    @property
    def begin(self) -> Local:
        if Mistake.LIST_LAST in self.mistakes:
            return self.judging(Run(), 0)
        return ("list_files",)

    def list_files(self, world: World) -> list[Step]:
        claims = () if Mistake.CLAIMS_LISTED_LAST in self.mistakes else claims_in(world)
        return [(world, self.judging(Run(listed=world.files, claims=claims), 0))]

    def judging(self, run: Run, slot: int) -> Local:
        if slot < len(self.shelters):
            return ("judge", run, slot)
        if Mistake.NAMES_FIRST in self.mistakes:
            return ("fence_names_first", run)
        return ("read_names", run)

    def judge(self, world: World, run: Run, slot: int) -> list[Step]:
        """Revoke an intent that looks expired, or remember it."""
        if world.intents[slot] != OPEN:
            return [(world, self.judging(run, slot + 1))]
        revoked = (world.with_intent(slot, REVOKED), self.judging(run, slot + 1))
        if self.always_revokes:
            return [revoked]
        if Mistake.INTENTS_AT_END not in self.mistakes:
            run = run.keeping(self.shelters[slot])
        return [revoked, (world, self.judging(run, slot + 1))]

    def fence_names_first(self, world: World, run: Run) -> list[Step]:
        return self.read_names(world._replace(names_epoch=world.names_epoch + 1), run)

    def read_names(self, world: World, run: Run) -> list[Step]:
        return [(world, fencing(run, world.named))]

    def fence(self, world: World, run: Run, todo: Todo) -> list[Step]:
        """Publish an epoch and the oldest commit on a branch, or finish its deletion."""
        found: list[Step] = []
        for branch, rest in picks(todo):
            if (state := world.live(branch)) is None:
                found.append((world.without_names_of(branch), fencing(run, rest)))
                continue
            oldest = len(state.line) - 1
            state = moved_on(state)._replace(oldest=oldest)
            known = run.keeping(1 << branch).seeing(state).marking(branch, oldest)
            found.append((world.with_branch(branch, state), fencing(known, rest)))
        return found

    def fence_names(self, world: World, run: Run) -> list[Step]:
        """Publish an epoch on the names; the names in that publish are those to fence again."""
        if not {Mistake.NAMES_UNFENCED, Mistake.NAMES_FIRST} & {*self.mistakes}:
            world = world._replace(names_epoch=world.names_epoch + 1)
        if Mistake.NAMES_READ_LATER in self.mistakes:
            return [(world, ("read_names_again", run))]
        return self.read_names_again(world, run)

    def read_names_again(self, world: World, run: Run) -> list[Step]:
        todo = world.named
        if Mistake.LATE_BRANCHES_UNSEEN in self.mistakes:
            todo = tuple(branch for branch in todo if run.mark(branch) is not None)
        if Mistake.ONE_FENCE in self.mistakes:
            todo = tuple(branch for branch in todo if run.mark(branch) is None)
        return [(world, self.fencing_again(run, todo))]

    def fencing_again(self, run: Run, todo: Todo) -> Local:
        if todo:
            return ("fence_again", run, todo)
        if Mistake.LIST_LAST in self.mistakes:
            return ("list_last", run)
        if Mistake.PINS_AT_END in self.mistakes:
            run = run._replace(kept=0)
        if Mistake.INTENTS_AT_END in self.mistakes:
            return ("read_intents", run)
        return self.looking_last(run)

    def fence_again(self, world: World, run: Run, todo: Todo) -> list[Step]:
        """Publish the epoch once more on a branch, and keep what it retains by then.

        What was published since the first fence is kept even if the branch has ended. If another
        run has dropped any of it, or has removed the dataset, nobody can say what it was, and
        whoever read it may still publish it elsewhere: this run deletes nothing.
        """
        found: list[Step] = []
        for branch, rest in picks(todo):
            state = world.present(branch)
            mark = run.mark(branch)
            if state is None:
                ignored = Mistake.VANISHED_IGNORED in self.mistakes
                then = self.fencing_again(run, rest) if ignored else done("gave way")
                found.append((world, then))
            elif state.oldest != (mark or 0) and Mistake.DROPS_IGNORED not in self.mistakes:
                found.append((world, done("gave way")))
            elif state.ended:
                known = run if Mistake.ENDED_FORGOTTEN in self.mistakes else run.seeing(state)
                then = self.fencing_again(known, rest)
                found.append((world.without_names_of(branch), then))
            elif Mistake.FENCE_UNPROVEN in self.mistakes:
                known = run.keeping(1 << branch).seeing(state)
                found.append((world, ("trust", known, rest, branch, state.version)))
            else:
                then = self.fencing_again(run.keeping(1 << branch).seeing(state), rest)
                state = moved_on(state)
                if mark is None:
                    state = state._replace(oldest=len(state.line) - 1)
                found.append((world.with_branch(branch, state), then))
        return found

    def trust(self, world: World, run: Run, rest: Todo, branch: int, version: int) -> list[Step]:
        """The publish of a second fence that looks for a conflict and for nothing else."""
        state = world.present(branch)
        if state is not None and version + 1 < state.removed:
            return [(world, self.fencing_again(run, rest))]
        if state is None or version != state.version:
            return [(world, ("fence_again", run, tuple(sorted((*rest, branch)))))]
        then = self.fencing_again(run, rest)
        return [(world.with_branch(branch, moved_on(state)), then)]

    def list_last(self, world: World, run: Run) -> list[Step]:
        return [(world, self.looking_last(run._replace(listed=world.files)))]

    def read_intents(self, world: World, run: Run) -> list[Step]:
        for slot, files in enumerate(self.shelters):
            if world.intents[slot] == OPEN:
                run = run.keeping(files)
        return [(world, self.looking_last(run))]

    def looking_last(self, run: Run) -> Local:
        if Mistake.CLAIMS_LISTED_LAST in self.mistakes:
            return ("list_claims", run)
        if self.looks_last:
            return ("read_names_last", run)
        return deleting(run)

    def list_claims(self, world: World, run: Run) -> list[Step]:
        return [(world, deleting(run._replace(claims=claims_in(world))))]

    def read_names_last(self, world: World, run: Run) -> list[Step]:
        return [(world, ("look_last", run, world.named))]

    def look_last(self, world: World, run: Run, todo: Todo) -> list[Step]:
        branch, *rest = todo
        state = world.live(branch)
        run = run.keeping(1 << branch)
        run = run.seeing(state) if state else run
        then = ("look_last", run, (*rest,)) if rest else deleting(run)
        return [(world, then)]

    def delete(
        self, world: World, garbage: int, claims: tuple[int, ...], seen: tuple[int, ...]
    ) -> list[Step]:
        """Delete claims and data files. Nothing becomes possible by a part of them being left."""
        data = garbage >> DATASETS << DATASETS
        for slot in claims:
            claim = world.claims[slot]
            if claim.author not in seen and claim.is_there:
                world = world.with_claim(slot, claim._replace(status=GONE))
        world = world._replace(files=world.files & ~data)
        if Mistake.END_MARK_COLLECTED in self.mistakes:
            return [(world, ("delete_end_marks", garbage))]
        return [(world, ("delete_datasets", garbage))]

    def delete_end_marks(self, world: World, garbage: int) -> list[Step]:
        """Delete the newest version of branches that are gone, before what it has ended."""
        for branch, state in enumerate(world.branches):
            if garbage >> branch & 1 and state is not None and state.ended:
                before = state._replace(ended=False, version=state.version - 1)
                world = world.with_branch(branch, before)
        return [(world, ("delete_datasets", garbage))]

    def delete_datasets(self, world: World, garbage: int) -> list[Step]:
        """Delete the datasets of branches without a name, and old versions of the others."""
        world = world._replace(files=world.files & ~garbage)
        for branch in world.named:
            if (state := world.live(branch)) is not None:
                world = world.with_branch(branch, state._replace(removed=state.version))
        return [(world, done("cleaned"))]


def fencing(run: Run, todo: Todo) -> Local:
    return ("fence", run, todo) if todo else ("fence_names", run)


def deleting(run: Run) -> Local:
    return ("delete", run.listed & ~run.kept, run.claims, run.seen if run.claims else ())


def claims_in(world: World) -> tuple[int, ...]:
    return tuple(slot for slot, claim in enumerate(world.claims) if claim.is_there)


def picks(todo: Todo) -> list[tuple[int, Todo]]:
    """Each of some branches with the others."""
    return [(branch, tuple(other for other in todo if other != branch)) for branch in todo]


def moved_on(state: Branch) -> Branch:
    """The branch after an epoch has been published on it."""
    return state._replace(epoch=state.epoch + 1, version=state.version + 1)


def retained(state: Branch) -> int:
    """The files of the commits a branch retains."""
    files = 0
    for commit in state.line[state.oldest :]:
        files |= commit.needs
    return files
