"""Tests of a policy: what a file of cases expects, and where the policy decides otherwise.

Owns the tests file. Decides nothing by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.policy.compiled import CompiledPolicy, Request
from omnigraph.policy.parse import require_version, text_of
from omnigraph.policy.rules import ACTIONS
from omnigraph.yaml_values import FileErrors, Value, read_values

_FILE = ("version", "cases")
_REQUIRED = ("id", "actor", "action", "expect")
_CASE = ("id", "actor", "action", "branch", "target_branch", "query", "expect")
_EXPECTED = ("allow", "deny")


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """What is asked, and what has to come out."""

    id: str
    request: Request
    is_allowed: bool


def read_cases(path: str | Path) -> tuple[PolicyCase, ...]:
    """The cases of a tests file."""
    return parse_cases(text_of(path), str(path))


def parse_cases(source: str, file: str = "<tests>") -> tuple[PolicyCase, ...]:
    """The cases of a text; one error says everything that is wrong with it."""
    errors = FileErrors(file)
    found = read_values(file, source, errors).known(_FILE, required=_FILE)
    require_version(found.get("version"))
    cases: list[PolicyCase] = []
    known: set[str] = set()
    for value in found["cases"].items() if "cases" in found else ():
        members = value.known(_CASE, required=_REQUIRED)
        case = _case(members)
        if case is None:
            continue
        if case.id in known:
            members["id"].say(f"there is another case `{case.id}`")
        known.add(case.id)
        cases.append(case)
    errors.raise_if_any()
    return tuple(cases)


def _case(members: Mapping[str, Value]) -> PolicyCase | None:
    texts = {
        name: value.text() for name, value in members.items() if name not in ("action", "expect")
    }
    action = members["action"].choice(ACTIONS) if "action" in members else None
    expected = members["expect"].choice(_EXPECTED) if "expect" in members else None
    id_, actor = texts.get("id"), texts.get("actor")
    if id_ is None or actor is None or action is None or expected is None:
        return None
    request = Request(
        actor, action, texts.get("branch"), texts.get("target_branch"), texts.get("query")
    )
    return PolicyCase(id_, request, expected == "allow")


def failures_of(policy: CompiledPolicy, cases: tuple[PolicyCase, ...]) -> list[str]:
    """A line for every case that the policy decides otherwise."""
    return [
        f"{case.id}: expected {'Allow but got deny' if case.is_allowed else 'Deny but got allow'}"
        for case in cases
        if policy.decide(case.request).is_allowed != case.is_allowed
    ]
