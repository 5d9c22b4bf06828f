"""Learning from what many actors send: the same updates as in one process, with everything else elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import VecEnv

from rlexp.algos.r2d2.actor import epsilon_ladder
from rlexp.algos.r2d2.r2d2 import R2D2
from rlexp.algos.r2d3.r2d3 import R2D3
from rlexp.distributed.crew import Crew, seed_of
from rlexp.distributed.engine import Engine, Handle, Options
from rlexp.distributed.pace import Pace
from rlexp.distributed.replay import ShardedReplay, Shards
from rlexp.distributed.shard import ReplayShard
from rlexp.distributed.worker import EnvWorker, Event, Report

_LADDER_BASE = 0.4  # Horgan et al. 2018
_BREATH = 0.05  # seconds that the learner sleeps at most when there is nothing to do
_LAST_PATIENCE = 60.0  # seconds after which the last updates are left out, when no shard answers any more
_ACTORS, _SHARDS = 0, 1  # kinds of processes, for their seeds


class Training:
    """Trains R2D2 or R2D3 with actors and replay in processes of their own.

    The algorithm's acting, learning and storing are what they are in one process; its own environment and replay only
    say what the spaces are. Steps and episodes count when an actor has reported them.

    :param model: to be trained
    :param make_envs: builds an actor's tasks; must be importable where the actors are
    :param options: how learning is spread
    :param engine: runs the processes
    :param say: told in a line what went wrong and what was done about it
    """

    def __init__(
        self,
        model: R2D2,
        make_envs: Callable[[], VecEnv],
        options: Options,
        engine: Engine,
        say: Callable[[str], None] = print,
    ) -> None:
        self.model = model
        self.options = options
        self.longest_wait_s = 0.0
        self.waited_s = 0.0
        self.trained_s = 0.0
        self.began: tuple[int, int] = (0, 0)
        self._make_envs = make_envs
        self._engine = engine
        self._say = say
        self._n_tasks = options.actors * model.n_envs
        self._hunger = 0.0  # seconds waited so far for the next batch
        self._shards_died = 0
        self._ages: list[int] = []

    # ------------------------------------------------------------------------------------------------ processes

    def _start_actor(self, number: int, life: int) -> Handle:
        model = self.model
        assert model.seed is not None
        return self._engine.start(
            EnvWorker,
            self._make_envs,
            type(model.policy),
            model.policy._get_constructor_parameters(),
            model.learner.settings,
            model.window,
            model.initial_priorities == "computed",
            seed_of(model.seed, _ACTORS, number, life),
        )

    def _start_shard(self, number: int, life: int) -> Handle:
        model = self.model
        assert model.seed is not None
        return self._engine.start(
            ReplayShard,
            seed_of(model.seed, _SHARDS, number, life),
            max(1, model.buffer_size // model.window.period // self.options.replay_shards),
            model.window,
            model.observation_space,
            int(model.action_space.n),  # type: ignore[attr-defined]
            model.policy.state_size,
            model.replay,
            model.alpha,
            model.beta,
            model.priority_epsilon,
        )

    def _spread_weights(self) -> None:
        state = self.model.policy.state_dict()
        self.crew.spread({name: part.cpu().numpy() for name, part in state.items()}, self.model._n_updates)
        self._spread_at = self.model._n_updates

    # ------------------------------------------------------------------------------------------------- learning

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 10,
        reset_num_timesteps: bool = True,
    ) -> None:
        """Learn until so many steps have been reported; see :meth:`R2D2.learn`."""
        model, options = self.model, self.options
        ready = model._setup_learn(
            total_timesteps, callback, reset_num_timesteps, type(model).__name__, False
        )
        self._total: int = ready[0]
        told: BaseCallback = ready[1]
        self._log_interval = log_interval
        if model.num_timesteps > 0:
            self._say(
                f"the replay of {options.actors} actors is not kept: learning goes on when it holds "
                f"{model.learning_starts:,} new steps"
            )
        local = model.replay_buffer
        steps_asked = model.n_envs * model.window.period
        self.shards = Shards(self._engine, self._start_shard, options.replay_shards, self._say)
        self.crew = Crew(
            self._engine, self._start_actor, options.actors, steps_asked, options.send_every, self._say
        )
        self.replay = ShardedReplay(local, self.shards, model.batch_size, options.prefetch, model.beta)
        self.pace = Pace(
            self._serial_ratio() if options.pace == "serial" else None,
            model.num_timesteps + model.learning_starts,
            self._n_tasks * model.window.length * options.send_every,
        )
        self.pace.begin_anew(self.pace.begin, model._n_updates)
        model.replay_buffer = self.replay  # type: ignore[assignment]
        told.on_training_start(locals(), globals())
        try:
            if isinstance(model, R2D3):
                model.pretrain(told)
                self.pace.begin_anew(self.pace.begin, model._n_updates)
            self._spread_weights()
            self._go_on(told)
            told.on_training_end()
        finally:
            self.replay.hand_back()
            model.replay_buffer = local
            for handle in (*self.crew.handles, *self.shards.handles):
                self._engine.kill(handle)

    def _serial_ratio(self) -> float:
        """Return updates per step of the same algorithm in one process."""
        model = self.model
        every: int = model.train_freq.frequency * model.n_envs  # type: ignore[union-attr]
        updates = model.gradient_steps if model.gradient_steps >= 0 else every
        return updates / every

    def _go_on(self, callback: BaseCallback) -> None:
        model = self.model
        self.began = model.num_timesteps, model._n_updates
        since = time.perf_counter()
        going = True
        while going:
            callback.on_rollout_start()  # a safe point: no update is half done
            finished = model.num_timesteps >= self._total
            if not finished:
                self.crew.ask(self._room(), self._epsilons)
            owed = self._owed()
            if finished and (owed < 1 or self._hunger > _LAST_PATIENCE):
                break
            if owed >= 1:
                self.replay.ask()
            going = self._take_in(owed, callback)
            callback.on_rollout_end()
            self.trained_s = time.perf_counter() - since
            if going and owed >= 1 and self.replay.is_ready:
                self._update()

    def _owed(self) -> float:
        if len(self.shards) == 0 and self.replay.demonstrations is None:
            return 0
        if self.pace.ratio is None and self.model.num_timesteps >= self._total:
            return 0  # who learns as fast as possible stops with the last step
        return self.pace.owed(self.model.num_timesteps, self.model._n_updates)

    def _room(self) -> float:
        """Return how many steps actors may take; a replay that has lost everything is filled first."""
        model = self.model
        if self.shards.deaths > self._shards_died:
            self._shards_died = self.shards.deaths
            if self.shards.expected == 0 and self.replay.demonstrations is None:
                self.pace.begin_anew(model.num_timesteps + model.learning_starts, model._n_updates)
        return self.pace.room(model.num_timesteps, model._n_updates)

    def _take_in(self, owed: float, callback: BaseCallback) -> bool:
        """Take in whatever has arrived, waiting a moment when there is nothing else to do."""
        busy = owed >= 1 and self.replay.is_ready
        since = time.perf_counter()
        finished = self.model.num_timesteps >= self._total  # whatever actors still send is counted no more
        actors = [] if finished else self.crew.refs()
        arrived = self._engine.settled([*actors, *self.shards.refs()], 0.0 if busy else _BREATH)
        if owed >= 1 and not busy:
            self._hunger += time.perf_counter() - since
        for ref in arrived:
            self.replay.take_in(ref)
            delivery = self.crew.take_in(ref, self.model._n_updates)
            if delivery is None:
                continue
            if delivery.report.sequences:
                self.shards.add(delivery.complete, delivery.report.sequences)
            self._ages.append(delivery.age)
            if not self._account(delivery.actor, delivery.report, callback):
                return False
            if self.model.num_timesteps >= self._total:
                break
        if self.replay.is_ready:
            self.waited_s += self._hunger
            self.longest_wait_s = max(self.longest_wait_s, self._hunger)
            self._hunger = 0.0
        return True

    def _account(self, actor: int, report: Report, callback: BaseCallback) -> bool:
        """Count steps and tell the callbacks what happened, as if the tasks stood side by side here."""
        model = self.model
        model.num_timesteps += report.steps
        model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
        model._on_step()
        for events in report.events or [[]]:
            dones, infos = self._side_by_side(actor, events)
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

    def _side_by_side(self, actor: int, events: list[Event]) -> tuple[npt.NDArray[Any], list[dict[str, Any]]]:
        dones = np.zeros(self._n_tasks, bool)
        infos: list[dict[str, Any]] = [{} for _ in range(self._n_tasks)]
        for event in events:
            place = actor * self.model.n_envs + event.env
            dones[place], infos[place] = event.done, event.info
        return dones, infos

    def _update(self) -> None:
        self.model.train(1, self.model.batch_size)
        if self.model._n_updates - self._spread_at >= self.options.weights_every:
            self._spread_weights()

    def _epsilons(self, actor: int) -> npt.NDArray[Any] | float:
        model = self.model
        if model.num_timesteps < model.learning_starts:
            return 1.0
        if not self.options.ladder and model.ladder_base is None:
            return model.exploration_rate
        base = _LADDER_BASE if model.ladder_base is None else model.ladder_base
        n = model.n_envs
        return epsilon_ladder(n, base, model.ladder_exponent, self._n_tasks, actor * n)

    # -------------------------------------------------------------------------------------------------- telling

    def _log(self) -> None:
        record = self.model.logger.record
        record("distributed/actor_deaths", self.crew.deaths)
        record("distributed/shard_deaths", self.shards.deaths)
        record("distributed/longest_wait_s", self.longest_wait_s)
        record("distributed/waited_s", self.waited_s)
        if self._ages:
            record("distributed/weights_age", float(np.mean(self._ages)))
            self._ages.clear()

    def summary(self) -> dict[str, Any]:
        """Return what there is to say of this attempt: counts, speeds, and how long the learner had to wait."""
        steps, updates = self.model.num_timesteps - self.began[0], self.model._n_updates - self.began[1]
        seconds = max(self.trained_s, 1e-9)
        return {
            "actor_deaths": self.crew.deaths,
            "shard_deaths": self.shards.deaths,
            "sequences_lost": self.shards.lost,
            "steps_per_s": round(steps / seconds, 1),
            "updates_per_s": round(updates / seconds, 1),
            "waited_s": round(self.waited_s, 3),
            "longest_wait_s": round(self.longest_wait_s, 3),
        }
