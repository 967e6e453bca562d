"""Random histories against the plain model: the same rows, bases, outcomes and conflicts."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests import profile
from tests.folding import fold_often
from tests.history.history_machine import Histories, seen


@pytest.mark.slow
@pytest.mark.soak
def test_histories_are_what_the_model_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fold_often(monkeypatch)
    seen.clear()
    run_state_machine_as_test(Histories, settings=profile.histories(48, 20))
    with capsys.disabled():
        counted = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
        print(f"\n{counted}")  # noqa: T201 - says what was looked at
    # What Hypothesis draws depends on more than the seed, so this asks for variety, not for counts.
    for what in ("load", "update", "delete", "fork", "drop", "dry merge", "optimize"):
        assert seen[what] >= 5, what
    assert seen["rows combined"]
    for outcome in ("already_up_to_date", "fast_forward", "merged"):
        assert seen[f"merge: {outcome}"] >= 5, outcome
    conflicts = [what for what in seen if what.startswith("conflict: ")]
    assert len(conflicts) >= 4, conflicts
    assert seen["settled for the source"]
    assert seen["settled for the target"]
