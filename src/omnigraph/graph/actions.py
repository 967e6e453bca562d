"""What a method of the façade needs: said once, at the method, and asked before it runs.

Owns finding out which branch a call is about. Decides nothing: that is the access's part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from omnigraph.errors import PolicyDenied
from omnigraph.graph.access import Access, Action
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.entries import MAIN

Arguments = dict[str, Any]
Where = str | Callable[[Access, Arguments], str | None] | None
"""A branch of a call: the argument that names it, or a function that finds it.

What a function has to read for that, it puts in place of the argument: the method must not
read it again and find something else than what was allowed.
"""
LOOKING: frozenset[Action] = frozenset({"read", "export"})

Method = TypeVar("Method", bound=Callable[..., Any])


class Surface:
    """A part of the public API: methods that all act through one access."""

    def __init__(self, access: Access) -> None:
        self._access = access


def action(
    name: Action,
    *,
    branch: Where = None,
    target: Where = None,
    when: Callable[[Access, Arguments], bool] | None = None,
    dry_run_looks: bool = False,
) -> Callable[[Method], Method]:
    """What a method of a `Surface` needs; several of these are asked from top to bottom.

    ``when`` says which calls need it, if not all. What does more than look is refused by a graph
    that is open read-only; with ``dry_run_looks`` its dry run is not.
    """

    def declare(method: Method) -> Method:
        parameters = signature(method)

        @wraps(method)
        def asked(self: Surface, *args: Any, **named: Any) -> Any:
            access = self._access
            is_refused = access.handle.read_only and name not in LOOKING
            if access.policy is None and not is_refused:
                return method(self, *args, **named)
            bound = parameters.bind(self, *args, **named)
            bound.apply_defaults()
            given = bound.arguments
            if access.policy is not None and (when is None or when(access, given)):
                _require_own_name(access, name, given)
                access.authorize(
                    name, _branch(branch, access, given), _branch(target, access, given)
                )
            if is_refused and not (dry_run_looks and given["dry_run"]):
                access.handle.require_writable()
            return method(*bound.args, **bound.kwargs)

        asked.needs = (name, *getattr(method, "needs", ()))  # type: ignore[attr-defined]
        return cast("Method", asked)

    return declare


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
        return _branch_of(access, given[commit])

    return find


def made_on(commit: str) -> Where:
    """The branch of the commit that an argument names."""
    return lambda access, given: _branch_of(access, given[commit])


def _branch_of(access: Access, commit_id: str) -> str:
    return access.handle.manifest.find_commit(commit_id).branch or MAIN


def is_forking(access: Access, given: Arguments) -> bool:
    """Whether a call would make its branch."""
    if given["from_branch"] is None:
        return False
    return is_missing(access.handle.manifest, normalise_branch(given["branch"]))
