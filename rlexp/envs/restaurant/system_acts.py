"""The system's longer acts: offers, answers, and admitting that nothing fits."""

from __future__ import annotations

from random import Random

from rlexp.envs.restaurant.acts import DONTCARE, NO_VENUE, DialogueAct, Item
from rlexp.envs.restaurant.domain import SLOTS, Domain, Query
from rlexp.envs.restaurant.tracker import FocusTracker

MAX_INFORM_SLOTS = 5
"""At most so many slots are in one act, the name not counted."""


def accepted_query(tracker: FocusTracker) -> Query:
    """The venues that meet the accepted values.

    :param tracker: belief state
    """
    return tracker.domain.query(*tracker.accepted)


def first_venue(domain: Domain, query: Query, random: Random) -> dict[str, str]:
    """The first matching venue; any venue when nothing has narrowed the choice.

    :param domain: the venues
    :param query: a query that at least one venue meets
    :param random: source of randomness
    """
    rows = query.rows
    return domain.venues[rows[0] if query.constrained else rows[int(random.random() * len(rows))]]


def offer(tracker: FocusTracker, venue: dict[str, str]) -> DialogueAct:
    """Name a venue together with its value of every accepted slot, slots accepted as dontcare included.

    :param tracker: belief state
    :param venue: slot -> value
    """
    items: list[Item] = [("name", "=", venue["name"])]
    for slot, value in zip(SLOTS, tracker.accepted, strict=True):
        if value is not None:
            items.append((slot, "=", venue[slot]))
    return DialogueAct("inform", tuple(items))


def no_match(tracker: FocusTracker) -> DialogueAct:
    """Say that no venue meets the accepted values.

    :param tracker: belief state
    """
    items: list[Item] = [("name", "=", NO_VENUE)]
    for slot, value in zip(SLOTS, tracker.accepted, strict=True):
        if value is not None and value != DONTCARE:
            items.append((slot, "=", value))
    return DialogueAct("inform", tuple(items))


def exact(tracker: FocusTracker, random: Random, prefer_last: bool = False) -> DialogueAct:
    """Offer a venue that meets the accepted values.

    :param tracker: belief state
    :param random: source of randomness
    :param prefer_last: offer the last offered venue again if it is one of them
    """
    query = accepted_query(tracker)
    if not query.rows:
        return no_match(tracker)
    if prefer_last and tracker.last_venue is not None:
        last = tracker.domain.venue_by_name.get(tracker.last_venue)
        if last is not None and any(tracker.domain.venues[row] is last for row in query.rows):
            return offer(tracker, last)
    return offer(tracker, first_venue(tracker.domain, query, random))


def alternatives(tracker: FocusTracker, random: Random) -> DialogueAct:
    """Offer a venue that has not been offered yet, or say that there is no other.

    :param tracker: belief state
    :param random: source of randomness
    """
    query, domain = accepted_query(tracker), tracker.domain
    if not query.rows:
        return no_match(tracker)
    fresh = [row for row in query.rows if domain.venues[row]["name"] not in tracker.offered_since_none]
    if fresh:
        return offer(tracker, first_venue(domain, query._replace(rows=tuple(fresh)), random))
    items: list[Item] = [("name", "=", NO_VENUE)]
    items.extend(("name", "!=", domain.venues[row]["name"]) for row in query.rows)
    for slot, value in zip(SLOTS, tracker.accepted, strict=True):
        if value is not None:
            items.append((slot, "=", value))
    return DialogueAct("inform", tuple(items))


def answer(tracker: FocusTracker, name: str | None, random: Random) -> DialogueAct | None:
    """Tell what has been asked about a venue, or one thing by chance if nothing has; who asks the name is
    not mentioned any more.

    What the database does not know is said as it stands there ("not available").

    :param tracker: belief state
    :param name: the venue
    :param random: source of randomness
    :return: None if there is no such venue
    """
    venue = tracker.domain.venue_by_name.get(name or "")
    if venue is None:
        return None
    requested = tracker.requested_slots()
    slots = [slot for slot in requested if slot != "name"]
    if not requested:
        others = [slot for slot in tracker.domain.requestable if slot != "name"]
        slots = [others[int(random.random() * len(others))]]
    elif len(slots) > MAX_INFORM_SLOTS:
        chosen = random.sample(slots, MAX_INFORM_SLOTS)
        slots = [slot for slot in slots if slot in chosen]
    items: list[Item] = [("name", "=", venue["name"])]
    items.extend((slot, "=", venue[slot]) for slot in slots)
    return DialogueAct("inform", tuple(items))
