"""The focus belief tracker: from what may have been said to what the user may want."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlexp.envs.restaurant.acts import DONTCARE, DialogueAct
from rlexp.envs.restaurant.domain import SLOTS, Domain
from rlexp.envs.restaurant.layout import COUNT_BITS, COUNT_GROUPS, layout_of
from rlexp.envs.restaurant.understanding import (
    AS_SAID,
    BARE_YES,
    BYNAME_IF_OFFERED,
    UNNAMED_DONTCARE,
    Context,
    understanding_of,
)

Hypothesis = tuple[DialogueAct, float]
"""What may have been said, and how probable that is."""


class SlotBelief:
    """The belief about one slot: a probability for every value that has been heard.

    :param slot: its name
    :param first: position of its first value in the state vector
    :param n_values: number of ontology values, dontcare not counted
    """

    __slots__ = ("accepted", "first", "nothing", "p1", "p2", "second", "slot", "threshold", "top", "values")

    def __init__(self, slot: str, first: int, n_values: int) -> None:
        self.slot = slot
        self.first = first
        self.threshold = 1.0 / (n_values - 0.1)
        """What the belief in a value must exceed for the value to be accepted."""
        self.clear()

    def clear(self) -> None:
        """Nothing has been heard yet."""
        self.values: dict[int, float] = {}
        """Position in the state vector -> probability."""
        self.nothing = 1.0
        self.top, self.p1 = self.first, 0.0
        self.second, self.p2 = self.first + 1, 0.0
        self.accepted: str | None = None
        """The accepted value, if the most probable one is probable enough; kept up to date for the three
        wishes."""

    def rank(self) -> None:
        """Find the two most probable values; ties, even between values never heard, go to the earlier
        position."""
        top = second = -1
        p1 = p2 = -1.0
        for position, p in self.values.items():
            if p > p1 or (p == p1 and position < top):
                second, p2 = top, p1
                top, p1 = position, p
            elif p > p2 or (p == p2 and position < second):
                second, p2 = position, p
        if p2 <= 0.0:
            candidates = {self.first: 0.0, self.first + 1: 0.0, self.first + 2: 0.0, **self.values}
            (top, p1), (second, p2) = sorted(candidates.items(), key=lambda pair: (-pair[1], pair[0]))[:2]
        self.top, self.p1, self.second, self.p2 = top, p1, second, p2


class FocusTracker:
    """Keeps the belief state of one dialogue and the state vector that shows it.

    :param domain: the domain
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._layout = layout = layout_of(domain)
        self._understanding = understanding_of(domain)
        self._slots = tuple(
            SlotBelief(slot, layout.first[slot], len(domain.informable[slot])) for slot in layout.slots
        )
        self.beliefs = {belief.slot: belief for belief in self._slots}
        """Slot -> belief, for area, food, pricerange and name."""
        self._constraints = tuple(self.beliefs[slot] for slot in SLOTS)
        self._nothing_heard = layout.nothing_heard
        self._byname = domain.methods.index("byname")
        self._byconstraints = domain.methods.index("byconstraints")
        self._no_method = domain.methods.index("none")
        # Ties between methods go to the one that comes first here.
        order = ("byconstraints", "byname", "finished", "byalternatives", "restart")
        self._methods_in_order = tuple((name, domain.methods.index(name)) for name in order)
        self._count_blocks: dict[tuple[tuple[str, str], ...], array[float]] = _count_blocks(domain)
        self._zeros = array("f", bytes(4 * layout.size))
        self._buffer = array("f", self._zeros)
        self._view = np.frombuffer(self._buffer, dtype=np.float32)
        self.start()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_view"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Copied like the rest, the view would be an array of its own that no update reaches.
        self._view = np.frombuffer(self._buffer, dtype=np.float32)

    def start(self) -> None:
        """Begin a dialogue: nothing has been said."""
        domain, buffer = self.domain, self._buffer
        buffer[:] = self._zeros
        for belief in self._slots:
            belief.clear()
            buffer[self._nothing_heard[belief.slot]] = 1.0
        self.method = [0.0] * len(domain.methods)
        """Probability of every method, in ontology order."""
        self.method[self._no_method] = 1.0
        self.discourse = [0.0] * (len(domain.discourse_acts) + 1)
        """Probability of every discourse act in this turn, in ontology order, and of ``bye``."""
        self.discourse[domain.discourse_acts.index("none")] = 1.0
        self.requested = [0.0] * len(domain.requestable)
        """Probability that each requestable slot has been asked for and not been answered."""
        self.last_venue: str | None = None
        """The venue offered last."""
        self.offered_since_none: list[str] = []
        """Venues offered since the system last said that there is none."""
        self.inform_none = False
        """Whether the last system act said that no venue matches."""
        self.offer_happened = False
        """Whether the last system act offered a venue."""
        self.accepted: tuple[str | None, str | None, str | None] = (None, None, None)
        """The accepted values of area, food and pricerange: a value, dontcare, or None."""
        self._show_rest()
        self._show_counts()

    def vector(self) -> NDArray[np.float32]:
        """A copy of the state vector, float32 of shape (268,) in the Cambridge domain."""
        return self._view.copy()

    def update(self, system_act: DialogueAct, hypotheses: Iterable[Hypothesis]) -> None:
        """Take in one user turn.

        :param system_act: the system act that the user answered
        :param hypotheses: the N-best list, probabilities summing to 1
        """
        understanding = self._understanding
        context = understanding.context(system_act)
        meanings = understanding.meanings
        # Features first in code, last in the rules: nothing below depends on them but "has a venue been
        # offered", and an offer that is being answered counts as one.
        self._note_system_act(context)
        informed: dict[int, dict[int, float]] = {}
        method_mass = [0.0] * len(self.method)
        discourse = [0.0] * len(self.discourse)
        requested = self.requested
        if context.answered:
            for number in context.answered:
                requested[number] = 0.0
        for act, p in hypotheses:
            meaning = meanings.get(act)
            informs, requests, method, discourse_act, completion = meaning or understanding.meaning(act)
            if completion != AS_SAID:
                informs, method = self._complete(context, informs, method, completion)
            for number, position in informs:
                heard = informed.get(number)
                if heard is None:
                    informed[number] = {position: p}
                else:
                    heard[position] = heard.get(position, 0.0) + p
            for number in requests:
                requested[number] = min(1.0, requested[number] + p)
            if method == BYNAME_IF_OFFERED:
                method = self._no_method if self.last_venue is None else self._byname
            method_mass[method] += p
            discourse[discourse_act] += p
        self.discourse = discourse
        self._update_method(method_mass)
        self._show_rest()
        if informed:
            for number, heard in informed.items():
                self._believe(self._slots[number], heard)
            self._show_counts()

    def _complete(
        self, context: Context, informs: tuple[tuple[int, int], ...], method: int, completion: int
    ) -> tuple[tuple[tuple[int, int], ...], int]:
        """Fill in what an act leaves to the system act before it."""
        if completion == UNNAMED_DONTCARE:
            # Understood only right after request(slot); after select or confirm the slot is lost.
            return ((context.asked, *informs) if context.asked is not None else informs), method
        if context.confirmed is None:
            return informs, method
        if completion == BARE_YES:
            return (context.confirmed,), self._byconstraints
        said = {number for number, _ in informs}
        return (informs if context.confirmed[0] in said else (context.confirmed, *informs)), method

    def _believe(self, belief: SlotBelief, heard: dict[int, float]) -> None:
        """b'(v) = q b(v) + u(v) with q = max(0, 1 - sum of u); what is left is "nothing heard"."""
        buffer = self._buffer
        keep = 1.0 - sum(heard.values())
        if keep > 0.0 and belief.values:
            values = {position: keep * p for position, p in belief.values.items()}
            for position, p in heard.items():
                values[position] = values.get(position, 0.0) + p
        else:
            for position in belief.values:
                buffer[position] = 0.0
            values = heard
        total = sum(values.values())
        if total > 1.0:
            values = {position: p / total for position, p in values.items()}
            total = 1.0
        belief.values = values
        belief.nothing = buffer[self._nothing_heard[belief.slot]] = 1.0 - total
        for position, p in values.items():
            buffer[position] = p
        belief.rank()
        if belief.p1 > belief.threshold and belief.p1 >= belief.nothing:
            belief.accepted = self._layout.value_at[belief.top]
        else:
            belief.accepted = None

    def _update_method(self, mass: list[float]) -> None:
        """m'(x) = q m(x) + mass(x), but for "none", which only shrinks when everything is scaled to 1."""
        none = self._no_method
        keep = min(1.0, mass[none])
        method = self.method
        carried = method[none]
        method = [keep * old + new for old, new in zip(method, mass, strict=True)]
        method[none] = carried
        total = sum(method)
        self.method = [p / total for p in method] if total > 1.0 else method

    def _note_system_act(self, context: Context) -> None:
        self.inform_none = context.no_venue
        self.offer_happened = context.venue is not None
        if context.venue is not None:
            self.last_venue = context.venue
            self.offered_since_none.append(context.venue)
        elif context.no_venue:
            self.offered_since_none.clear()

    def _show_rest(self) -> None:
        """Write everything but the slots and the counts; these entries lie side by side."""
        layout = self._layout
        shown = (*self.method, *self.discourse[:-1], *self.requested, self.inform_none, self.offer_happened)
        self._buffer[layout.method : layout.counts] = array("f", shown)

    def _show_counts(self) -> None:
        area, food, pricerange = self._constraints
        self.accepted = (area.accepted, food.accepted, pricerange.accepted)
        sure = [(belief.slot, belief.accepted) for belief in self._constraints if belief.accepted is not None]
        if len(sure) > 1:
            sure.sort(key=lambda pair: -self.beliefs[pair[0]].p1)
        key = tuple(sure)
        block = self._count_blocks.get(key)
        if block is None:
            block = self._count_blocks[key] = count_block(self.domain, key)
        self._buffer[self._layout.counts :] = block

    # -- what policies ask
    # -------------------------------------------------------------------------------------------

    def value_of(self, position: int) -> str:
        """The value that sits at a position of the state vector.

        :param position: for example ``beliefs["area"].top``
        """
        return self._layout.value_at[position]

    def top_method(self) -> str:
        """The method that counts: the most probable one, "none" left out; a weak goodbye is
        none."""
        best, best_p = "byconstraints", 0.0
        for name, number in self._methods_in_order:
            p = self.method[number]
            if p > best_p:
                best, best_p = name, p
        return "byconstraints" if best in ("finished", "restart") and best_p <= 0.5 else best

    def top_discourse(self) -> str | None:
        """The discourse act with more than half of this turn's probability, or None."""
        for name, p in zip((*self.domain.discourse_acts, "bye"), self.discourse, strict=True):
            if p > 0.5:
                return name
        return None

    def requested_slots(self) -> list[str]:
        """Slots that have probably been asked for, in ontology order."""
        return [slot for slot, p in zip(self.domain.requestable, self.requested, strict=True) if p > 0.5]

    def top_name(self, minimum: float = 0.0) -> str | None:
        """The most probable venue name, possibly dontcare; None if it is more probable that none was said.

        :param minimum: the least probability that counts
        """
        belief = self.beliefs["name"]
        if belief.p1 <= 0.0 or belief.p1 < belief.nothing or belief.p1 < minimum:
            return None
        return self._layout.value_at[belief.top]


_BLOCKS: dict[int, tuple[Domain, dict[tuple[tuple[str, str], ...], array[float]]]] = {}


def _count_blocks(domain: Domain) -> dict[tuple[tuple[str, str], ...], array[float]]:
    """The count blocks seen so far, shared by all trackers of a domain."""
    return _BLOCKS.setdefault(id(domain), (domain, {}))[1]


def count_block(domain: Domain, accepted: tuple[tuple[str, str], ...]) -> array[float]:
    """How many venues the 1, 2, ... 5 surest values leave, and whether these can be told apart.

    :param domain: the venues
    :param accepted: (slot, value or dontcare), surest first
    :return: 25 numbers, five groups of [none, one, 2 to 4, more than 4, discriminable]
    """
    block = array("f")
    for k in range(1, COUNT_GROUPS + 1):
        values = dict(accepted[:k])
        query = domain.query(*(values.get(slot) for slot in SLOTS))
        n = len(query.rows)
        block.extend((n == 0, n == 1, 2 <= n <= 4, n > 4, query.discriminable))
    assert len(block) == COUNT_GROUPS * COUNT_BITS
    return block


__all__ = ["DONTCARE", "FocusTracker", "Hypothesis", "SlotBelief", "count_block"]
