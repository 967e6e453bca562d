"""The plan of a migration: its steps, what they do and what they ask of the data.

Owns whether a plan can be applied, and the error of one that cannot, which tells everything at
once. Never looks at data or queries: what was found there is put into a plan by those who looked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from omnigraph.errors import SchemaChangeRefused
from omnigraph.lang.schema.ir.document import Json
from omnigraph.lang.schema.migration.describe import (
    Style,
    html_of,
    plain,
    summary,
    text_of,
    violations_text,
)
from omnigraph.lang.schema.migration.effects import REWRITING, DataCheck, Effect
from omnigraph.lang.schema.migration.refusals import BrokenQuery, Refusal, SchemaText, report_of
from omnigraph.lang.schema.migration.steps import Step, UnsupportedChange, Violations


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What it takes to get from the accepted schema to the desired one.

    ``effects`` and ``checks`` name their step by its place in ``steps``. ``broken_queries`` are
    those that would no longer compile; they refuse the plan unless they are ``forced``.
    """

    steps: tuple[Step, ...] = ()
    effects: tuple[Effect, ...] = ()
    checks: tuple[DataCheck, ...] = ()
    broken_queries: tuple[BrokenQuery, ...] = ()
    forced: bool = False
    text: SchemaText | None = field(default=None, compare=False, repr=False)

    @property
    def supported(self) -> bool:
        """Whether every step can be applied, as far as the data was looked at."""
        return not self.refusals

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Everything that stands against applying it: steps in their order, then queries."""
        found = (self._refusal(step) for step in self.steps)
        refused = [refusal for refusal in found if refusal is not None]
        if not self.forced:
            refused += [
                Refusal(broken.entity, broken.summary, query=broken)
                for broken in self.broken_queries
            ]
        return tuple(refused)

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
        """The plan as plain data; ``broken_queries`` are there if there are any.

        >>> plan = graph.plan_schema(graph.schema + "node Genre { name: String @key }")
        >>> [(step["kind"], step["tier"]) for step in plan.to_json()["steps"]]
        [('add_type', 'safe')]
        """
        found: Json = {
            "supported": self.supported,
            "steps": [step.to_json() for step in self.steps],
        }
        if self.broken_queries:
            found["broken_queries"] = [broken.to_json() for broken in self.broken_queries]
        return found

    def describe(self, style: Style = plain) -> str:
        """The plan for people, by tiers, a line per step; ``style`` may colour the tiers.

        >>> plan = graph.plan_schema(graph.schema + "node Genre { name: String @key }")
        >>> print(plan.describe())
        1 step: 1 safe
        safe
          node:Genre is added (metadata only)
        """
        return text_of(self.steps, self._refusal, self.broken_queries, style)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        return html_of(self.steps, self.broken_queries)

    def require_supported(self) -> None:
        """Raise one error that tells all that stands against the plan, if anything does.

        >>> plan = graph.plan_schema(graph.schema.replace("year: I32", "year: Bool"))
        >>> plan.supported
        False
        >>> plan.require_supported()
        Traceback (most recent call last):
        omnigraph.errors.SchemaChangeRefused: ...
        """
        refusals = self.refusals
        if not refusals:
            return
        raise SchemaChangeRefused(
            "\n".join(refusal.message for refusal in refusals),
            code=self.code,
            report=report_of(refusals),
            details={
                "entity": refusals[0].entity,
                "refusals": [refusal.to_json() for refusal in refusals],
                **self.to_json(),
            },
        )

    def _refusal(self, step: Step) -> Refusal | None:
        """Why a step stands against the plan, if it does."""
        found = None
        if isinstance(step, UnsupportedChange):
            reason = step.reason
        elif step.violations is None or not step.violations.count:
            return None
        else:
            found = step.violations
            reason = f"{summary(step)}: {violations_text(found)}"
        place = None
        if self.text is not None:
            place = self.text.diagnose(step.entity, reason, step.code)
        return Refusal(step.entity, reason, step.code, found, place)


def _with(step: Step, **found: Any) -> Step:
    if isinstance(step, UnsupportedChange):
        raise ValueError(f"the data says nothing about {step.entity}, which is refused anyway")
    return msgspec.structs.replace(step, **found)
