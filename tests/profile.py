"""How far the generated tests search: a little in `make test`, far in `make soak`.

The one place with their numbers. A test says what an example costs it, not how many it wants.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hypothesis import HealthCheck, Phase, settings

VARIABLE = "OMNIGRAPH_TEST_PROFILE"
NAME = os.environ.get(VARIABLE, "test")
SEED = os.environ.get("OMNIGRAPH_SOAK_SEED", "")


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers of a profile.

    ``cheap`` examples take a millisecond, ``costly`` ones some, ``dear`` ones a second. What a
    state machine needs to see everything once is multiplied by ``histories``. ``seeds`` are graphs
    with generated queries, ``kills`` the processes that the soak ends, ``instants`` those that are
    killed at any moment of one write, and ``mutants`` the broken texts of one share, which follow
    from ``SEED`` too. ``every_passing`` has the crash matrix kill
    each kind of write at each passing, ``every_case`` has tests marked ``pairwise`` run with all
    that they are given, and ``larger`` has the protocol explored with more actors.
    """

    cheap: int
    costly: int
    dear: int
    histories: int
    seeds: int
    kills: int
    instants: int
    mutants: int
    every_passing: bool
    every_case: bool
    larger: bool


PROFILES = {
    "test": Profile(
        100, 25, 8, 1, 16, 120, 20, 2_000, every_passing=False, every_case=False, larger=False
    ),
    "soak": Profile(
        2000, 300, 60, 10, 124, 2000, 200, 40_000, every_passing=True, every_case=True, larger=True
    ),
}
CHOSEN = PROFILES[NAME]


def register() -> None:
    """Make the chosen profile the one that properties without settings of their own have."""
    for name, profile in PROFILES.items():
        # What takes long on a busy machine is not wrong.
        settings.register_profile(name, max_examples=profile.cheap, deadline=None)
    settings.load_profile(NAME)


register()
costly = settings(max_examples=CHOSEN.costly)
dear = settings(max_examples=CHOSEN.dear)


def histories(examples: int, steps: int) -> settings:
    """For a state machine that sees everything once in so many examples of so many steps."""
    return settings(
        max_examples=examples * CHOSEN.histories,
        stateful_step_count=steps,
        derandomize=True,
        # Shrinking takes minutes: ask for it when there is something to shrink.
        phases=(Phase.generate,),
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def pairwise(cases: Sequence[Mapping[str, Hashable]]) -> set[int]:
    """The places of so many cases that every two values which can meet do so once."""
    pairs = [set(combinations(sorted(case.items()), 2)) for case in cases]
    missing = set().union(*pairs)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(cases)), key=lambda place: len(pairs[place] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return chosen
