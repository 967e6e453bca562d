"""Generated constants: literals and parameters that make sense next to a property."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.read.generate_graphs import HALVES, MEMBERS, SMALL, WIDE, WORDS, pool
from tests.read.model import PropType
from tests.read.query_ast import Lit, Param

INTEGERS = ("I32", "I64", "U32", "U64")
NUMBERS = (*INTEGERS, "F32", "F64")


@dataclass
class Constants:
    """Draws constants, and keeps the parameters among them."""

    rng: Random
    params: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def constant(self, type_: PropType, *, inline: bool = False) -> Lit | Param:
        """A literal or a parameter that a value of a type may be compared with."""
        if self.rng.random() < 0.6:
            return Lit(self.literal(type_))
        base = self.other_base(type_)
        nullable = self.rng.random() < 0.4
        value = None
        if not (nullable and self.rng.random() < 0.2):
            value = self.rng.choice(self.values(type_, base, inline=inline))
        return self.param(base + ("?" if nullable else ""), value)

    def other_base(self, type_: PropType) -> str:
        if type_.base == "enum":
            return "String"
        if type_.base not in NUMBERS:
            return type_.base
        if type_.base == "F32" or (type_.wide and self.rng.random() < 0.5):
            return type_.base
        return self.rng.choice([base for base in NUMBERS if base != "F32"])

    def values(self, type_: PropType, base: str, *, inline: bool = False) -> tuple[Any, ...]:
        """Values of a base type that make sense next to a property."""
        if type_.base == "enum":
            return type_.members if inline else (*MEMBERS, "m")
        if base in ("F32", "F64"):
            return HALVES + ((0.1, 2.7, 2.0**53, 2.0**63) if base == "F64" and type_.wide else ())
        if base in INTEGERS:
            small = tuple(value for value in SMALL if value >= 0 or base[0] == "I")
            # Parameters hold no more than a signed number.
            wide = tuple(value for value in WIDE[base] if value < 2**63) if type_.wide else ()
            return small + wide
        return WORDS if base == "String" else pool(type_)

    def literal(self, type_: PropType) -> Any:
        if type_.base == "enum":
            return self.rng.choice(type_.members)
        if type_.base not in NUMBERS:
            return self.rng.choice(pool(type_))
        if self.rng.random() < 0.4 or type_.base == "F32":
            return self.rng.choice(self.values(type_, "F32" if type_.base == "F32" else "F64"))
        return self.rng.choice(self.values(type_, "I64"))

    def list_param(self, type_: PropType) -> Param:
        base = self.other_base(type_)
        if self.rng.random() < 0.1:
            return self.param(f"[{base}]?", None)
        values = self.values(type_, base)
        chosen = tuple(self.rng.choice(values) for _ in range(self.rng.randint(0, 3)))
        return self.param(f"[{base}]", chosen)

    def param(self, declared: str, value: Any) -> Param:
        name = f"p{len(self.params)}"
        self.params[name] = (declared, value)
        return Param(name)

    def row_count(self) -> int | Param:
        number = self.rng.choice((0, 1, 2, 3, 5, 8, 1000))
        if self.rng.random() < 0.6:
            return number
        return self.param(self.rng.choice(INTEGERS), number)
