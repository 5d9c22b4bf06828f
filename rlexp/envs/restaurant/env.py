"""The Cambridge restaurant task as a gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlexp.envs.restaurant import checks
from rlexp.envs.restaurant.acts import SYSTEM_ACT_TYPES, DialogueAct
from rlexp.envs.restaurant.channel import ErrorModel
from rlexp.envs.restaurant.confusion import confusion_tables
from rlexp.envs.restaurant.domain import load_domain
from rlexp.envs.restaurant.goals import Goal, possible_goals
from rlexp.envs.restaurant.handcrafted import handcrafted_act
from rlexp.envs.restaurant.layout import layout_of
from rlexp.envs.restaurant.success import is_success
from rlexp.envs.restaurant.summary import ACTIONS, Masks, execute
from rlexp.envs.restaurant.tracker import FocusTracker, Hypothesis
from rlexp.envs.restaurant.transcript import Transcript
from rlexp.envs.restaurant.user import SimulatedUser

Action = int | np.integer[Any] | DialogueAct

_HELLO = DialogueAct("hello")
_CONTROLLER_STREAM = 0x9E3779B97F4A7C15
_TABLE_STREAM = 0xD1B54A32D192ED03


class RestaurantEnv(gymnasium.Env[NDArray[np.float32], Any]):
    """A system that finds restaurants talks to a simulated user over a noisy channel.

    The observation is the belief state, float32 of shape (268,) in the Cambridge domain, entries from 0 to
    1. The action is the number of one of 16 summary actions
    (:data:`~rlexp.envs.restaurant.summary.ACTIONS`), or a dialogue act as :meth:`controller_action` gives
    it. Every system act costs 1; a dialogue that ends in success earns ``success_reward`` with its last
    transition. The defaults are PyDial's benchmark environment 4.

    A dialogue is a function of one integer that ``reset`` draws from ``np_random``, of the actions, and of
    the confusion tables: the same three give bit-identical observations, in any process.

    :param error_rate: probability that the first hypothesis about a user act is wrong, 0 to 1
    :param error_model: ``"set1"`` or ``"set3"``: lists of hypotheses with DSTC 2 statistics (PyDial's
        settings for 15 and 30 %); ``"random"``: a single hypothesis with probability 1, right or replaced
        by any other (environments 1, 2)
    :param n_best: longest list of hypotheses, 1 to 5; 1 with ``"random"``
    :param user: how users behave: ``"sampled"`` or ``"unfriendly"`` draw each user's habits, ``"default"``
        fixes them
    :param patience: (lowest, highest + 1) of a user's patience, drawn for each dialogue
    :param max_turns: system acts after which a dialogue ends
    :param masks: whether ``action_masks`` follows PyDial's rules about which action makes sense when
    :param disabled_actions: names of actions that ``action_masks`` never allows; stepping one still
        executes it
    :param end_on_user_bye: True: the act that made the user leave is the last transition; False: as in
        PyDial, the system acts once more on the state that follows the user's goodbye
    :param max_turns_is_truncation: whether running out of turns is reported as ``truncated`` rather than
        ``terminated``
    :param success_reward: reward of a successful dialogue
    :param database: SQLite file with venues; None for the shipped, invented ones
    :param ontology: JSON file that goes with it; None for the shipped one
    :param confusion_seed: decides which of equally near words are confused with one another, which makes a
        task a little easier or harder for good; None: drawn with the first dialogue and kept
    :param render_mode: ``"ansi"`` to keep a transcript for ``render``, or None
    :raises ValueError: for an argument that is not allowed, or a file that cannot be read or does not fit
    """

    metadata = {"render_modes": list(checks.RENDER_MODES)}  # noqa: RUF012
    action_names = ACTIONS
    """Names of the actions in the order of their numbers."""
    controllers = ("handcrafted", "random", "uniform")
    """Policies that come with the task; ``random`` draws among the allowed actions, ``uniform`` among all
    16."""

    def __init__(
        self,
        error_rate: float = 0.15,
        error_model: str = "set1",
        n_best: int = 5,
        user: str = "sampled",
        patience: Sequence[int] = (4, 6),
        max_turns: int = 25,
        masks: bool = False,
        disabled_actions: Sequence[str] = ("repeat", "restart"),
        end_on_user_bye: bool = True,
        max_turns_is_truncation: bool = False,
        success_reward: float = 20.0,
        database: str | Path | None = None,
        ontology: str | Path | None = None,
        confusion_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.error_rate = checks.check_number("error_rate", error_rate, 0.0, 1.0)
        self.error_model, self.n_best = checks.check_channel(error_model, n_best)
        self.user = checks.check_user(user)
        self.patience = checks.check_patience(patience)
        self.max_turns = checks.check_integer("max_turns", max_turns, 1)
        self.masks = checks.check_flag("masks", masks)
        self.disabled_actions = checks.check_disabled_actions(disabled_actions)
        self.end_on_user_bye = checks.check_flag("end_on_user_bye", end_on_user_bye)
        self.max_turns_is_truncation = checks.check_flag("max_turns_is_truncation", max_turns_is_truncation)
        self.success_reward = checks.check_number("success_reward", success_reward, 0.0, 1e9)
        self.confusion_seed = checks.check_confusion_seed(confusion_seed)
        """Seed of the confusion tables in use; None until the first dialogue has begun."""
        self.render_mode = checks.check_render_mode(render_mode)

        self.domain = load_domain(database, ontology)
        possible_goals(self.domain)
        self._size = layout_of(self.domain).size
        self.observation_space, self.action_space = _spaces(self._size)
        self.tracker = FocusTracker(self.domain)
        self.simulated_user = SimulatedUser(self.domain, self.user, self.patience)
        self.channel = ErrorModel(self.domain, self.error_rate, self.error_model, self.n_best)
        self._masks = Masks(self.disabled_actions)
        self._random = Random(0)
        self._controller_random: Random | None = None
        self._running = False
        self._transcript: Transcript | None = None

    # -- gymnasium
    # ---------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a dialogue: the system says hello and receives the user's first act.

        :param seed: seed of ``np_random``, or None to go on with it
        :param options: none are known
        :return: the first observation and an empty info
        """
        super().reset(seed=seed)
        self._dialogue_seed = number = int(self.np_random.integers(2**63))
        if self.confusion_seed is None:
            # Not a second draw: replaying a dialogue must take the same from np_random, first dialogue or
            # not.
            self.confusion_seed = (number ^ _TABLE_STREAM) % 2**32
        if self.channel.tables is None:
            kind = "random" if self.error_model == "random" else "levenshtein"
            self.channel.tables = confusion_tables(self.domain, kind, self.confusion_seed)
        self._random.seed(number)
        # Controllers draw elsewhere, so that stepping the same acts without them gives the same dialogue.
        self._controller_random = None
        self.simulated_user.start(self._random)
        self.tracker.start()
        self._masks.start()
        self.system_turns = 0
        self.system_act = _HELLO
        self.user_has_left = False
        self._running = True
        self._transcript = Transcript() if self.render_mode == "ansi" else None
        if self._transcript is not None:
            self._transcript.start(self.goal)
            self._transcript.system(_HELLO)
        self.user_act = self.simulated_user.turn(_HELLO)
        self._receive()
        return self.tracker.vector(), {}

    def step(self, action: Action) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Let the system act and receive the user's answer.

        A masked or disabled action is executed like any other.

        :param action: number of a summary action, or a system act
        :return: observation (zeros once the dialogue has terminated), reward, terminated, truncated, and an
            info that is empty until the end; then ``is_success``, ``turns`` (as PyDial counts them, with
            the turn that answers the user's goodbye), ``system_turns`` (system acts taken here, which the
            return counts), ``ended_by`` (``system_bye``, ``user_bye``, ``patience`` or ``max_turns``)
        :raises ValueError: if there is no such action
        :raises gymnasium.error.ResetNeeded: if no dialogue is under way
        """
        if not self._running:
            raise gymnasium.error.ResetNeeded(
                "the dialogue has ended or not begun: call reset() before step()"
            )
        act = action if isinstance(action, DialogueAct) else self._execute(action)
        if act[0] not in SYSTEM_ACT_TYPES:
            raise ValueError(
                f"action={act} is not a system act: its type must be one of {', '.join(SYSTEM_ACT_TYPES)}"
            )
        self.system_act = act
        self.system_turns += 1
        if self._transcript is not None:
            self._transcript.system(act)
        if self.user_has_left:
            return self._end("user_bye")
        if act[0] == "bye":
            return self._end("system_bye")
        user_act = self.user_act = self.simulated_user.turn(act)
        if self.system_turns >= self.max_turns:
            return self._end("max_turns")
        if user_act[0] == "bye":
            if self.end_on_user_bye:
                return self._end("user_bye")
            self.user_has_left = True
        self._receive()
        return self.tracker.vector(), -1.0, False, False, {}

    def render(self) -> str | None:
        """The dialogue so far, as text.

        :return: None unless ``render_mode="ansi"``
        """
        return None if self._transcript is None else str(self._transcript)

    # -- what goes on
    # ------------------------------------------------------------------------------------------------

    @property
    def goal(self) -> Goal:
        """The user's goal as it stands; the user may change it."""
        return self.simulated_user.goal

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are allowed now, as sb3-contrib asks for it: bool of shape (16,).

        Without ``masks``, everything but ``disabled_actions``.
        """
        return self._masks.mask(self.tracker) if self.masks else self._masks.static.copy()

    def controller_action(self, name: str) -> Action:
        """What one of the policies that come with the task does in this state.

        :param name: one of :attr:`controllers`
        :return: something to pass to :meth:`step`
        :raises ValueError: if there is no such policy
        """
        if self._controller_random is None:
            self._controller_random = Random(getattr(self, "_dialogue_seed", 0) ^ _CONTROLLER_STREAM)
        random = self._controller_random
        if name == "handcrafted":
            return handcrafted_act(self.tracker, random)
        if name == "random":
            allowed = np.flatnonzero(self.action_masks())
            return int(allowed[int(random.random() * len(allowed))])
        if name == "uniform":
            return int(random.random() * len(ACTIONS))
        raise ValueError(
            f"controller={name!r} is not allowed: it must be one of {', '.join(self.controllers)}"
        )

    def _execute(self, action: Any) -> DialogueAct:
        number = int(action)
        if not 0 <= number < len(ACTIONS) or number != action:
            raise ValueError(
                f"action={action!r} is not allowed: it must be a whole number from 0 to {len(ACTIONS) - 1}"
            )
        if self.masks:
            self._masks.executed(number)
        return execute(number, self.tracker, self.system_act, self._random)

    def _receive(self) -> None:
        """Put the user's act through the channel and take in what arrives."""
        self.hypotheses: list[Hypothesis] = self.channel.transmit(self.user_act, self._random)
        self.tracker.update(self.system_act, self.hypotheses)
        if self.masks:
            self._masks.observe(self.tracker)
        if self._transcript is not None:
            self._transcript.user(self.user_act, self.hypotheses)

    def _end(self, how: str) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self._running = False
        if how == "user_bye" and self.simulated_user.patience < 1:
            how = "patience"
        success = is_success(self.domain, self.goal)
        truncated = how == "max_turns" and self.max_turns_is_truncation
        if truncated:
            # A learner that bootstraps at a truncation needs the state that would have followed.
            self._receive()
        # PyDial's dialogues go on for one turn after the user's goodbye, which is counted here too.
        uncounted = self.end_on_user_bye and how in ("user_bye", "patience")
        info = {
            "is_success": success,
            "turns": self.system_turns + uncounted,
            "system_turns": self.system_turns
            - (how in ("user_bye", "patience") and not self.end_on_user_bye),
            "ended_by": how,
        }
        if self._transcript is not None:
            unheard = not truncated and not self.user_has_left and how != "system_bye"
            self._transcript.end(self.user_act if unheard else None, info, self.goal)
        observation = self.tracker.vector() if truncated else np.zeros(self._size, dtype=np.float32)
        reward = -1.0 + (self.success_reward if success else 0.0)
        return observation, reward, not truncated, truncated, info


@lru_cache(maxsize=8)
def _space_templates(size: int) -> tuple[Any, Any]:
    return spaces.Box(0.0, 1.0, (size,), np.float32), spaces.Discrete(len(ACTIONS))


def _spaces(size: int) -> tuple[Any, Any]:
    """Spaces of one environment: copies, because a space has a random generator of its own."""
    box, discrete = _space_templates(size)
    return copy(box), copy(discrete)
