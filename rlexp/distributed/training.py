"""Distributed training: the updates of the serial algorithm, fed by actors and replay shards elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import VecEnv

from rlexp.algos.r2d2.actor import per_actor_epsilons
from rlexp.algos.r2d2.r2d2 import R2D2
from rlexp.algos.r2d3.r2d3 import R2D3
from rlexp.distributed.actor_pool import ActorPool, process_seed
from rlexp.distributed.engine import Engine, Handle, Options
from rlexp.distributed.replay_shard import ReplayShard
from rlexp.distributed.sharded_replay import ShardedReplay, ShardPool
from rlexp.distributed.update_ratio import UpdateRatioLimiter
from rlexp.distributed.worker import EnvWorker, Event, Report

_EPSILON_BASE = 0.4  # Horgan et al. 2018
_POLL_S = 0.05  # longest sleep of an idle learner
_DRAIN_TIMEOUT_S = 60.0  # after which the last updates are skipped when no shard answers any more
_ACTORS, _SHARDS = 0, 1  # kinds of processes, part of their seeds


class Training:
    """Trains R2D2 or R2D3 with actors and replay shards in separate processes.

    The model's own environment and replay buffer only provide the spaces. Steps and episodes count as soon as an actor
    has reported them.

    :param model: to be trained
    :param make_envs: builds an actor's environments; must be importable where the actors are
    :param options: how training is distributed
    :param engine: runs the processes
    :param notify: takes a line that says what went wrong and what was done about it
    """

    def __init__(
        self,
        model: R2D2,
        make_envs: Callable[[], VecEnv],
        options: Options,
        engine: Engine,
        notify: Callable[[str], None] = print,
    ) -> None:
        self.model = model
        self.options = options
        self.longest_wait_s = 0.0
        self.waited_s = 0.0
        self.trained_s = 0.0
        self.began: tuple[int, int] = (0, 0)
        self._make_envs = make_envs
        self._engine = engine
        self._notify = notify
        self._n_envs = options.actors * model.n_envs
        self._idle_time = 0.0  # seconds spent waiting for the next batch so far
        self._shard_deaths_seen = 0
        self._weight_ages: list[int] = []

    # ------------------------------------------------------------------------------------------------ processes

    def _start_actor(self, number: int, generation: int) -> Handle:
        model = self.model
        assert model.seed is not None
        return self._engine.start(
            EnvWorker,
            self._make_envs,
            type(model.policy),
            model.policy._get_constructor_parameters(),
            model.learner.settings,
            model.sequence_layout,
            model.initial_priorities == "computed",
            process_seed(model.seed, _ACTORS, number, generation),
        )

    def _start_shard(self, number: int, generation: int) -> Handle:
        model = self.model
        assert model.seed is not None
        return self._engine.start(
            ReplayShard,
            process_seed(model.seed, _SHARDS, number, generation),
            max(1, model.buffer_size // model.sequence_layout.period // self.options.replay_shards),
            model.sequence_layout,
            model.observation_space,
            int(model.action_space.n),  # type: ignore[attr-defined]
            model.policy.state_size,
            model.replay,
            model.alpha,
            model.beta,
            model.priority_epsilon,
        )

    def _broadcast_weights(self) -> None:
        state = self.model.policy.state_dict()
        self.actor_pool.broadcast_weights(
            {name: part.cpu().numpy() for name, part in state.items()}, self.model._n_updates
        )
        self._broadcast_at = self.model._n_updates

    # ------------------------------------------------------------------------------------------------- learning

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 10,
        reset_num_timesteps: bool = True,
    ) -> None:
        """Train until the actors have reported so many steps; the signature is Stable-Baselines3's.

        :param total_timesteps: further environment steps, of all actors together
        :param callback: called as in ``R2D2.learn``, as if all environments were stepped together
        :param log_interval: episodes between two rows of metrics
        :param reset_num_timesteps: start counting at 0
        """
        model, options = self.model, self.options
        ready = model._setup_learn(
            total_timesteps, callback, reset_num_timesteps, type(model).__name__, False
        )
        self._total: int = ready[0]
        callbacks: BaseCallback = ready[1]
        self._log_interval = log_interval
        if model.num_timesteps > 0:
            self._notify(
                f"the replay of {options.actors} actors is not part of the checkpoint: updates resume after "
                f"{model.learning_starts:,} new steps"
            )
        local = model.replay_buffer
        steps_per_request = model.n_envs * model.sequence_layout.period
        self.shards = ShardPool(self._engine, self._start_shard, options.replay_shards, self._notify)
        self.actor_pool = ActorPool(
            self._engine,
            self._start_actor,
            options.actors,
            steps_per_request,
            options.send_every,
            self._notify,
        )
        self.replay = ShardedReplay(local, self.shards, model.batch_size, options.prefetch, model.beta)
        self.limiter = UpdateRatioLimiter(
            self._serial_ratio() if options.update_ratio == "serial" else None,
            model.num_timesteps + model.learning_starts,
            self._n_envs * model.sequence_layout.length * options.send_every,
        )
        self.limiter.reset(self.limiter.learning_starts, model._n_updates)
        model.replay_buffer = self.replay  # type: ignore[assignment]
        callbacks.on_training_start(locals(), globals())
        try:
            if isinstance(model, R2D3):
                model.pretrain(callbacks)
                self.limiter.reset(self.limiter.learning_starts, model._n_updates)
            self._broadcast_weights()
            self._loop(callbacks)
            callbacks.on_training_end()
        finally:
            self.replay.copy_counters_back()
            model.replay_buffer = local
            for handle in (*self.actor_pool.handles, *self.shards.handles):
                self._engine.kill(handle)

    def _serial_ratio(self) -> float:
        """Return updates per step of the same algorithm in one process."""
        model = self.model
        every: int = model.train_freq.frequency * model.n_envs  # type: ignore[union-attr]
        updates = model.gradient_steps if model.gradient_steps >= 0 else every
        return updates / every

    def _loop(self, callback: BaseCallback) -> None:
        model = self.model
        self.began = model.num_timesteps, model._n_updates
        since = time.perf_counter()
        going = True
        while going:
            callback.on_rollout_start()  # rollout boundary: no update is half done
            finished = model.num_timesteps >= self._total
            if not finished:
                self.actor_pool.request_steps(self._allowed_steps(), self._epsilons)
            pending = self._pending_updates()
            if finished and (pending < 1 or self._idle_time > _DRAIN_TIMEOUT_S):
                break
            if pending >= 1:
                self.replay.request_batches()
            going = self._handle_results(pending, callback)
            callback.on_rollout_end()
            self.trained_s = time.perf_counter() - since
            if going and pending >= 1 and self.replay.has_batch:
                self._update()

    def _pending_updates(self) -> float:
        if len(self.shards) == 0 and self.replay.demonstrations is None:
            return 0
        if self.limiter.ratio is None and self.model.num_timesteps >= self._total:
            return 0  # without a ratio, learning stops with the last step
        return self.limiter.pending_updates(self.model.num_timesteps, self.model._n_updates)

    def _allowed_steps(self) -> float:
        """Return how many steps actors may take; a replay that lost everything is refilled first."""
        model = self.model
        if self.shards.deaths > self._shard_deaths_seen:
            self._shard_deaths_seen = self.shards.deaths
            if self.shards.expected_size == 0 and self.replay.demonstrations is None:
                self.limiter.reset(model.num_timesteps + model.learning_starts, model._n_updates)
        return self.limiter.allowed_steps(model.num_timesteps, model._n_updates)

    def _handle_results(self, pending: float, callback: BaseCallback) -> bool:
        """Handle whatever has arrived, waiting briefly when there is nothing else to do.

        :return: False when a callback ended training
        """
        busy = pending >= 1 and self.replay.has_batch
        since = time.perf_counter()
        finished = self.model.num_timesteps >= self._total  # what actors still send no longer counts
        actors = [] if finished else self.actor_pool.refs()
        arrived = self._engine.wait([*actors, *self.shards.refs()], 0.0 if busy else _POLL_S)
        if pending >= 1 and not busy:
            self._idle_time += time.perf_counter() - since
        for ref in arrived:
            self.replay.handle_result(ref)
            result = self.actor_pool.handle_result(ref, self.model._n_updates)
            if result is None:
                continue
            if result.report.sequences:
                self.shards.add(result.sequences, result.report.sequences)
            self._weight_ages.append(result.weights_age)
            if not self._count(result.actor, result.report, callback):
                return False
            if self.model.num_timesteps >= self._total:
                break
        if self.replay.has_batch:
            self.waited_s += self._idle_time
            self.longest_wait_s = max(self.longest_wait_s, self._idle_time)
            self._idle_time = 0.0
        return True

    def _count(self, actor: int, report: Report, callback: BaseCallback) -> bool:
        """Count steps and call the callbacks, as if all environments were stepped together here.

        :return: False when a callback ended training
        """
        model = self.model
        model.num_timesteps += report.steps
        model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
        model._on_step()
        for events in report.events or [[]]:
            dones, infos = self._as_one_vec_env(actor, events)
            model._update_info_buffer(infos, dones)
            callback.update_locals({"dones": dones, "infos": infos})
            if not callback.on_step():
                return False
            for _ in range(int(dones.sum())):
                model._episode_num += 1
                if model._episode_num % self._log_interval == 0:
                    self._log()
                    model.dump_logs()
        return True

    def _as_one_vec_env(
        self, actor: int, events: list[Event]
    ) -> tuple[npt.NDArray[Any], list[dict[str, Any]]]:
        dones = np.zeros(self._n_envs, bool)
        infos: list[dict[str, Any]] = [{} for _ in range(self._n_envs)]
        for event in events:
            env = actor * self.model.n_envs + event.env
            dones[env], infos[env] = event.done, event.info
        return dones, infos

    def _update(self) -> None:
        self.model.train(1, self.model.batch_size)
        if self.model._n_updates - self._broadcast_at >= self.options.weights_every:
            self._broadcast_weights()

    def _epsilons(self, actor: int) -> npt.NDArray[Any] | float:
        model = self.model
        if model.num_timesteps < model.learning_starts:
            return 1.0
        if not self.options.per_actor_epsilon and model.epsilon_base is None:
            return model.exploration_rate
        base = _EPSILON_BASE if model.epsilon_base is None else model.epsilon_base
        n = model.n_envs
        return per_actor_epsilons(n, base, model.epsilon_exponent, self._n_envs, actor * n)

    # -------------------------------------------------------------------------------------------------- reporting

    def _log(self) -> None:
        record = self.model.logger.record
        record("distributed/actor_deaths", self.actor_pool.deaths)
        record("distributed/shard_deaths", self.shards.deaths)
        record("distributed/longest_wait_s", self.longest_wait_s)
        record("distributed/waited_s", self.waited_s)
        if self._weight_ages:
            record("distributed/weights_age", float(np.mean(self._weight_ages)))
            self._weight_ages.clear()

    def summary(self) -> dict[str, Any]:
        """Return counts, speeds and idle time of the learner in this attempt, for ``record.json``."""
        steps, updates = self.model.num_timesteps - self.began[0], self.model._n_updates - self.began[1]
        seconds = max(self.trained_s, 1e-9)
        return {
            "actor_deaths": self.actor_pool.deaths,
            "shard_deaths": self.shards.deaths,
            "sequences_lost": self.shards.lost,
            "steps_per_s": round(steps / seconds, 1),
            "updates_per_s": round(updates / seconds, 1),
            "waited_s": round(self.waited_s, 3),
            "longest_wait_s": round(self.longest_wait_s, 3),
        }
