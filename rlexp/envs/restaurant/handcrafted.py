"""The handcrafted policy, complete."""

from __future__ import annotations

from random import Random

from rlexp.envs.restaurant import summary, system_acts
from rlexp.envs.restaurant.acts import DONTCARE, DialogueAct
from rlexp.envs.restaurant.domain import SLOTS
from rlexp.envs.restaurant.tracker import FocusTracker

SURE, LIKELY, POSSIBLE, CLOSE = 0.8, 0.6, 0.3, 0.2
_BYE, _REQMORE = DialogueAct("bye"), DialogueAct("reqmore")


def handcrafted_act(tracker: FocusTracker, random: Random) -> DialogueAct:
    """What the handcrafted policy says; it has no memory but the belief state and minds no mask.

    :param tracker: belief state
    :param random: source of randomness, for answers to questions nobody asked and offers among all venues
    """
    return (
        _by_method(tracker, random)
        or _clarify(tracker)
        or _inform(tracker, random)
        or next((summary.request(slot) for slot in SLOTS if tracker.beliefs[slot].p1 < SURE), None)
        or _REQMORE
    )


def _venue(tracker: FocusTracker) -> str | None:
    """The venue under discussion: the one surely named, else the one offered last."""
    name = tracker.top_name(minimum=SURE)
    return tracker.last_venue if name is None or name == DONTCARE else name


def _by_method(tracker: FocusTracker, random: Random) -> DialogueAct | None:
    """Step A: alternatives, questions, goodbye and thanks. Only the first line that matches is tried."""
    method = tracker.top_method()
    if method == "byalternatives":
        return system_acts.alternatives(tracker, random)
    if method == "byname":
        return system_acts.answer(tracker, _venue(tracker), random)
    if method == "finished":
        return _BYE
    if tracker.top_discourse() in ("thankyou", "ack"):
        return _REQMORE if tracker.last_venue is not None else None
    return None


def _clarify(tracker: FocusTracker) -> DialogueAct | None:
    """Step B: ask about the first slot that something, but not enough, is believed about."""
    for slot in SLOTS:
        belief = tracker.beliefs[slot]
        p1 = belief.p1
        if LIKELY < p1 < SURE:
            return summary.confirm(tracker, slot)
        if POSSIBLE < p1 <= LIKELY:
            return summary.select(tracker, slot) if p1 - belief.p2 < CLOSE else summary.confirm(tracker, slot)
    return None


def _inform(tracker: FocusTracker, random: Random) -> DialogueAct | None:
    """Step C: offer or answer once further questions would not narrow the choice."""
    query = system_acts.accepted_query(tracker)
    if len(query.rows) > 1 and query.discriminable and None in tracker.accepted:
        return None
    if tracker.offer_happened and tracker.requested_slots():
        return system_acts.answer(tracker, _venue(tracker), random)
    return system_acts.exact(tracker, random)
