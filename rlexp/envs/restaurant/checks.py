"""Checks of the environment's arguments: one clear line each, naming key, value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rlexp.envs.restaurant.channel import ERROR_MODELS, MAX_N_BEST
from rlexp.envs.restaurant.summary import ACTIONS
from rlexp.envs.restaurant.user_parameters import USERS
from rlexp.errors import UsageError

RENDER_MODES = ("ansi",)
_MAX_SEED = 2**63


def _invalid(key: str, value: Any, allowed: str) -> ValueError:
    return ValueError(f"{key}={value!r} is not allowed: it must be {allowed}")


def check_number(key: str, value: Any, lowest: float, highest: float) -> float:
    """A finite number in a closed range.

    :param key: name of the argument
    :param value: what was given
    :param lowest: smallest number allowed
    :param highest: largest number allowed
    :raises ValueError: if it is anything else
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _invalid(key, value, f"a number from {lowest:g} to {highest:g}")
    if not lowest <= value <= highest:
        raise _invalid(key, value, f"a number from {lowest:g} to {highest:g}")
    return float(value)


def check_integer(key: str, value: Any, lowest: int, highest: int | None = None) -> int:
    """A whole number in a closed range.

    :param key: name of the argument
    :param value: what was given
    :param lowest: smallest number allowed
    :param highest: largest number allowed, or None for no limit
    :raises ValueError: if it is anything else
    """
    allowed = (
        f"a whole number of at least {lowest}"
        if highest is None
        else f"a whole number from {lowest} to {highest}"
    )
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < lowest
        or (highest is not None and value > highest)
    ):
        raise _invalid(key, value, allowed)
    return value


def check_choice(key: str, value: Any, choices: Sequence[str]) -> str:
    """One of several strings.

    :param key: name of the argument
    :param value: what was given
    :param choices: what is allowed
    :raises ValueError: if it is none of them
    """
    if not isinstance(value, str) or value not in choices:
        raise _invalid(key, value, f"one of {', '.join(choices)}")
    return value


def check_flag(key: str, value: Any) -> bool:
    """True or False.

    :param key: name of the argument
    :param value: what was given
    :raises ValueError: if it is neither
    """
    if not isinstance(value, bool):
        raise _invalid(key, value, "true or false")
    return value


def check_channel(error_model: Any, n_best: Any) -> tuple[str, int]:
    """An error model and the longest list that it may make.

    :param error_model: what was given
    :param n_best: what was given
    :raises ValueError: if they are not allowed or do not go together
    """
    model = check_choice("error_model", error_model, ERROR_MODELS)
    longest = check_integer("n_best", n_best, 1, MAX_N_BEST)
    if model == "random" and longest != 1:
        raise _invalid("n_best", n_best, "1 with error_model='random', which gives a single hypothesis")
    return model, longest


def check_user(user: Any) -> str:
    """A set of user parameters.

    :param user: what was given
    :raises ValueError: if there is no such set
    """
    return check_choice("user", user, USERS)


def check_patience(patience: Any) -> tuple[int, int]:
    """The half-open range from which a user's patience is drawn.

    :param patience: what was given
    :raises ValueError: if it is not a pair (lowest, highest + 1) of whole numbers with 1 <= lowest <= highest
    """
    allowed = (
        "a pair (lowest, highest + 1) of whole numbers with 1 <= lowest <= highest, such as (4, 6) for 4 or 5"
    )
    # Configuration libraries hand over their own list types, which are sequences but neither list nor tuple.
    if isinstance(patience, str) or not isinstance(patience, Sequence) or len(patience) != 2:
        raise _invalid("patience", patience, allowed)
    low, high = patience
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, int):
            raise _invalid("patience", patience, allowed)
    if not 1 <= low < high:
        raise _invalid("patience", patience, allowed)
    return low, high


def check_disabled_actions(disabled: Any) -> tuple[str, ...]:
    """Names of actions that are never allowed, in the order of the actions.

    :param disabled: what was given
    :raises ValueError: if a name is unknown or no action would be left
    """
    if isinstance(disabled, str) or not isinstance(disabled, Sequence):
        raise _invalid("disabled_actions", disabled, f"a list of names out of {', '.join(ACTIONS)}")
    for name in disabled:
        if name not in ACTIONS:
            raise _invalid("disabled_actions", list(disabled), f"a list of names out of {', '.join(ACTIONS)}")
    names = tuple(name for name in ACTIONS if name in disabled)
    if len(names) == len(ACTIONS):
        raise _invalid("disabled_actions", list(disabled), "a list that leaves at least one action enabled")
    return names


def check_confusion_seed(seed: Any) -> int | None:
    """The seed of the confusion tables.

    :param seed: what was given
    :raises ValueError: if it is neither None nor a whole number that is not negative
    """
    return None if seed is None else check_integer("confusion_seed", seed, 0, _MAX_SEED)


class RenderModeError(UsageError, TypeError):
    """A way to show dialogues that there is not; Stable-Baselines3's ``make_vec_env`` takes a TypeError for that."""


def check_render_mode(mode: Any) -> str | None:
    """How a dialogue is rendered.

    :param mode: what was given
    :raises RenderModeError: if it is neither None nor a known mode
    """
    if mode is None:
        return None
    try:
        return check_choice("render_mode", mode, RENDER_MODES)
    except ValueError as error:
        raise RenderModeError(str(error)) from None
