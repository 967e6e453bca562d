"""Access: one graph as one actor may use it, and what a method of the façade needs.

Owns the one decision whether an actor may do something, asked before a method runs, and the way
from a branch or a commit to the snapshot and the types that a session sees. Never changes anything
by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, TypeVar, cast, runtime_checkable

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import BadRequest, PolicyDenied, StorageError
from omnigraph.graph.guard import guarded
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.branches import is_missing, normalise_branch
from omnigraph.manifest.entries import MAIN, SchemaContract
from omnigraph.manifest.limits import ReadLimits
from omnigraph.manifest.revisions import (
    commit_to_begin_at,
    exact_id,
    find_revision,
)
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.manifest.store import GraphHandle
from omnigraph.read.limited.view import limited_view

if TYPE_CHECKING:
    from omnigraph.write.publish.driver import Target

ATTEMPTS = 8
T = TypeVar("T")

Action = Literal[
    "read",
    "export",
    "change",
    "branch_create",
    "branch_delete",
    "branch_merge",
    "schema_apply",
    "invoke_query",
    "admin",
]
"""What can be allowed or denied."""


class Policy(Protocol):
    """Who may do what."""

    def authorize(self, actor: str, action: Action, branch: str | None, target: str | None) -> None:
        """Return if it is allowed; raise `PolicyDenied` if not.

        ``branch`` is where something is read or changed, ``target`` the branch that is made,
        deleted or merged into. Names are normalised; None is an action on no single branch.
        """


@runtime_checkable
class Limiting(Protocol):
    """A policy that also says what of a branch an actor sees."""

    def limits(self, actor: str, branch: str | None) -> ReadLimits | None:
        """What an actor may see of a branch, None for everything; without one, of any."""


@dataclass(frozen=True, slots=True)
class Access:
    """A handle, who uses it, and what that actor is bound by; without a policy by nothing."""

    handle: GraphHandle
    actor: str | None = None
    policy: Policy | None = None
    embedding: EmbedderConfig | None = None
    """Who makes vectors; without one the environment says."""

    def authorize(self, action: Action, branch: str | None, target: str | None) -> None:
        """Ask the policy; where there is one, nobody acts without a name."""
        if self.policy is None:
            return
        if self.actor is None:
            raise PolicyDenied(f"policy denied action '{action}': nobody is named as its actor")
        self.policy.authorize(self.actor, action, branch, target)

    # -- what is hidden --------------------------------------------------------------

    def limits(self, branch: str | None) -> ReadLimits | None:
        """What the actor may see of a branch, None for everything; without one, of any."""
        if self.policy is None or self.actor is None or not isinstance(self.policy, Limiting):
            return None
        return self.policy.limits(self.actor, branch)

    def limited(self, shown: Snapshot, branch: str) -> Snapshot:
        """What the actor sees of a snapshot, by the rules for a branch."""
        return shown if self.policy is None else limited_view(shown, self.limits(branch))

    def require_unlimited(self, action: Action, branch: str | None, target: str | None) -> None:
        """Refuse what shows or changes more than an actor sees."""
        if self.policy is None:
            return
        named = [one for one in (branch, target) if one is not None]
        branches: list[str | None] = [*named] or [None]
        if any(self.limits(one) is not None for one in branches):
            raise PolicyDenied(
                f"policy denied action '{action}' for actor '{self.actor}': types, properties or "
                "rows are hidden from this actor, and this cannot be done without them"
            )

    def require_same_limits(self, action: Action, branch: str, target: str) -> None:
        """Refuse what would show on one branch what is hidden on another."""
        if self.policy is not None and self.limits(branch) != self.limits(target):
            raise PolicyDenied(
                f"policy denied action '{action}' for actor '{self.actor}': branch '{target}' "
                f"shows this actor other things than branch '{branch}'"
            )

    # -- what is shown ---------------------------------------------------------------

    def view(self, branch: str = MAIN, commit: str | None = None) -> tuple[Snapshot, Catalog]:
        """What a branch shows now, or what a commit showed, and the types it had then."""
        shown = self.snapshot(branch, commit)
        return shown, catalog_of(shown.schema)

    def snapshot(self, branch: str = MAIN, commit: str | None = None) -> Snapshot:
        """The same without the types."""
        manifest = self.handle.manifest
        if commit is not None:
            found = find_revision(manifest, commit)
            return self.limited(manifest.view_at(found).snapshot, found.branch or MAIN)
        name = normalise_branch(branch)
        return self.limited(manifest.view(name).snapshot, name)

    @property
    def schema(self) -> SchemaContract:
        """The schema of main, as it is now."""
        if self.policy is None:
            return self.handle.manifest.view().state.schema
        return self.snapshot().schema

    def read(
        self,
        work: Callable[[Snapshot, Catalog], T],
        branch: str = MAIN,
        commit: str | None = None,
    ) -> T:
        """Read what a branch shows now, or what a commit showed.

        A cleanup may take away what is being read, if nobody has given readers time: then a
        branch is read again as it is by then, and of a commit it is said that it is gone.
        """
        for _ in range(ATTEMPTS):
            shown, catalog = self.view(branch, commit)
            try:
                return work(shown, catalog)
            except StorageError as error:
                if error.kind != "not_found" or self._shows(shown, branch, commit):
                    raise
        return work(*self.view(branch, commit))

    def _shows(self, shown: Snapshot, branch: str, commit: str | None) -> bool:
        """Whether a state that was read is what there is to read; told when it was reclaimed."""
        if commit is None:
            return self.snapshot(branch).commit_id == shown.commit_id
        manifest = self.handle.manifest
        manifest.require_retained(manifest.find_commit(shown.commit_id))
        return True

    # -- what is changed -------------------------------------------------------------

    def target(
        self,
        branch: str,
        *,
        if_commit: str | None = None,
        fork_from: str | None = None,
        message: str | None = None,
    ) -> Target:
        """Where a change goes: a branch, which is forked from another if that is given."""
        from omnigraph.write.publish.driver import Target, message_of

        base = None if fork_from is None else normalise_branch(fork_from)
        handle = self.handle
        wanted = None if if_commit is None else exact_id(handle.manifest, if_commit)
        return Target(
            handle.location,
            handle.manifest,
            normalise_branch(branch),
            wanted,
            fork_from=base,
            message=message_of(message),
        )


Arguments = dict[str, Any]
Where = str | Callable[[Access, Arguments], str | None] | None
"""A branch of a call: the argument that names it, or a function that finds it.

