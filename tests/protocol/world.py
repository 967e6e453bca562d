"""What the storage holds in the model: files, branches, names and intents, and what must be true.

Every value is immutable and hashable. A set of files or of commits is an int used as a bit set;
ids belong to the actor that makes them, so that two orders of making them are one state.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

NOBODY = -1
MAIN, FEATURE, TOPIC = 0, 1, 2
ABSENT, OPEN, REVOKED, WITHDRAWN = range(4)
GONE = WITHDRAWN

DATASETS = 24
"""Bits below are the datasets of branches, by branch id; bits above are data files."""
SPARE = 6
"""Files, and branch ids, that one actor can use up."""


class Violation(Exception):
    """The protocol has broken a promise."""


class Mistake(Enum):
    """What an implementation could leave out or turn round; each loses something."""

    LIST_LAST = "files are listed after the epochs are published"
    NAMES_FIRST = "the epoch of the names is published before those of the branches"
    NAMES_UNFENCED = "the names have no epoch"
    LATE_BRANCHES_UNSEEN = "branches named during the run are not looked at"
    NAMES_READ_LATER = "the names to fence again are read after their epoch is published"
    INTENTS_AT_END = "an intent shelters files only if it is open at the end"
    PINS_AT_END = "a run keeps only what is retained at its end"
    ONE_FENCE = "branches fenced once are not fenced again"
    ENDED_FORGOTTEN = "a branch that ended between the fences is passed over"
    DROPS_IGNORED = "commits another run dropped between the fences are passed over"
    VANISHED_IGNORED = "a dataset another run removed between the fences is passed over"
    FENCE_UNPROVEN = "a fence is believed without a look at the newest state"
    INTENT_BEFORE_HEAD = "a long writer looks at its intent before it captures the head"
    INTENT_UNREAD = "a long writer does not look at its intent"
    FILES_ACROSS_EPOCHS = "a writer keeps its files when the epoch has moved"
    REBASED_BY_NAME = "a writer that lost a race goes on with whatever the name means"
    FORK_UNCOMPARED = "a load that makes its branch does not compare epochs"
    NO_END_MARK = "a deletion only removes the name"
    END_MARK_COLLECTED = "an end mark is deleted while an older version of its branch stays"
    END_UNPROVEN = "an end mark is believed without a look at the newest state"
    NAME_REMOVED_BLINDLY = "a deletion removes the name whatever it means by then"
    ACKNOWLEDGED_UNPROVEN = "a writer acknowledges without a look at the newest state"
    SOURCE_FIRST = "a merge reads the source before it captures the target"
    SOURCE_READ_ONCE = "a merge keeps what it read of the source when the epoch has moved"
    RETENTION_UNREAD = "a branch is made from a commit that need not be retained"
    DATASET_REUSED = "a branch made under an older epoch of the names is named all the same"
    NAME_FIRST = "a name is published before its branch's dataset exists"
    CLAIM_UNMARKED = "a claim to a run id is taken for dead without a mark"
    CLAIM_UNFENCED = "a claim to a run id is taken for dead while the head of its branch stays"
    CLAIM_ACROSS_EPOCHS = "a writer keeps its claim to a run id when the epoch has moved"
    CLAIMS_LISTED_FIRST = "claims to a run id are listed before the head is captured"
    CLAIM_AFTER_LISTING = "a claim to a run id is made after those of others were listed"
    CLAIMS_LISTED_LAST = "cleanup lists the claims to run ids after the epochs are published"


class Commit(NamedTuple):
    """A published commit: the bit of its author and the files it needs."""

    author: int
    needs: int


class Branch(NamedTuple):
    """The newest state of one branch id.

    Versions below ``removed`` are gone: a commit prepared on an older one meets no conflict there.
    ``buried`` is no part of storage: somebody was told that the branch is deleted.
    """

    line: tuple[Commit, ...]
    version: int = 0
    epoch: int = 0
    oldest: int = 0
    ended: bool = False
    removed: int = 0
    buried: bool = False

    @property
    def head(self) -> Commit:
        return self.line[-1]

    def has(self, author: int) -> bool:
        return any(commit.author == author for commit in self.line)

    def retains(self, author: int) -> Commit | None:
        return next((c for c in self.line[self.oldest :] if c.author == author), None)


class Claim(NamedTuple):
    """A claim to the run id: whose it is, and for heads of which epoch of which branch."""

    author: int
    status: int = ABSENT
    branch: int = NOBODY
    epoch: int = 0

    @property
    def is_there(self) -> bool:
        return self.status in {OPEN, REVOKED}


class World(NamedTuple):
    """Everything that actors share."""

    files: int
    branches: tuple[Branch | None, ...]
    names: tuple[int, ...]
    names_epoch: int = 0
    intents: tuple[int, ...] = ()
    claims: tuple[Claim, ...] = ()

    def live(self, branch: int) -> Branch | None:
        """The branch, unless it is deleted, or its dataset is gone."""
        found = self.branches[branch]
        return found if found and not found.ended and self.files >> branch & 1 else None

    def present(self, branch: int) -> Branch | None:
        """The branch, deleted or not, if its dataset is there."""
        return self.branches[branch] if self.files >> branch & 1 else None

    def with_branch(self, branch: int, state: Branch) -> World:
        branches = (*self.branches[:branch], state, *self.branches[branch + 1 :])
        return self._replace(branches=branches)

    def with_name(self, name: int, branch: int) -> World:
        return self._replace(names=(*self.names[:name], branch, *self.names[name + 1 :]))

    def with_intent(self, slot: int, status: int) -> World:
        return self._replace(intents=(*self.intents[:slot], status, *self.intents[slot + 1 :]))

    def with_claim(self, slot: int, claim: Claim) -> World:
        return self._replace(claims=(*self.claims[:slot], claim, *self.claims[slot + 1 :]))

    def without_names_of(self, branch: int) -> World:
        return self._replace(names=tuple(NOBODY if b == branch else b for b in self.names))

    def published(self, branch: int, commit: Commit) -> World:
        """The world after a commit has become the head of a branch."""
        state = self.branches[branch]
        if state is None or state.ended or state.buried:
            raise Violation("a commit has landed on a deleted branch")
        return self.with_branch(
            branch, state._replace(line=(*state.line, commit), version=state.version + 1)
        )

    @property
    def named(self) -> tuple[int, ...]:
        """The ids that names mean."""
        return tuple(sorted({branch for branch in self.names if branch != NOBODY}))

    @property
    def needed(self) -> int:
        """The files that named, live branches cannot do without."""
        needed = 0
        for branch in self.named:
            state = self.branches[branch]
            needed |= 1 << branch
            if state and not state.ended:
                for commit in state.line[state.oldest :]:
                    needed |= commit.needs
        return needed


Local = tuple[Any, ...]
"""Where one actor stands: its next step, and what that step needs to know."""
Step = tuple[World, Local]


def done(outcome: str, branch: int = NOBODY) -> Local:
    return ("done", outcome, branch)


def check_world(world: World) -> None:
    """What holds in every state, whoever is at work or has been killed."""
    lost = world.needed & ~world.files
    if lost & ((1 << DATASETS) - 1):
        raise Violation("a name leads to a branch whose dataset is gone")
    if lost:
        raise Violation("a retained commit of a live branch has lost a file")
    if world.claims:
        authors = {claim.author for claim in world.claims}
        runs = [
            commit
            for branch in world.named
            if (state := world.branches[branch]) and not state.ended
            for commit in state.line
            if commit.author in authors
        ]
        if len(runs) > 1:
            raise Violation("two commits have one run id")


def unneeded_claims(world: World) -> bool:
    """Whether claims are left whose commits no live branch has."""
    live = [world.live(branch) for branch in world.named]
    return any(
        claim.is_there and not any(state and state.has(claim.author) for state in live)
        for claim in world.claims
    )


def check_outcome(world: World, author: int, local: Local) -> None:
    """What holds for somebody who has been given an answer."""
    _, outcome, branch = local
    state = world.branches[branch] if branch != NOBODY else None
    if (
        outcome == "acknowledged"
        and state is not None
        and not any(commit.author == author for commit in state.line)
    ):
        raise Violation("an acknowledged commit is not on its branch")
    if outcome == "repeated":
        authors = {claim.author for claim in world.claims}
        lines = [state.line for state in world.branches if state]
        if not any(commit.author in authors for line in lines for commit in line):
            raise Violation("a run is said to be repeated that nobody has done")
    if outcome == "created" and branch not in world.names and not (state and state.ended):
        raise Violation("a branch that was made and not deleted has no name")
