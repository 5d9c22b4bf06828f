"""What a user act means to the tracker, and what a system act leaves open."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rlexp.envs.restaurant.acts import DONTCARE, NO_VENUE, DialogueAct
from rlexp.envs.restaurant.domain import Domain
from rlexp.envs.restaurant.layout import layout_of

AS_SAID = 0
"""The meaning does not depend on the system act."""
UNNAMED_DONTCARE = 1
"""A bare "I do not mind": about the slot the system has just asked for, if it has."""
BARE_YES = 2
"""affirm() without items: says what the system wants confirmed."""
YES_AND_MORE = 3
"""affirm with items: says what the system wants confirmed, and the items."""

BYNAME_IF_OFFERED = -1
"""A question is about a venue if there has been one."""
_CACHE_LIMIT = 200_000


class Meaning(NamedTuple):
    """What one user act says.

    :param informs: (slot number, position of the value in the state vector); slots numbered as in the
        layout
    :param requests: numbers of the requestable slots asked for
    :param method: number of the method, or :data:`BYNAME_IF_OFFERED`
    :param discourse: number of the discourse act; one past the last is ``bye``, which the vector does not
        show
    :param context: how the system act completes the meaning, one of the constants of this module
    """

    informs: tuple[tuple[int, int], ...]
    requests: tuple[int, ...]
    method: int
    discourse: int
    context: int


class Context(NamedTuple):
    """What a system act means for the user's answer and for the tracker's features.

    :param asked: (slot number, position of its dontcare) of a request, or None
    :param confirmed: (slot number, position of the value) of a confirm, or None
    :param answered: numbers of the requestable slots that an offer or answer has filled
    :param venue: the venue that it offers, or None
    :param no_venue: whether it says that no venue matches
    """

    asked: tuple[int, int] | None
    confirmed: tuple[int, int] | None
    answered: tuple[int, ...]
    venue: str | None
    no_venue: bool


class Understanding:
    """Turns acts into meanings, and remembers them: the same acts come back all the time.

    :param domain: the domain
    """

    def __init__(self, domain: Domain) -> None:
        layout = layout_of(domain)
        self._slot_number = {slot: number for number, slot in enumerate(layout.slots)}
        self._position = layout.position
        self._requestable = {slot: number for number, slot in enumerate(domain.requestable)}
        self._method = {method: number for number, method in enumerate(domain.methods)}
        self._discourse = {act: number for number, act in enumerate((*domain.discourse_acts, "bye"))}
        self.meanings: dict[DialogueAct, Meaning] = {}
        """Everything understood so far; the tracker looks here first."""
        self.contexts: dict[DialogueAct, Context] = {}

    def meaning(self, act: DialogueAct) -> Meaning:
        """The meaning of a user act.

        :param act: as heard, with whatever mistakes
        """
        known = self.meanings.get(act)
        if known is None:
            if len(self.meanings) >= _CACHE_LIMIT:
                self.meanings.clear()
            known = self.meanings[act] = self._understand(act)
        return known

    def context(self, act: DialogueAct) -> Context:
        """What a system act leaves open.

        :param act: the system act
        """
        known = self.contexts.get(act)
        if known is None:
            if len(self.contexts) >= _CACHE_LIMIT:
                self.contexts.clear()
            known = self.contexts[act] = self._context(act)
        return known

    def _understand(self, act: DialogueAct) -> Meaning:
        kind, items = act
        said: dict[int, int] = {}
        name_said = False
        context = AS_SAID
        for slot, operator, value in items:
            if slot is None:
                context = UNNAMED_DONTCARE if kind == "inform" and value == DONTCARE else context
            elif operator == "=" and value is not None and (slot, value) in self._position:
                # Several values for one slot: the last one counts.
                said[self._slot_number[slot]] = self._position[slot, value]
                name_said = name_said or slot == "name"
        requests: dict[int, None] = {}
        if kind == "request":
            requests = {
                self._requestable[slot]: None
                for slot, _, value in items
                if value is None and slot in self._requestable
            }
        elif kind == "confirm":
            requests = {
                self._requestable[slot]: None
                for slot, _, value in items
                if value is not None and slot in self._slot_number
            }
            said, name_said = {}, False
        elif kind == "deny":
            said, name_said = self._denied(act)
        if kind == "affirm":
            context = YES_AND_MORE if items else BARE_YES
        method = self._method_of(kind, bool(said) or context == UNNAMED_DONTCARE, name_said, bool(requests))
        discourse = self._discourse.get(kind, self._discourse["none"])
        return Meaning(tuple(said.items()), tuple(requests), method, discourse, context)

    def _denied(self, act: DialogueAct) -> tuple[dict[int, int], bool]:
        """ "Not this but that" informs of that, if the two are different values of one slot and neither is
        dontcare."""
        if len(act.items) != 2:
            return {}, False
        (slot, _, wrong), (other, _, right) = act.items
        if slot is None or slot != other or right is None or wrong is None or right == wrong:
            return {}, False
        if DONTCARE in (wrong, right) or (slot, right) not in self._position:
            return {}, False
        return {self._slot_number[slot]: self._position[slot, right]}, slot == "name"

    def _method_of(self, kind: str, informs: bool, name_said: bool, requests: bool) -> int:
        if kind == "reqalts":
            return self._method["byalternatives"]
        if kind == "bye":
            return self._method["finished"]
        if informs:
            return self._method["byname" if name_said else "byconstraints"]
        if kind == "restart":
            return self._method["restart"]
        return BYNAME_IF_OFFERED if requests else self._method["none"]

    def _context(self, act: DialogueAct) -> Context:
        kind, items = act
        asked = confirmed = venue = None
        no_venue = False
        answered: tuple[int, ...] = ()
        if kind in ("request", "confirm") and len(items) == 1:
            slot, _, value = items[0]
            if kind == "request" and (slot, DONTCARE) in self._position:
                asked = (self._slot_number[slot or ""], self._position[slot or "", DONTCARE])
            elif kind == "confirm" and (slot, value) in self._position:
                confirmed = (self._slot_number[slot or ""], self._position[slot or "", value or ""])
        elif kind == "inform":
            no_venue = ("name", "=", NO_VENUE) in items
            if not no_venue:
                venue = next(
                    (value for slot, operator, value in items if slot == "name" and operator == "="), None
                )
            if venue is not None:
                answered = tuple(
                    self._requestable[slot] for slot, _, _ in items if slot is not None and slot != "name"
                )
        return Context(asked, confirmed, answered, venue, no_venue)


@lru_cache(maxsize=8)
def understanding_of(domain: Domain) -> Understanding:
    """The understanding for a domain, shared by all its trackers.

    :param domain: the domain
    """
    return Understanding(domain)
