"""How far the generated tests search: a little in `make test`, far in `make soak`.

The one place with their numbers. A test says what an example costs it, not how many it wants.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from hypothesis import HealthCheck, Phase, settings

VARIABLE = "OMNIGRAPH_TEST_PROFILE"
NAME = os.environ.get(VARIABLE, "test")
SEED = os.environ.get("OMNIGRAPH_SOAK_SEED", "")
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers of a profile.

    ``cheap`` examples take a millisecond, ``costly`` ones some, ``dear`` ones a second. What a
    state machine needs to see everything once is multiplied by ``histories``. ``seeds`` are graphs
    with so many generated ``queries`` each, ``kills`` the processes that the soak ends,
    ``instants`` those that are killed at any moment of one write, ``publishes`` the commits of one
    process that races with others, and ``mutants`` the broken texts of one share, which follow from
    ``SEED`` too. Described servers are asked so many ``requests``. A graph of the soak sees
    ``rounds`` kills and writes that are announced beyond ``request`` bytes: all of its history is
    read again after each. ``every_passing`` has the crash matrix kill each kind of write at each
    passing, ``every_case`` has tests marked ``pairwise`` run with all that they are given, and
    ``larger`` has the protocol explored with more actors.
    """

    cheap: int
    costly: int
    dear: int
    histories: int
    seeds: int
    queries: int
    kills: int
    instants: int
    publishes: int
    mutants: int
    requests: int
    rounds: int
    request: int
    every_passing: bool
    every_case: bool
    larger: bool


PROFILES = {
    "test": Profile(
        cheap=100,
        costly=25,
        dear=6,
        histories=1,
        seeds=16,
        queries=50,
        kills=120,
        instants=12,
        publishes=15,
        mutants=400,
        requests=1_300,
        rounds=16,
        request=2 * MIB,
        every_passing=False,
        every_case=False,
        larger=False,
    ),
    "soak": Profile(
        cheap=2000,
        costly=300,
        dear=60,
        histories=10,
        seeds=124,
        queries=162,
        kills=2000,
        instants=200,
        publishes=50,
        mutants=40_000,
        requests=30_000,
        rounds=40,
        request=32 * MIB,
        every_passing=True,
        every_case=True,
        larger=True,
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


def each_once(
    first: Sequence[Hashable], second: Sequence[Hashable]
) -> list[tuple[Hashable, Hashable]]:
    """Pairs of two parameters that have met elsewhere: all, or each of their values once."""
    if CHOSEN.every_case:
        return list(product(first, second))
    count = max(len(first), len(second))
    return [(first[n % len(first)], second[n % len(second)]) for n in range(count)]
