"""R2D3: recurrent replay from demonstrations (Paine et al. 2019, "Making efficient use of demonstrations ...")."""

from __future__ import annotations

from io import BufferedIOBase
from pathlib import Path
from typing import Any

from stable_baselines3.common.type_aliases import GymEnv

from rlexp.algos.common.demonstration_learner import DemonstrationLearner, DemonstrationSource
from rlexp.algos.r2d2.policies import RecurrentPolicy
from rlexp.algos.r2d2.r2d2 import R2D2
from rlexp.algos.r2d3.spec import R2D3Config
from rlexp.buffers.mixed_sequences import MixedSequences
from rlexp.buffers.sequence_builder import cut_episodes
from rlexp.config.validate import check_setting

# Weights of the n-step, one-step, large-margin and L2 terms. The paper's loss is R2D2's; the four terms are DQfD's
# (Hester et al. 2018), which DI-engine's R2D3 takes over.
LOSSES = {"paper": (1.0, 0.0, 0.0, 0.0), "dqfd": (1.0, 1.0, 1.0, 1e-5)}


class R2D3(DemonstrationLearner, R2D2):
    """R2D2 whose batches contain demonstrations, from a replay buffer of their own.

    All arguments of :class:`~rlexp.algos.r2d2.r2d2.R2D2` are taken; these are added.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` or ``"MultiInputPolicy"``
    :param env: discrete actions
    :param demonstrations: file of ``rlexp demos``, a Minari dataset, or what was read from one
    :param demonstration_episodes: only the first so many episodes; None: all
    :param demonstration_ratio: ρ, how likely each element of a batch is a demonstration; 0: plain R2D2, 1:
        demonstrations alone; 1/256 to 1/4
    :param demonstration_priority_epsilon: added to the priorities of demonstrations
    :param pretrain_updates: on demonstrations alone, before the first step
    :param loss: ``"paper"``: the n-step loss only; ``"dqfd"``: all four terms of DQfD
    :param n_step_coef: weight of the n-step loss; None: by ``loss``, 1
    :param one_step_coef: weight of the one-step loss; None: by ``loss``, 0 or 1
    :param supervised_coef: weight of the large-margin loss; None: by ``loss``, 0 or 1. TD terms are half the squared
        error here; where they are the whole square, as in DI-engine, the same coefficient weighs half as much: 0.5 here
        is 1 there
    :param l2_coef: weight of the sum of squares of all parameters; None: by ``loss``, 0 or 1e-5
    :param margin: margin by which the value of the expert's action has to lead
    :param r2d2: every other argument of :class:`~rlexp.algos.r2d2.r2d2.R2D2`
    :raises UsageError: when a setting, a space or the demonstrations cannot work
    """

    config = R2D3Config

    def __init__(
        self,
        policy: str | type[RecurrentPolicy],
        env: GymEnv | str,
        demonstrations: DemonstrationSource | None = None,
        demonstration_episodes: int | None = None,
        demonstration_ratio: float = 0.25,
        demonstration_priority_epsilon: float = 1e-6,
        pretrain_updates: int = 0,
        loss: str = "dqfd",
        n_step_coef: float | None = None,
        one_step_coef: float | None = None,
        supervised_coef: float | None = None,
        l2_coef: float | None = None,
        margin: float = 0.8,
        **r2d2: Any,
    ) -> None:
        check_setting(R2D3Config, "loss", loss)
        self.demonstrations = demonstrations
        self.demonstration_episodes = demonstration_episodes
        self.demonstration_ratio = demonstration_ratio
        self.demonstration_priority_epsilon = demonstration_priority_epsilon
        self.pretrain_updates = pretrain_updates
        explicit = (n_step_coef, one_step_coef, supervised_coef, l2_coef)
        chosen = [
            default if value is None else value for value, default in zip(explicit, LOSSES[loss], strict=True)
        ]
        self.n_step_coef, self.one_step_coef, self.supervised_coef, self.l2_coef = chosen
        self.margin = margin
        super().__init__(policy, env, **r2d2)

    def _load_demonstrations(self) -> None:
        """Fill the demonstration buffer when learning begins: a trained policy acts without the file."""
        replay = self.replay_buffer
        if replay.demonstrations is not None:
            return
        sequences = cut_episodes(
            self._episodes(),
            self.sequence_layout,
            self.observation_space,
            int(self.action_space.n),  # type: ignore[attr-defined]
            self.policy.state_size,
        )
        store = self._make_store(len(sequences), self.demonstration_priority_epsilon)
        store.add(sequences)
        self.replay_buffer = MixedSequences(replay.agent, store, self.demonstration_ratio, self.device)

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        self._load_demonstrations()
        return super()._setup_learn(*args, **kwargs)

    def _pretrain(self, updates: int) -> None:
        self._learn_from_replay(updates, self.batch_size, 1.0)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Do some updates, each on a batch of its own."""
        if len(self.replay_buffer.agent) == 0 and self.demonstration_ratio == 0:
            return  # no sequence of the agent is complete yet
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

    def load_replay_buffer(self, path: str | Path | BufferedIOBase, truncate_last_traj: bool = True) -> None:
        """Read a replay; see :meth:`SavedReplay.load_replay_buffer`."""
        self._load_demonstrations()
        super().load_replay_buffer(path, truncate_last_traj)

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned.

        :param state: of a checkpoint
        """
        self._load_demonstrations()
        super().load_checkpoint_state(state)
