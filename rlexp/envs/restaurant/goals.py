"""What the simulated user wants, and the list of everything a user can want."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from rlexp.envs.restaurant.acts import DONTCARE
from rlexp.envs.restaurant.domain import SLOTS, Domain

MINIMUM_VENUES, MAXIMUM_VENUES = 2, 3
"""A goal must leave a choice, but a small one."""


@lru_cache(maxsize=8)
def possible_goals(domain: Domain) -> tuple[tuple[str, str, str], ...]:
    """Every combination (area, food, pricerange), ``dontcare`` included, that 2 or 3 venues meet.

    PyDial draws combinations until one fits; drawing from this list is the same and needs no retries. The
    Cambridge venues allow 56.

    :param domain: the venues
    :raises ValueError: if there is none, so that no dialogue could ever succeed
    """
    goals = tuple(
        (area, food, price)
        for area in domain.values_and_dontcare["area"]
        for food in domain.values_and_dontcare["food"]
        for price in domain.values_and_dontcare["pricerange"]
        if MINIMUM_VENUES <= len(domain.query(area, food, price).rows) <= MAXIMUM_VENUES
    )
    if not goals:
        raise ValueError(
            "database: no combination of area, food and pricerange is met by 2 or 3 venues, so a user has "
            "nothing to want"
        )
    return goals


class Goal:
    """A user's constraints and requests, as they stand at this moment.

    :param constraints: wanted value of every slot, ``dontcare`` where anything will do
    :param requests: slots to be asked, in order, each with the answer or None; ``name`` comes first
    """

    __slots__ = ("constraints", "name_is", "name_not", "requests", "used_values")

    def __init__(self, constraints: dict[str, str], requests: dict[str, str | None]) -> None:
        self.constraints = constraints
        self.requests = requests
        self.name_is: str | None = None
        """The venue that the user has settled on, a constraint like the others."""
        self.name_not: list[str] = []
        """Venues that the user does not want again."""
        self.used_values = {slot: [value] for slot, value in constraints.items()}
        """Values wanted so far; a changed constraint never returns to one of them."""

    @property
    def venue(self) -> str | None:
        """The venue under discussion."""
        return self.requests["name"]

    @property
    def open_requests(self) -> list[str]:
        """Questions without an answer, in order."""
        return [slot for slot, value in self.requests.items() if value is None]

    @property
    def all_answered(self) -> bool:
        """Whether every question has an answer."""
        return None not in self.requests.values()

    def forget_answers(self) -> None:
        """Start asking again, because the answers belonged to another venue or to a misunderstanding."""
        self.requests = dict.fromkeys(self.requests)


def sample_goal(domain: Domain, random: Random) -> Goal:
    """Draw a goal: constraints uniform over :func:`possible_goals`, ``name`` and 0 to 2 more requests.

    :param domain: the domain
    :param random: source of randomness
    """
    goals = possible_goals(domain)
    constraints = dict(zip(SLOTS, goals[int(random.random() * len(goals))], strict=True))
    # `name` may be drawn again, which adds nothing: that is why one request is as frequent as two.
    candidates = ["name", *domain.info_slots]
    requests: dict[str, str | None] = {"name": None}
    for _ in range(min(int(random.random() * 3), len(candidates))):
        requests[candidates.pop(int(random.random() * len(candidates)))] = None
    return Goal(constraints, requests)


def wants(goal: Goal, venue: dict[str, str]) -> bool:
    """Whether a venue meets every constraint of the goal.

    :param goal: the goal
    :param venue: slot -> value
    """
    name = venue["name"]
    if name in goal.name_not or (goal.name_is is not None and goal.name_is != name):
        return False
    return all(value == DONTCARE or venue[slot] == value for slot, value in goal.constraints.items())
