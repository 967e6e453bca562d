"""Refusal: the one error that a load on Spark ends with when its input is wrong.

Owns which problems it shows: the first of every kind with file and line, and all counts. They
stand in the order of the rules, as the evaluator in `write.check` goes through them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors import KeyConflict, OmniGraphError, ValidationError
from omnigraph.pipeline.load.check.explain import Explained
from omnigraph.pipeline.load.check.violations import RuleViolations, first_messages
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.write.rules.violations import Violation

OF_EACH_KIND = 10
_VALUES = ("range", "check", "enum")


def refusal(
    explained: Sequence[Explained],
    codes: Mapping[str, int],
    verdicts: Sequence[RuleViolations] = (),
    area: StagingArea | None = None,
) -> OmniGraphError:
    """What is raised for rows that are wrong; those of verdicts on stored rows have no line."""
    found = [reject.as_violation() for one in explained for reject in one.first]
    if area is not None:
        found += _stored(area, [verdict for verdict in verdicts if verdict.strays])
    shown = _first_of_each_kind(_in_order(found, verdicts))
    total = sum(codes.values())
    lines = [str(violation) for violation in shown]
    if total > len(lines):
        lines.append(f"… and {total - len(lines)} more")
    if total > 1:
        listed = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
        lines.append(f"{total} problems ({listed}); nothing was written")
    details: dict[str, Any] = {
        "total": total,
        "codes": dict(codes),
        "violations": [violation.body() for violation in shown],
    }
    if set(codes) == {"key_conflict"}:
        details["type_key"] = shown[0].type_key
        return KeyConflict("\n".join(lines), details=details)
    return ValidationError("\n".join(lines), rule=shown[0].rule, details=details)


def _in_order(found: Sequence[Violation], verdicts: Sequence[RuleViolations]) -> list[Violation]:
    """By rule and then by line; what cannot be read comes before values that break a rule."""
    orders = {
        (rule.type_key, rule.code, rule.property): rule.order
        for rule in sorted((verdict.rule for verdict in verdicts), key=lambda rule: -rule.order)
    }

    def place(violation: Violation) -> tuple[int, str, int]:
        key = violation.type_key or ""
        if verdicts:
            return orders[key, violation.rule, violation.property or ""], "", 0
        if violation.rule not in _VALUES:
            return -1, "", 0
        return 0, key.partition(":")[2], _VALUES.index(violation.rule)

    return sorted(found, key=place)


def _stored(area: StagingArea, strays: Sequence[RuleViolations]) -> list[Violation]:
    return [
        Violation(one.rule.code, message, one.rule.type_key, one.rule.property, entity)
        for one, rows in first_messages(area, strays)
        for message, entity in zip(
            rows.column("message").to_pylist(), rows.column("entity").to_pylist(), strict=True
        )
        if message is not None
    ]


def _first_of_each_kind(found: Sequence[Violation]) -> list[Violation]:
    """The first few of every code, in their order."""
    seen: Counter[str] = Counter()
    chosen = []
    for violation in found:
        seen[violation.rule] += 1
        if seen[violation.rule] <= OF_EACH_KIND:
            chosen.append(violation)
    return chosen
