"""Claims to a run id: of all commits that carry one id, on all branches, one is published.

Owns finding the commit that has an id, and the right to publish one. A claim is an object of its
own below `__runs/`, under a name that is made once and names the commit, so that finding an id
costs one listing and no look at branches or history. It is made at the last moment, when the
commit is ready. Never publishes anything itself.

Whoever wants to publish on a head

1. has captured that head, and then made a claim, which holds for heads of that epoch alone;
2. then lists the claims to the id: its own has to be there and not be revoked, and of every
   other it has to be proven that it is dead. After a lost race both are done again;
3. then publishes, on that head or not at all.

A claim of somebody else is dead when it was revoked by a mark beside it, the head of its branch
was moved after that, and the commit is not there then. A claim whose commit is there has the id.

Why two commits cannot have one id. Say that V and W publish, and that W made its claim before the
last listing of V (otherwise V made its own before the last listing of W: the two change places).
If that listing shows the claim of W, V has put a mark on it, moved the head and not found the
commit. So W has published later than that, on a head that it captured later; then it has listed
the claims after that, has found the mark, and has not published. If the listing does not show it,
somebody has removed it: W itself, which has then given it up, or a cleanup that had listed it
before. That cleanup began an epoch on the branch of W after its listing: if W had published
before that, the commit was known and the claim was kept; after that, its claim does not hold for
any head.

So a claim blocks nobody: a writer that died between claim and publish is proven dead by the next
one that wants the id, and one that was stopped and wakes up loses. No clock decides: how long a
claim is left alone first is a courtesy to a writer that is alive. Of two writers that meet, the
one with the older claim goes first. tests/protocol explores all of it in the small.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from ulid import ULID

from omnigraph.errors import BranchNotFound, Conflict, NotFound, StorageError, quoted
from omnigraph.manifest.entries import Commit, Head
from omnigraph.manifest.publish_request import ExactHead
from omnigraph.manifest.snapshot import BranchState, find_commit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.run_ids import REVOKED, Claim, ClaimName, RunId, parse_claim

COURTESY = 1.0
"""So many seconds a claim is left alone whose commit is not there yet."""
POLL = 0.02
ANNOUNCEMENTS = 3
"""So often a claim is made on one head when others revoke it at once."""


class RunContested(Exception):
    """Somebody else has a claim to the run id, and what became of it is not known yet."""


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The commit that has a run id, and what its writer was told beside it."""

    commit: Commit
    branch_created: bool
    outcome: Mapping[str, Any]


