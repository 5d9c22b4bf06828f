"""R2D3: recurrent replay from demonstrations (Paine et al. 2019, "Making efficient use of demonstrations ...")."""

from __future__ import annotations

from io import BufferedIOBase
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import GymEnv, RolloutReturn
from stable_baselines3.common.vec_env import VecEnv

from rlexp.algos.demonstrated import Given, episodes_for, unsaved
from rlexp.algos.pretraining import pretrain
from rlexp.algos.r2d2.policies import RecurrentPolicy
from rlexp.algos.r2d2.r2d2 import R2D2
from rlexp.buffers.sequence_builder import cut_episodes
from rlexp.buffers.sequence_store import MixedSequences
from rlexp.errors import UsageError, did_you_mean

# Weights of the n-step, one-step, large-margin and L2 terms. The paper's loss is R2D2's; the four terms are DQfD's
# (Hester et al. 2018), which DI-engine's R2D3 takes over.
LOSSES = {"paper": (1.0, 0.0, 0.0, 0.0), "page": (1.0, 1.0, 1.0, 1e-5)}


class R2D3(R2D2):
    """R2D2 whose batches hold demonstrations, from a replay of their own.

    :param policy: as in :class:`~rlexp.algos.r2d2.R2D2`, likewise ``env`` and all that is not listed here
    :param demonstrations: file of ``rlexp demos``, or what was read from it
    :param demonstration_episodes: only the first so many; None: all
    :param demonstration_share: ρ: how likely each element of a batch is a demonstration; 0: plain R2D2, 1:
        demonstrations alone
    :param demonstration_priority_epsilon: added to the priorities of demonstrations
    :param pretrain_updates: on demonstrations alone, before the first step
    :param loss: ``"paper"``: the n-step loss only; ``"page"``: all four terms of DQfD
    :param n_step_coef: weight of the n-step loss; None: by ``loss``; likewise ``one_step_coef``, ``supervised_coef``,
        ``l2_coef``. TD terms are half the squared error here; where they are the whole square, as in DI-engine,
        the same ``supervised_coef`` weighs half as much: 0.5 here is 1 there
    :param margin: by which the demonstrated action has to lead
    :raises UsageError: when a setting, a space or the demonstrations cannot work
    """

    def __init__(
        self,
        policy: str | type[RecurrentPolicy],
        env: GymEnv | str,
        demonstrations: Given | None = None,
        demonstration_episodes: int | None = None,
        demonstration_share: float = 0.25,
        demonstration_priority_epsilon: float = 1e-6,
        pretrain_updates: int = 0,
        loss: str = "page",
        n_step_coef: float | None = None,
        one_step_coef: float | None = None,
        supervised_coef: float | None = None,
        l2_coef: float | None = None,
        margin: float = 0.8,
        **r2d2: Any,
    ) -> None:
        if loss not in LOSSES:
            raise UsageError(
                f"loss: '{loss}' given, allowed are {', '.join(LOSSES)}{did_you_mean(loss, LOSSES)}"
            )
        if not 0 <= demonstration_share <= 1:
            raise UsageError(f"demonstration_share: {demonstration_share} given, must be from 0 to 1")
        self.demonstrations = demonstrations
        self.demonstration_episodes = demonstration_episodes
        self.demonstration_share = demonstration_share
        self.demonstration_priority_epsilon = demonstration_priority_epsilon
        self.pretrain_updates = pretrain_updates
        given = (n_step_coef, one_step_coef, supervised_coef, l2_coef)
        chosen = [usual if own is None else own for own, usual in zip(given, LOSSES[loss], strict=True)]
        self.n_step_coef, self.one_step_coef, self.supervised_coef, self.l2_coef = chosen
        self.margin = margin
        super().__init__(policy, env, **r2d2)

    def _take_demonstrations(self) -> None:
        """Fill the demonstrations' replay, which only learning needs: a trained policy acts without the file."""
        replay = self.replay_buffer
        if replay.demonstrations is not None:
            return
        assert self.env is not None
        episodes = episodes_for(
            self.demonstrations, self.demonstration_episodes, self.env, type(self).__name__
        )
        sequences = cut_episodes(
            episodes,
            self.window,
            self.observation_space,
            int(self.action_space.n),  # type: ignore[attr-defined]
            self.policy.state_size,
        )
        store = self._make_store(len(sequences), self.demonstration_priority_epsilon)
        store.add(sequences)
        self.replay_buffer = MixedSequences(replay.agent, store, self.demonstration_share, self.device)

    def _setup_learn(self, *args: Any, **words: Any) -> Any:
        self._take_demonstrations()
        return super()._setup_learn(*args, **words)

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, *args: Any, **words: Any
    ) -> RolloutReturn:
        """Before the first step of all, learn from demonstrations alone."""
        self.pretrain(callback)
        return super().collect_rollouts(env, callback, *args, **words)

    def pretrain(self, callback: BaseCallback) -> None:
        """Learn from demonstrations alone, until that has been done."""
        pretrain(self.pretrain_updates, lambda: self._n_updates, self._pretrain, callback)

    def _pretrain(self, updates: int) -> None:
        self._learn_from_replay(updates, self.batch_size, 1.0)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Do some updates, each on a batch of its own."""
        if len(self.replay_buffer.agent) == 0 and self.demonstration_share == 0:
            return  # nothing of the agent's own is complete yet
        self._learn_from_replay(gradient_steps, batch_size, None)

    def _log_replay(self) -> None:
        super()._log_replay()
        replay = self.replay_buffer
        if replay.demonstrations is None:
            return
        drawn = replay.agent_draws + replay.demonstration_draws
        self.logger.record("replay/demonstration_draws", replay.demonstration_draws)
        self.logger.record("replay/demonstration_share", replay.demonstration_draws / max(drawn, 1))
        self.logger.record("replay/max_demonstration_priority", replay.demonstrations.max_priority)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), *unsaved(self.demonstrations)]

    def load_replay_buffer(self, path: str | Path | BufferedIOBase, truncate_last_traj: bool = True) -> None:
        """Read a replay; see :meth:`SavedReplay.load_replay_buffer`."""
        self._take_demonstrations()
        super().load_replay_buffer(path, truncate_last_traj)

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Take back a state."""
        self._take_demonstrations()
        super().load_checkpoint_state(state)
