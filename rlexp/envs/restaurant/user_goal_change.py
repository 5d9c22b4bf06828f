"""How a simulated user settles on a venue or changes its mind."""

from __future__ import annotations

from rlexp.envs.restaurant.acts import DONTCARE, DialogueAct
from rlexp.envs.restaurant.domain import SLOTS
from rlexp.envs.restaurant.user_state import UserState

_REQALTS = DialogueAct("reqalts")


def settle_or_change(user: UserState, act: DialogueAct, offered: str | None) -> bool:
    """React to an inform that has survived the check: keep the venue, ask for another, or change the goal.

    :param user: the user
    :param act: the system's inform
    :param offered: the venue it names, or None
    :return: True if the user goes on reacting to the act; False if a reaction has been put on the agenda
    """
    goal, parameters = user.goal, user.parameters
    if offered is None and not any(operator == "!=" for _, operator, _ in act[1]):
        change_goal(user, act, None)
        return False
    if not user.first_venue_offered:
        user.first_venue_offered = True
        draw = user.random.random()
        if draw < parameters.alternatives_after_first_venue:
            _avoid(user, offered)
            user.agenda.append(_REQALTS)
            return False
        if draw < parameters.alternatives_after_first_venue + parameters.change_goal_after_first_venue:
            change_goal(user, act, offered)
            return False
    if offered is not None:
        goal.name_is = offered
    return True


def _avoid(user: UserState, venue: str | None) -> None:
    if venue is not None and user.goal.name_is is None and venue not in user.goal.name_not:
        user.goal.name_not.append(venue)


def change_goal(user: UserState, act: DialogueAct, offered: str | None) -> None:
    """Give up or replace one constraint, and ask for other venues.

    A pending inform about the changed slot stays on the agenda, so the user may still say the old value.

    :param user: the user
    :param act: the system act that made the user think again
    :param offered: the venue it names, or None when it said that there is none
    """
    goal, parameters, random = user.goal, user.parameters, user.random
    goal.name_is = None
    goal.name_not.clear()
    candidates = [slot for slot, _, value in act[1] if slot in goal.constraints and value != DONTCARE]
    if not candidates:
        candidates = list(SLOTS)
    slot = candidates[int(random.random() * len(candidates))]
    assert slot is not None
    value = DONTCARE
    if random.random() >= parameters.constraint_relax:
        used = goal.used_values[slot]
        unused = [other for other in user.domain.informable[slot] if other not in used]
        if unused:
            value = unused[int(random.random() * len(unused))]
    goal.constraints[slot] = value
    goal.used_values[slot].append(value)
    if offered is None or random.random() < parameters.tell_about_change:
        user.agenda.append(DialogueAct("reqalts", ((slot, "=", value),)))
        return
    user.agenda.append(_REQALTS)
    if value == DONTCARE:
        _avoid(user, offered)
    else:
        goal.requests[slot] = None


def choose_among_listed(user: UserState, act: DialogueAct) -> str | None:
    """React to "nothing but these venues": choose one of them and give up the constraints that the act does not
    mention.

    :param user: the user
    :param act: ``inform(name=none, name!=x, name!=y, slot=value, ...)``
    :return: the chosen venue
    """
    goal = user.goal
    listed = [value for _, operator, value in act[1] if operator == "!=" and value is not None]
    if not listed:
        return None
    matching = [
        name
        for name in listed
        if name not in goal.name_not and (goal.name_is is None or goal.name_is == name)
    ]
    if not matching:
        goal.name_is = None
        goal.name_not.clear()
        matching = listed
    chosen = matching[int(user.random.random() * len(matching))]
    goal.requests["name"] = chosen
    mentioned = [slot for slot, _, _ in act[1]]
    given_up = [slot for slot in SLOTS if slot not in mentioned]
    for slot in given_up:
        goal.constraints[slot] = DONTCARE
    user.agenda[:] = [
        pending
        for pending in user.agenda
        if pending[0] != "inform" or not any(item[0] in given_up for item in pending[1])
    ]
    return chosen
