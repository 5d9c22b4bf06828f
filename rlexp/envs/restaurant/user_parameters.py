"""How simulated users differ: the probabilities behind their choices."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

USERS = ("sampled", "unfriendly", "default")


class UserParameters(NamedTuple):
    """Probabilities of one user; numbered alternatives share one draw, and what is left is the ordinary
    reaction."""

    inform_combination: float
    """say the next thing on the agenda in the same breath"""
    affirm_combination: float
    """add the next thing on the agenda to a yes"""
    greeting: float
    """greet back"""
    constraint_relax: float
    """give a constraint up rather than replace it by another"""
    tell_about_change: float
    """say a changed constraint at once"""
    add_slot_to_request: float
    """ask each further question in the same act"""
    no_after_reqmore: float
    """answer "anything else?" with no rather than with goodbye"""
    yes_after_reqmore: float
    """answer "anything else?" with a bare yes"""
    deal_with_pending: float
    """say what is still on the agenda before asking further"""
    add_venue_name_to_request: float
    """name the venue in a question"""
    no_slot_with_dontcare: float
    """say "I do not mind" without saying about what"""
    inform_to_confirm: float
    """turn what is still to be said into questions"""
    combine_affirm_with_agenda_item: float
    """answer "anything else?" with a yes and the next thing on the agenda"""
    overrule_correction: float
    """check something else instead of correcting the system"""
    confirm_random_constraint: float
    """check a constraint that an offer does not mention"""
    alternatives_after_first_venue: float
    """ask for another venue at the first offer"""
    change_goal_after_first_venue: float
    """change a constraint at the first offer"""
    correct_by_negate: float
    """correct with "no, ..." """
    correct_by_deny: float
    """correct with "not ..., but ..." """
    thank_after_inform: float
    """thank for an answer"""
    acknowledge_after_inform: float
    """say "okay" to an answer"""


# PyDial's parameters Repeat, NullResp, ByeOrStartOver and NewRequestResp1/2 have no effect in this domain.
_SAMPLED = {
    "inform_combination": (0.2, 0.7),
    "affirm_combination": (0.2, 0.7),
    "greeting": (0.3, 0.7),
    "constraint_relax": (0.5, 0.8),
    "tell_about_change": (0.4, 0.6),
    "add_slot_to_request": (0.2, 0.4),
    "no_after_reqmore": (0.8, 0.9),
    "yes_after_reqmore": (0.2, 0.3),
    "deal_with_pending": (0.4, 0.6),
    "add_venue_name_to_request": (0.01, 0.2),
    "no_slot_with_dontcare": (0.7, 0.9),
    "inform_to_confirm": (0.01, 0.2),
    "combine_affirm_with_agenda_item": (0.01, 0.2),
    "overrule_correction": (0.01, 0.2),
    "confirm_random_constraint": (0.01, 0.3),
    "alternatives_after_first_venue": (0.01, 0.3),
    "change_goal_after_first_venue": (0.01, 0.3),
    "correct_by_negate": (0.3, 0.5),
    "correct_by_deny": (0.3, 0.5),
    "thank_after_inform": (0.01, 0.2),
    "acknowledge_after_inform": (0.01, 0.2),
}
_UNFRIENDLY = {
    **_SAMPLED,
    "inform_combination": (0.0, 0.4),
    "affirm_combination": (0.0, 0.4),
    "greeting": (0.1, 0.4),
    "constraint_relax": (0.2, 0.5),
    "tell_about_change": (0.2, 0.4),
}
_DEFAULT = {
    "inform_combination": 0.6,
    "affirm_combination": 1.0,
    "greeting": 0.5,
    "constraint_relax": 0.667,
    "tell_about_change": 0.5,
    "add_slot_to_request": 0.333,
    "no_after_reqmore": 0.7,
    "yes_after_reqmore": 0.25,
    "deal_with_pending": 0.5,
    "add_venue_name_to_request": 0.05,
    "no_slot_with_dontcare": 0.8,
    "inform_to_confirm": 0.05,
    "combine_affirm_with_agenda_item": 0.05,
    "overrule_correction": 0.1,
    "confirm_random_constraint": 0.1,
    "alternatives_after_first_venue": 0.143,
    "change_goal_after_first_venue": 0.143,
    "correct_by_negate": 0.45,
    "correct_by_deny": 0.4,
    "thank_after_inform": 0.1,
    "acknowledge_after_inform": 0.1,
}
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "sampled": _SAMPLED,
    "unfriendly": _UNFRIENDLY,
    "default": {name: (value, value) for name, value in _DEFAULT.items()},
}
"""User name -> parameter -> (lowest, highest); a user's value is drawn uniformly for each dialogue."""

_LOW_AND_WIDTH = {
    user: tuple((ranges[name][0], ranges[name][1] - ranges[name][0]) for name in UserParameters._fields)
    for user, ranges in RANGES.items()
}
_FIXED = UserParameters(**_DEFAULT)


def sample_parameters(user: str, random: Random) -> UserParameters:
    """Draw the parameters of one user.

    :param user: one of :data:`USERS`
    :param random: source of randomness; untouched by the ``default`` user, whose parameters are fixed
    """
    if user == "default":
        return _FIXED
    draw = random.random
    return UserParameters(*[low + width * draw() for low, width in _LOW_AND_WIDTH[user]])