@dataclass(slots=True)
class RunClaims:
    """The claims to one run id, as one writer sees them."""

    manifest: Manifest
    run: RunId
    _held: Claim | None = None
    _own: set[str] = field(default_factory=set)
    _dead: set[str] = field(default_factory=set)

    @property
    def _objects(self) -> ControlObjects:
        return self.manifest.refs.objects

    # -- finding ---------------------------------------------------------------------

    def first(self) -> FirstRun | None:
        """What was done under the id; one request when nobody has used it.

        Conflict if that was another request. After None, no claim that anybody had made by then
        comes to anything any more.
        """
        listed = self._listed()
        claims = [one for one in map(self._read, sorted(self._unknown(listed))) if one is not None]
        for claim in claims:
            commit = self._commit_of(claim)
            if commit is not None:
                return self._told(claim, commit)
        for claim in claims:
            commit = self._end(claim, is_revoked=self._mark(claim) in listed)
            if commit is not None:
                return self._told(claim, commit)
            self._dead.add(self._name(claim))
        return None

    def _told(self, claim: Claim, commit: Commit) -> FirstRun:
        if claim.digest != self.run.digest:
            raise Conflict(
                f"run id '{quoted(self.run.name)}' was used for another request, commit "
                f"{commit.id} on branch {claim.branch}: nothing was changed; a new request needs "
                "an id of its own",
                details={
                    "run_id": self.run.name,
                    "commit_id": commit.id,
                    "branch": claim.branch,
                },
            )
        return FirstRun(commit, claim.branch_created, claim.outcome)

    def _listed(self) -> set[str]:
        return set(self._objects.list(self.run.directory))

    def _unknown(self, listed: set[str]) -> Iterator[str]:
        """The claims of others of which it is not known that they are dead."""
        for name in listed - self._own - self._dead:
            found = ClaimName.parse(name)
            if found is not None and not found.is_mark:
                yield name

    def _read(self, name: str) -> Claim | None:
        data = self._objects.read(name)
        # Without one, its owner has given it up since the listing.
        return None if data is None else parse_claim(name, data)

    def _commit_of(self, claim: Claim, shown: BranchState | None = None) -> Commit | None:
        """The commit of a claim, if it is published; as of a state that was read, or now."""
        try:
            view = shown or self.manifest.view_by_id(claim.branch_id)
            return find_commit(view, claim.commit_id)
        except BranchNotFound:
            pass
        except StorageError as error:
            # History was collected while it was read, or the rest of a deleted branch.
            if error.kind != "not_found":
                raise
        try:
            # It may have been merged before the branch was deleted.
            return self.manifest.find_commit(claim.commit_id)
        except NotFound:
            return None

    # -- ending ----------------------------------------------------------------------

    def _end(self, claim: Claim, *, is_revoked: bool) -> Commit | None:
        """The commit of a claim; None when there is none and there never will be."""
        if not is_revoked:
            commit = self._await(claim)
            if commit is not None:
                return commit
            self._objects.create(self._mark(claim), b"")
            reach("run_revoked", claim.branch)
        try:
            moved = self.manifest.mark(claim.branch_id, _as_it_is)
        except BranchNotFound:
            moved = None
        reach("run_fenced", claim.branch)
        return self._commit_of(claim, moved)

    def _await(self, claim: Claim) -> Commit | None:
        """Give a writer that may be alive the time to publish, if its turn is before this one's."""
        if self._held is not None and self._held.token < claim.token:
            return None
        begun = time.monotonic()
        age = time.time() - ULID.from_str(claim.token).timestamp
        while age < COURTESY and time.monotonic() - begun < COURTESY:
            _pause(POLL)
            age += POLL
            commit = self._commit_of(claim)
            if commit is not None or self._objects.read(self._name(claim)) is None:
                return commit
        return None

    # -- claiming --------------------------------------------------------------------

    def hold(
        self,
        commit_id: str,
        head: ExactHead,
        branch: str,
        outcome: Mapping[str, Any],
        *,
        branch_created: bool,
    ) -> None:
        """Have the right to publish a commit on a head that was captured before.

        RunContested when there are claims of others to be ended first.
        """
        for _ in range(ANNOUNCEMENTS):
            claim = Claim.mint(
                self.run,
                commit_id,
                branch=branch,
                branch_id=head.branch_id,
                epoch=head.epoch,
                branch_created=branch_created,
                outcome=outcome,
            )
            if self._held is None or not self._held.says_the_same(claim):
                self._announce(claim)
                self._held = claim
            listed = self._listed()
            if any(self._unknown(listed)):
                raise RunContested
            if self._name(self._held) in listed and self._mark(self._held) not in listed:
                return
            self.withdraw()
        raise RunContested

    def _announce(self, claim: Claim) -> None:
        self.withdraw()
        self._own.add(self._name(claim))
        data = msgspec.json.encode(claim)
        if not self._objects.claim(self._name(claim), data):
            raise StorageError(f"{self._name(claim)} was written by somebody else")
        reach("run_claimed", claim.branch)

    def withdraw(self) -> None:
        """Give the claim up: nothing is published under it any more. So the id is free."""
        claim, self._held = self._held, None
        if claim is None:
            return
        try:
            self._objects.delete(self._name(claim))
        except StorageError:
            return  # the next one that wants the id finds it dead

    def _name(self, claim: Claim) -> str:
        return f"{self.run.directory}/{claim.commit_id}.{claim.token}.json"

    def _mark(self, claim: Claim) -> str:
        return f"{self.run.directory}/{claim.commit_id}.{claim.token}.{REVOKED}"


def _as_it_is(view: BranchState) -> Head | None:
    """Move the head of a branch, and change nothing; one that has ended stays where it is."""
    return None if view.state.head.ended else view.state.head


def _pause(seconds: float) -> None:
    time.sleep(seconds)
