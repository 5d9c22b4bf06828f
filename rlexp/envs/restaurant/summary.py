"""The 16 summary actions and their masks."""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from rlexp.envs.restaurant import system_acts
from rlexp.envs.restaurant.acts import DONTCARE, NO_VENUE, DialogueAct
from rlexp.envs.restaurant.domain import SLOTS
from rlexp.envs.restaurant.tracker import FocusTracker

ACTIONS = (
    "request_area", "confirm_area", "select_area",
    "request_food", "confirm_food", "select_food",
    "request_pricerange", "confirm_pricerange", "select_pricerange",
    "inform", "inform_byname", "inform_alternatives", "bye", "repeat", "reqmore", "restart",
)  # fmt: skip
"""Names of the actions in the order of their numbers."""

_NUMBER = {name: number for number, name in enumerate(ACTIONS)}
_REQUESTS = {slot: DialogueAct("request", ((slot, "=", None),)) for slot in SLOTS}
_BYE, _REQMORE, _NULL = DialogueAct("bye"), DialogueAct("reqmore"), DialogueAct("null")


def request(slot: str) -> DialogueAct:
    """Ask for a slot.

    :param slot: area, food or pricerange
    """
    return _REQUESTS[slot]


def confirm(tracker: FocusTracker, slot: str) -> DialogueAct:
    """Ask whether the most probable value is right, however improbable it is.

    :param tracker: belief state
    :param slot: area, food or pricerange
    """
    return DialogueAct("confirm", ((slot, "=", tracker.value_of(tracker.beliefs[slot].top)),))


def select(tracker: FocusTracker, slot: str) -> DialogueAct:
    """Ask which of the two most probable values is right.

    :param tracker: belief state
    :param slot: area, food or pricerange
    """
    belief = tracker.beliefs[slot]
    first, second = tracker.value_of(belief.top), tracker.value_of(belief.second)
    return DialogueAct("select", ((slot, "=", first), (slot, "=", second)))


def inform_byname(tracker: FocusTracker, random: Random) -> DialogueAct:
    """Answer about the venue the user named, else about the last one offered, else about any.

    :param tracker: belief state
    :param random: source of randomness
    """
    name = tracker.top_name() or tracker.last_venue
    if name is None or name == DONTCARE:
        venues = tracker.domain.venues
        name = venues[int(random.random() * len(venues))]["name"]
    act = system_acts.answer(tracker, name, random)
    return act or DialogueAct("inform", (("name", "=", NO_VENUE), ("name", "=", name)))


def execute(action: int, tracker: FocusTracker, previous: DialogueAct, random: Random) -> DialogueAct:
    """The system act of a summary action in a belief state.

    :param action: number of the action, 0 to 15
    :param tracker: belief state
    :param previous: the system act before this one, which ``repeat`` says again
    :param random: source of randomness
    """
    if action < 9:
        slot = SLOTS[action // 3]
        form = action % 3
        return (
            _REQUESTS[slot] if form == 0 else confirm(tracker, slot) if form == 1 else select(tracker, slot)
        )
    name = ACTIONS[action]
    if name == "inform":
        return system_acts.exact(tracker, random, prefer_last=True)
    if name == "inform_byname":
        return inform_byname(tracker, random)
    if name == "inform_alternatives":
        return system_acts.alternatives(tracker, random)
    if name == "repeat":
        return previous
    # PyDial never implemented restart, which therefore says nothing that can be understood.
    return {"bye": _BYE, "reqmore": _REQMORE, "restart": _NULL}[name]


def static_mask(disabled: tuple[str, ...]) -> NDArray[np.bool_]:
    """The mask that only rules out disabled actions.

    :param disabled: names of actions
    :return: bool of shape (16,), True where allowed
    """
    return np.array([name not in disabled for name in ACTIONS])


class Masks:
    """PyDial's rules about which action makes sense when.

    :param disabled: names of actions that are never allowed
    """

    def __init__(self, disabled: tuple[str, ...]) -> None:
        self.static = static_mask(disabled)
        """What is allowed when only ``disabled`` counts."""
        self.start()

    def start(self) -> None:
        """Begin a dialogue."""
        self.alternatives_wanted = False
        """Whether the user has asked for another venue and not been offered one since."""

    def observe(self, tracker: FocusTracker) -> None:
        """Note a user turn; must be called once after each.

        :param tracker: belief state
        """
        if tracker.top_method() == "byalternatives" and tracker.top_discourse() not in ("thankyou", "ack"):
            self.alternatives_wanted = True

    def executed(self, action: int) -> None:
        """Note that an action has been taken.

        :param action: its number
        """
        if action == _NUMBER["inform_alternatives"]:
            self.alternatives_wanted = False

    def mask(self, tracker: FocusTracker) -> NDArray[np.bool_]:
        """Which actions are allowed now.

        :param tracker: belief state
        :return: bool of shape (16,), True where allowed; at least one is
        """
        method = tracker.top_method()
        offered = tracker.last_venue is not None
        allowed = np.ones(len(ACTIONS), dtype=np.bool_)
        for number, slot in enumerate(SLOTS):
            belief = tracker.beliefs[slot]
            allowed[3 * number + 1] = belief.p1 > 0.0
            allowed[3 * number + 2] = belief.p2 > 0.0
        # More slots than there are would have to be accepted before an offer among discriminable venues is
        # allowed.
        allowed[_NUMBER["inform"]] = (
            method == "byconstraints" and not system_acts.accepted_query(tracker).discriminable
        )
        allowed[_NUMBER["inform_byname"]] = method == "byname" and (offered or tracker.top_name() is not None)
        allowed[_NUMBER["inform_alternatives"]] = self.alternatives_wanted and offered
        allowed[_NUMBER["bye"]] = method == "finished"
        allowed[_NUMBER["reqmore"]] = offered
        allowed[_NUMBER["repeat"]] = allowed[_NUMBER["restart"]] = False
        allowed &= self.static
        # Who disables the requests, which no rule forbids, may be left with nothing: then the rules give way.
        return allowed if allowed.any() else self.static.copy()
