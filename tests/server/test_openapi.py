"""Whatever is asked of a server, it answers as its description says, in every state."""

from __future__ import annotations

from collections.abc import Callable
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

from omnigraph.server.served import State
from omnigraph.server.settings import Limits
from tests import profile
from tests.server.serving import TOKENS, serving

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


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("state", list(SHARES))
def test_answers_are_as_described(
    state: State, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with serving(tmp_path / "film.omni", state, Limits(wait_seconds=0.02)) as served:
        schema = schemathesis.openapi.from_asgi("/openapi.json", served.app)
        operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
        wanted = int(profile.CHOSEN.requests * SHARES[state])
        asked = 0
        headers = {} if state == "open" else {"Authorization": f"Bearer {TOKENS['ann']}"}
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
                nonlocal asked
                asked += 1
                case.call_and_validate(checks=CHECKS, headers=headers)

            ask()
        record_property(f"requests of described servers, {state}", asked)


@pytest.mark.slow
@pytest.mark.soak
def test_answers_lead_on_as_described(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """What one answer names, the next request asks for."""
    asked = 0
    with serving(tmp_path / "film.omni", "open", Limits(wait_seconds=0.02)) as served:
        schema = schemathesis.openapi.from_asgi("/openapi.json", served.app)

        class Following(schema.as_state_machine()):  # type: ignore[misc]
            def validate_response(self, response: Any, case: Any, **_: Any) -> None:
                nonlocal asked
                asked += 1
                case.validate_response(response, checks=CHECKS)

        steps = 6
        Following.run(
            settings=settings(
                max_examples=max(profile.CHOSEN.requests // 15 // steps, 2),
                stateful_step_count=steps,
                deadline=None,
                database=None,
                derandomize=True,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            )
        )
        record_property("requests that followed links", asked)
        assert asked