What a function has to read for that, it puts in place of the argument: the method must not
read it again and find something else than what was allowed.
"""
Check = Callable[["Access", str | None, str | None], None]
"""Denies a call by what is hidden on its branch and its target."""
LOOKING: frozenset[Action] = frozenset({"read", "export"})

Method = TypeVar("Method", bound=Callable[..., Any])


class Surface:
    """A part of the public API: methods that all act through one access."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def __reduce__(self) -> NoReturn:
        raise BadRequest(
            "an opened graph cannot be copied or sent to another process: open it there"
        )


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a method needs, and which calls need it, if not all."""

    name: Action
    branch: Where
    target: Where
    when: Callable[[Access, Arguments], bool] | None
    dry_run_looks: bool
    hides: bool | Check

    def ask(self, access: Access, given: Arguments) -> None:
        """Whether a call may go on."""
        if access.policy is not None and (self.when is None or self.when(access, given)):
            _require_own_name(access, self.name, given)
            branch = _branch(self.branch, access, given)
            target = _branch(self.target, access, given)
            access.authorize(self.name, branch, target)
            if self.hides is False:
                access.require_unlimited(self.name, branch, target)
            elif self.hides is not True:
                self.hides(access, branch, target)
        if self.name not in LOOKING and not (self.dry_run_looks and _is_dry(given)):
            access.handle.require_writable()


def action(
    name: Action,
    *,
    branch: Where = None,
    target: Where = None,
    when: Callable[[Access, Arguments], bool] | None = None,
    dry_run_looks: bool = False,
    hides: bool | Check = False,
) -> Callable[[Method], Method]:
    """What a method of a `Surface` needs; several of these are asked from top to bottom.

    ``when`` says which calls need it, if not all. What does more than look is refused by a graph
    that is open read-only; with ``dry_run_looks`` its dry run is not. The method is guarded:
    what it is given is what it declares, and what it raises is an error of the product.

    A method is denied to actors from whom anything is hidden, unless it ``hides`` that by itself:
    it reads through `Access.view` alone. Or ``hides`` is a function that denies some calls.
    """
    need = Need(name, branch, target, when, dry_run_looks, hides)

    def declare(method: Method) -> Method:
        declared: list[Need] | None = getattr(method, "needs", None)
        if declared is not None:
            declared.insert(0, need)
            return method
        needs, parameters = [need], signature(method)

        @wraps(method)
        def asked(self: Surface, *args: Any, **named: Any) -> Any:
            access = self._access
            if access.policy is None and not access.handle.read_only:
                return method(self, *args, **named)
            bound = parameters.bind(self, *args, **named)
            bound.apply_defaults()
            for one in needs:
                one.ask(access, bound.arguments)
            return method(*bound.args, **bound.kwargs)

        found = guarded(asked)
        found.needs = needs  # type: ignore[attr-defined]
        return cast("Method", found)

    return declare


def _is_dry(given: Arguments) -> bool:
    """Whether a call only says what it would do."""
    return bool(given["dry_run"]) if "dry_run" in given else not given["confirm"]


def _branch(where: Where, access: Access, given: Arguments) -> str | None:
    if where is None:
        return None
    return normalise_branch(given[where]) if isinstance(where, str) else where(access, given)


def _require_own_name(access: Access, name: Action, given: Arguments) -> None:
    """Whoever is bound by a policy changes nothing in the name of another."""
    if name in LOOKING:
        return  # there an actor is what is looked for
    if given.get("actor") not in (None, access.actor):
        raise PolicyDenied(
            f"policy denied action '{name}' for actor '{given['actor']}': "
            f"this is a session of '{access.actor}'"
        )


# -- finding branches --------------------------------------------------------------------


def shown_at(commit: str = "snapshot") -> Where:
    """The argument ``branch``; or, where an argument names a commit, the branch of that."""

    def find(access: Access, given: Arguments) -> str | None:
        if given[commit] is None:
            return normalise_branch(given["branch"])
        return _commit_branch(access, given, commit)

    return find


def state_at(argument: str) -> Where:
    """The branch of what an argument names: a branch, a commit or a snapshot."""

    def find(access: Access, given: Arguments) -> str:
        from omnigraph.history.diff import named_state

        state = given[argument] = named_state(access.handle, given[argument])
        return state.branch

    return find


def made_on(commit: str) -> Where:
    """The branch of the commit that an argument names."""
    return lambda access, given: _commit_branch(access, given, commit)


def _commit_branch(access: Access, given: Arguments, argument: str) -> str:
    found = find_revision(access.handle.manifest, given[argument])
    given[argument] = found.id
    return found.branch or MAIN


def began_at(argument: str) -> Where:
    """The branch that an argument names; or, where it names a commit, the branch of that."""

    def find(access: Access, given: Arguments) -> str:
        commit = commit_to_begin_at(access.handle.manifest, given[argument])
        if commit is None:
            return normalise_branch(given[argument])
        given[argument] = commit.id
        return commit.branch or MAIN

    return find


def is_forking(access: Access, given: Arguments) -> bool:
    """Whether a call would make its branch."""
    if given["from_branch"] is None:
        return False
    return is_missing(access.handle.manifest, normalise_branch(given["branch"]))


def shows_the_same(access: Access, branch: str | None, target: str | None) -> None:
    """Deny what would show on one branch what is hidden on the other."""
    if branch is not None and target is not None:
        access.require_same_limits("branch_create", branch, target)
