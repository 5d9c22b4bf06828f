"""The user's implicit check: does what the system takes for granted agree with the goal?"""

from __future__ import annotations

from rlexp.envs.restaurant.acts import DONTCARE, NO_VENUE, DialogueAct, Item
from rlexp.envs.restaurant.user_state import UserState

_NAME_IS_NONE: Item = ("name", "=", NO_VENUE)
_REQALTS = DialogueAct("reqalts")


def check_implicitly(user: UserState, act: DialogueAct) -> bool:
    """Compare every item of a system act with the goal; on a clash leave or correct it.

    :param user: the user, whose agenda and goal are changed by a reaction
    :param act: a system ``inform`` or ``confirm``
    :return: True if the user goes on reacting to the act; False if a reaction has been put on the agenda
    """
    goal, draw, parameters = user.goal, user.random.random, user.parameters
    kind, items = act
    constraints = goal.constraints
    no_venue = _NAME_IS_NONE in items
    may_ask = kind == "inform" and not no_venue
    asked: DialogueAct | None = None
    for slot, _, value in items:
        if slot in constraints:
            wanted = constraints[slot]
            if wanted != DONTCARE and value != wanted:
                _react_to_clash(user, act, DialogueAct("negate", ((slot, "=", wanted),)), value)
                return False
        elif slot == "name" and (goal.name_is is not None or goal.name_not):
            verdict = _check_name(user, act, no_venue)
            if verdict == "unwanted":
                _react_to_clash(user, act, _REQALTS, None)
                return False
            if verdict == "clash":
                _react_to_clash(user, act, DialogueAct("negate", (("name", "=", goal.name_is),)), value)
                return False
            if verdict == "skip":
                continue
        else:
            continue
        # One draw per examined item, not one per act: long acts are questioned more often.
        if may_ask and asked is None and draw() < parameters.confirm_random_constraint:
            asked = _unmentioned_constraint(user, items)
    if asked is None:
        return True
    user.agenda.append(asked)
    # A quirk with consequences: slots such as area become questions, which a later misunderstanding reopens.
    for slot, operator, value in items:
        if operator == "=" and slot is not None:
            goal.requests[slot] = value
    return False


def _check_name(user: UserState, act: DialogueAct, no_venue: bool) -> str:
    """Judge the name in an act, given that the goal has a constraint on it: unwanted, clash, skip or fine."""
    goal = user.goal
    named = [item for item in act[1] if item[0] == "name"]
    clash = goal.name_is is not None and any(
        (value == goal.name_is) == (operator == "!=") for _, operator, value in named
    )
    if goal.name_not and (
        clash or any(operator == "=" and value in goal.name_not for _, operator, value in named)
    ):
        if not no_venue:
            return "unwanted"
        goal.name_not.clear()
    if not any(item[0] in user.domain.info_slots for item in act[1]):
        # Only an act that gives information about a venue is held to be about that venue.
        return "skip"
    return "clash" if clash and not no_venue else "fine"


def _react_to_clash(user: UserState, act: DialogueAct, correction: DialogueAct, wrong: str | None) -> None:
    """Leave, check something else, or correct; then every question is open again.

    :param correction: ``negate(slot=right)``, or ``reqalts()`` which is said as it is
    :param wrong: the system's value
    """
    draw, parameters = user.random.random, user.parameters
    if draw() < (1.0 - user.patience / user.initial_patience) ** 2:
        user.end_dialogue()
        return
    question = None if _NAME_IS_NONE in act[1] else _unmentioned_constraint(user, act[1])
    if question is not None and draw() < parameters.overrule_correction:
        correction = question
    elif correction[0] == "negate":
        form = draw()
        slot, operator, right = correction[1][0]
        if form >= parameters.correct_by_negate + parameters.correct_by_deny:
            correction = DialogueAct("inform", correction[1])
        elif form >= parameters.correct_by_negate:
            correction = DialogueAct("deny", ((slot, operator, wrong), (slot, operator, right)))
    user.agenda.append(correction)
    user.goal.forget_answers()


def _unmentioned_constraint(user: UserState, items: tuple[Item, ...]) -> DialogueAct | None:
    """A question about some constraint that the act does not mention, or None if it mentions all."""
    goal = user.goal
    candidates: list[Item] = [
        (slot, "=", value) for slot, value in goal.constraints.items() if value != DONTCARE
    ]
    # Of the constraints on the name only "=" counts: asking about unwanted venues too makes users
    # ask more than the reference does.
    if goal.name_is is not None:
        candidates.append(("name", "=", goal.name_is))
    candidates = [item for item in candidates if item not in items]
    if not candidates:
        return None
    return DialogueAct("confirm", (candidates[int(user.random.random() * len(candidates))],))
