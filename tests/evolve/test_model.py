"""Random histories of schemas against the plain model: refusals, rows, merges and the past."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests import profile
from tests.evolve.evolution_machine import Evolutions, seen


@pytest.mark.slow
@pytest.mark.soak
def test_schemas_evolve_as_the_model_says(capsys: pytest.CaptureFixture[str]) -> None:
    seen.clear()
    run_state_machine_as_test(Evolutions, settings=profile.histories(9, 25))
    with capsys.disabled():
        counted = ", ".join(f"{number} {what}" for what, number in sorted(seen.items()))
        print(f"\n{counted}")  # noqa: T201 - says what was looked at
    # What Hypothesis draws depends on more than the seed, so this asks for variety, not for counts.
    for what in ("change refused", "change with rows", "write", "fork", "commits read back"):
        assert seen[what] >= 5, what
    for what in ("merge: merged", "merge refused", "schemas of both sides merged"):
        assert seen[what] >= 3, what
    assert len([what for what in seen if what.startswith("step: ")]) >= 10
