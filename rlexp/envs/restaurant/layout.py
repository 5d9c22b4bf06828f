"""Where everything sits in the state vector."""

from __future__ import annotations

from functools import lru_cache

from rlexp.envs.restaurant.acts import DONTCARE
from rlexp.envs.restaurant.domain import Domain

COUNT_GROUPS = 5
"""The vector describes the venues left by the 1, 2, ... 5 surest values."""
COUNT_BITS = 5
"""none, one, 2 to 4, more than 4, can be distinguished."""


class Layout:
    """Positions in the state vector; for the Cambridge domain it has 268 entries.

    Beliefs over the values of a slot are kept by these positions, which makes writing the vector a plain
    copy. Within a slot the values come in ontology order, then "nothing heard", then dontcare, so that the
    rule "ties go to the value that comes first in the ontology, dontcare last" is a comparison of
    positions.

    :param domain: the domain
    """

    def __init__(self, domain: Domain) -> None:
        self.slots = tuple(domain.informable)
        self.position: dict[tuple[str, str], int] = {}
        """(slot, value or dontcare) -> position."""
        self.value_at: dict[int, str] = {}
        """position -> value or dontcare."""
        self.first: dict[str, int] = {}
        """slot -> position of its first value."""
        self.nothing_heard: dict[str, int] = {}
        """slot -> position of the belief that nothing has been said about it."""
        start = 0
        for slot, values in domain.informable.items():
            self.first[slot] = start
            self.nothing_heard[slot] = start + len(values)
            dontcare = start + len(values) + 1
            for position, value in (*enumerate(values, start), (dontcare, DONTCARE)):
                self.position[slot, value] = position
                self.value_at[position] = value
            start = dontcare + 1
        self.method = start
        self.discourse = self.method + len(domain.methods)
        self.requested = self.discourse + len(domain.discourse_acts)
        self.inform_none = self.requested + len(domain.requestable)
        self.offer_happened = self.inform_none + 1
        self.counts = self.offer_happened + 1
        self.size = self.counts + COUNT_GROUPS * COUNT_BITS


@lru_cache(maxsize=8)
def layout_of(domain: Domain) -> Layout:
    """The layout for a domain, made once.

    :param domain: the domain
    """
    return Layout(domain)
