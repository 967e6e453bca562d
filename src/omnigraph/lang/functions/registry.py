"""All functions by name.

Owns finding one. A name stands for one function, whatever its arguments are.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.lang.functions import of_texts, of_times, of_values
from omnigraph.lang.functions.signature import Function

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for functions in (
        of_values.CHOICE,
        of_values.NUMBERS,
        of_texts.TEXT_FUNCTIONS,
        of_times.FUNCTIONS,
        of_texts.LIST_FUNCTIONS,
        of_values.CONVERSION,
        of_values.SPACE,
    )
    for function in functions
}

STATEMENT = frozenset({"now", "today"})
"""What is the same in every row, and known to whoever runs the statement only."""
