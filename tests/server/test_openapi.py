"""Whatever is asked of a server, it answers as its description says, in every state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, repeat
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from omnigraph.policy import parse_policy
from omnigraph.server.served import State
from omnigraph.server.settings import Limits
from tests import profile
from tests.server.serving import TOKENS, Served, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def as_lines(_: object, value: object) -> bytes:
    """A body of lines is the text itself."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


SHARES: dict[State, float] = {"open": 0.5, "default_deny": 0.15, "policy_enabled": 0.35}
POLICY = """
version: 1
groups: {owners: [ann], readers: [ben]}
protected_branches: [main]
rules:
  - id: everything
    allow: {actors: {group: owners}, actions: [read, export, change, schema_apply, branch_create,
            branch_delete, branch_merge, invoke_query, admin]}
  - id: some-of-it
    allow:
      actors: {group: readers}
      actions: [read, export, change, branch_create]
      types: [Person, Film, ActedIn]
      hide: {Person: [age]}
      rows: {Film: year > 1990}
  - id: one-query
    allow: {actors: {group: readers}, actions: [invoke_query], queries: [person]}
"""
Headers = dict[str, str]


def bearers(state: State) -> Iterator[Headers]:
    """Who asks: those who may do everything, little and nothing, one after the other."""
    if state == "open":
        return repeat({})
    known = [{"Authorization": f"Bearer {TOKENS[who]}"} for who in ("ann", "ben", "ann")]
    return cycle([*known, {"Authorization": "Bearer nobody"}])


@contextmanager
def described(location: Path, state: State) -> Iterator[tuple[Served, Any]]:
    """A server in a state, and what it says of itself."""
    policy = parse_policy(POLICY) if state == "policy_enabled" else None
    with serving(location, state, Limits(wait_seconds=0.02), policy) as served:
        yield served, schemathesis.openapi.from_asgi("/openapi.json", served.app)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("state", list(SHARES))
def test_answers_are_as_described(
    state: State, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    statuses: Counter[int] = Counter()
    with described(tmp_path / "film.omni", state) as (_, schema):
        operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
        wanted = int(profile.CHOSEN.requests * SHARES[state])
        headers = bearers(state)
        for operation in operations:

            @settings(
                max_examples=max(wanted // len(operations), 1),
                deadline=None,
                database=None,
                derandomize=True,
                phases=(Phase.explicit, Phase.generate),
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def ask(case: Any) -> None:
                answer = case.call(headers=next(headers))
                statuses[answer.status_code] += 1
                case.validate_response(answer, checks=CHECKS)

            ask()
    record_property(f"requests of described servers, {state}", statuses.total())
    assert {200, 400} <= set(statuses)
    assert state == "open" or {401, 403} <= set(statuses)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("state", list(SHARES))
def test_answers_lead_on_as_described(
    state: State, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """What one answer names, the next request asks for."""
    asked = 0
    with described(tmp_path / "film.omni", state) as (_, schema):
        headers = bearers(state)

        class Following(schema.as_state_machine()):  # type: ignore[misc]
            def get_call_kwargs(self, _: Any) -> dict[str, Any]:
                return {"headers": next(headers)}

            def validate_response(self, response: Any, case: Any, **_: Any) -> None:
                nonlocal asked
                asked += 1
                case.validate_response(response, checks=CHECKS)

        steps = 6
        Following.run(
            settings=settings(
                max_examples=max(profile.CHOSEN.requests // 40 // steps, 2),
                stateful_step_count=steps,
                deadline=None,
                database=None,
                derandomize=True,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            )
        )
    record_property(f"requests that followed links, {state}", asked)
    assert asked
