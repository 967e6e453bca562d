"""The plan of a migration: its steps, what they do and what they ask of the data.

Owns whether a plan can be applied, and the error of one that cannot, which tells everything at
once. Never looks at data: what was found there is put into a plan by those who looked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from omnigraph.errors import SchemaChangeRefused
from omnigraph.lang.schema.ir.document import Json
from omnigraph.lang.schema.migration.describe import html_of, summary, text_of, violations_text
from omnigraph.lang.schema.migration.effects import REWRITING, DataCheck, Effect
from omnigraph.lang.schema.migration.steps import Step, UnsupportedChange, Violations


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plan cannot be applied: a change nobody can make, or one that the data forbids."""

    entity: str
    reason: str
    code: str | None = None
    violations: Violations | None = None

    @property
    def message(self) -> str:
        """The reason, after its code if it has one."""
        return self.reason if self.code is None else f"[{self.code}] {self.reason}"

    def to_json(self) -> Json:
        """The refusal as plain data; what it does not have is left out."""
        found: Json = {"entity": self.entity, "reason": self.reason}
        if self.code is not None:
            found["code"] = self.code
        if self.violations is not None:
            found["violations"] = self.violations.to_json()
        return found


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What it takes to get from the accepted schema to the desired one.

    ``effects`` and ``checks`` name their step by its place in ``steps``.
    """

    steps: tuple[Step, ...] = ()
    effects: tuple[Effect, ...] = ()
    checks: tuple[DataCheck, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether every step can be applied, as far as the data was looked at."""
        return not self.refusals

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Everything that stands against applying it, in the order of the steps."""
        found = (_refusal(step) for step in self.steps)
        return tuple(refusal for refusal in found if refusal is not None)

    @property
    def code(self) -> str | None:
        """The first OG-code of the refusals."""
        return next((refusal.code for refusal in self.refusals if refusal.code), None)

    # -- for those who apply it --------------------------------------------------------

    @property
    def rewritten(self) -> frozenset[int]:
        """The ids of properties that stay and get another column."""
        return frozenset(
            effect.property_id for effect in self.effects if isinstance(effect, REWRITING)
        )

    def effects_on(self, type_id: int) -> tuple[Effect, ...]:
        """What happens to one table."""
        return tuple(effect for effect in self.effects if effect.type_id == type_id)

    def checks_on(self, type_id: int) -> tuple[DataCheck, ...]:
        """What the rows of one table must obey."""
        return tuple(check for check in self.checks if check.type_id == type_id)

    def with_findings(
        self,
        violations: Mapping[int, Violations] | None = None,
        rows_losing_value: Mapping[int, int] | None = None,
    ) -> MigrationPlan:
        """The plan with what the data says, by the places of steps."""
        steps = list(self.steps)
        for place, found in (violations or {}).items():
            steps[place] = _with(steps[place], violations=found)
        for place, rows in (rows_losing_value or {}).items():
            steps[place] = _with(steps[place], rows_losing_value=rows)
        return replace(self, steps=tuple(steps))

    # -- for those who read it ---------------------------------------------------------

    def to_json(self) -> Json:
        """The plan as plain data."""
        return {"supported": self.supported, "steps": [step.to_json() for step in self.steps]}

    def describe(self) -> str:
        """The plan for people, by tiers, a line per step."""
        return text_of(self.steps)

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        return html_of(self.steps)

    def require_supported(self) -> None:
        """Raise one error that tells all that stands against the plan, if anything does."""
        refusals = self.refusals
        if not refusals:
            return
        raise SchemaChangeRefused(
            "\n".join(refusal.message for refusal in refusals),
            code=self.code,
            details={
                "entity": refusals[0].entity,
                "refusals": [refusal.to_json() for refusal in refusals],
                **self.to_json(),
            },
        )


def _refusal(step: Step) -> Refusal | None:
    if isinstance(step, UnsupportedChange):
        return Refusal(step.entity, step.reason, step.code)
    found = step.violations
    if found is None or not found.count:
        return None
    reason = f"{summary(step)}: {violations_text(found)}"
    return Refusal(step.entity, reason, step.code, found)


def _with(step: Step, **found: Any) -> Step:
    if isinstance(step, UnsupportedChange):
        raise ValueError(f"the data says nothing about {step.entity}, which is refused anyway")
    return msgspec.structs.replace(step, **found)
