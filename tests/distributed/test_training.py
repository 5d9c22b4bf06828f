"""Actors, shards and learner together, in one process; who dies costs his unfinished episode and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from rlexp import R2D2, R2D3
from rlexp.algos.r2d2.actor import per_actor_epsilons
from rlexp.distributed import sharded_replay
from rlexp.distributed.engine import Options
from rlexp.distributed.replay_shard import ReplayShard
from rlexp.distributed.training import Training
from rlexp.distributed.worker import EnvWorker
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.runs import checkpoint
from rlexp.runs.evaluation import Evaluator
from tests.algos.recurrent_environments import GridView, Recall, Screens, demonstrate
from tests.distributed.one_process import OneProcess

SMALL: dict[str, Any] = {
    "batch_size": 8,
    "sequence_length": 4,
    "burn_in": 2,
    "n_steps": 2,
    "learning_starts": 40,
    "buffer_size": 400,
    "train_freq": 4,
    "target_update_interval": 10,
    "policy_kwargs": {"net_arch": [8], "lstm_hidden_size": 8},
}


def make(
    environment: Any = Recall, policy: str = "MlpPolicy", kind: Any = R2D2, n_envs: int = 2, **kwargs: Any
) -> tuple[Any, Callable[[], Any]]:
    def envs() -> Any:
        return make_vec_env(environment, n_envs, seed=0, wrapper_class=EpisodeReplay)

    return kind(policy, envs(), seed=0, **{**SMALL, **kwargs}), envs


class Watch(BaseCallback):
    """Counts as the callbacks of an experiment do."""

    def __init__(self, at_most: int | None = None) -> None:
        super().__init__()
        self.episodes = self.length = 0
        self.at_most = at_most

    def _on_step(self) -> bool:
        for done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if done:
                self.episodes += 1
                self.length += info["episode"]["l"]
        return self.at_most is None or self.episodes < self.at_most


def train(steps: int, options: Options, engine: OneProcess, model: Any, envs: Any, **kwargs: Any) -> Training:
    training = Training(model, envs, options, engine, lambda line: None)
    training.learn(steps, **kwargs)
    return training


@pytest.mark.parametrize(
    ("environment", "policy"), [(Recall, "MlpPolicy"), (GridView, "MultiInputPolicy"), (Screens, "CnnPolicy")]
)
def test_every_kind_of_observation_travels(environment: Any, policy: str) -> None:
    model, envs = make(environment, policy)
    before = [value.clone() for value in model.policy.parameters()]
    train(80, Options(), OneProcess(), model, envs)
    assert any(not th.equal(one, other) for one, other in zip(before, model.policy.parameters(), strict=True))


def test_updates_keep_the_ratio_of_one_process() -> None:
    model, envs = make()
    watch = Watch()
    train(600, Options(actors=3, replay_shards=2), OneProcess(), model, envs, callback=watch)
    steps = model.num_timesteps
    assert 600 <= steps < 600 + 2 * 4, "no more than one result too many"
    assert model._n_updates == (steps - 40) // 8  # train_freq 4, of two environments
    assert watch.episodes == model._episode_num and abs(watch.length - steps) < 3 * 2 * 4


def test_a_free_learner_is_not_held_up() -> None:
    model, envs = make(train_freq=1000)
    engine, turns = OneProcess(), []
    engine.every_turn = lambda: turns.append(model.num_timesteps)
    train(600, Options(update_ratio="free"), engine, model, envs)
    assert model._n_updates > 0.8 * sum(at > 40 for at in turns) > 20


def test_it_learns_what_one_process_learns() -> None:
    arguments = {"learning_rate": 5e-3, "batch_size": 32, "gamma": 0.95, "burn_in": 0}
    model, envs = make(policy_kwargs={"net_arch": [16], "lstm_hidden_size": 16}, n_envs=4, **arguments)
    train(5000, Options(actors=2, replay_shards=2), OneProcess(), model, envs)
    assert Evaluator(Recall, 50, 50, 1, True).evaluate(model)["success_rate"] > 0.9


def test_actors_get_the_learners_weights_and_rates_of_their_own() -> None:
    model, envs = make()
    engine, rates = OneProcess(), []
    usual = EnvWorker.collect

    def spied(self: Any, epsilons: Any, least: int) -> Any:
        rates.append(epsilons)
        return usual(self, epsilons, least)

    EnvWorker.collect = spied  # type: ignore[method-assign]
    try:
        training = train(400, Options(weights_every=1), engine, model, envs)
    finally:
        EnvWorker.collect = usual  # type: ignore[method-assign]
    assert rates[0] == 1.0, "at random before learning begins"
    found = {tuple(np.round(one, 12)) for one in rates if np.ndim(one)}
    per_actor = np.round(per_actor_epsilons(4, 0.4, 7.0), 12)
    assert found == {tuple(per_actor[:2]), tuple(per_actor[2:])}
    # Whoever has worked off what he was asked acts with weights that are at most a few updates old.
    training.actor_pool.broadcast_weights(training.model.policy.state_dict() and _arrays(model), 10**6)
    worker = engine.start(EnvWorker, *engine.processes[-1].arguments)
    engine.call(worker, "set_weights", engine.put(_arrays(model)))
    engine.work_off()
    for name, value in worker.object._policy.state_dict().items():
        assert th.equal(value, model.policy.state_dict()[name])
    assert engine.calls.count("set_weights") > 10


def _arrays(model: Any) -> dict[str, Any]:
    return {name: value.numpy() for name, value in model.policy.state_dict().items()}


def test_initial_priorities_are_those_that_the_learner_would_report() -> None:
    model, envs = make()
    engine = OneProcess()
    training = Training(model, envs, Options(), engine, print)
    worker = training._start_actor(0, 0)
    engine.call(worker, "set_weights", engine.put(_arrays(model)))
    _, complete = engine.call_pair(worker, "collect", 1.0, 4)
    engine.work_off()
    sequences, priorities = complete.value
    np.testing.assert_allclose(priorities, model.learner.initial_priorities(sequences), rtol=1e-5)


def test_a_dead_actor_costs_its_unfinished_episode_and_nothing_else() -> None:
    model, envs = make()
    engine, watch = OneProcess(), Watch()
    turns = [0]
    sent = [0]

    def now_and_then() -> None:
        turns[0] += 1
        if turns[0] % 9 == 0:
            engine.kill(engine.alive(EnvWorker)[turns[0] // 9 % 2])

    usual = EnvWorker.collect

    def counted(self: Any, epsilons: Any, least: int) -> Any:
        found = usual(self, epsilons, least)
        sent[0] += found[0].sequences
        return found

    engine.every_turn = now_and_then
    EnvWorker.collect = counted  # type: ignore[method-assign]
    try:
        training = train(1500, Options(actors=2), engine, model, envs, callback=watch)
    finally:
        EnvWorker.collect = usual  # type: ignore[method-assign]
    assert (
        training.actor_pool.deaths > 10 and training.summary()["actor_deaths"] == training.actor_pool.deaths
    )
    assert training.shards.added >= sent[0] - 4, "all but what was on its way when the run was over"
    assert training.shards.lost == 0
    assert model._n_updates == (model.num_timesteps - 40) // 8 and watch.episodes == model._episode_num
    seeds = [one.arguments[-1] for one in engine.processes if isinstance(one.object, EnvWorker)]
    assert len(set(seeds)) == len(seeds), "whoever comes back plays other episodes"


def test_actors_that_die_before_they_act_end_the_run() -> None:
    model, envs = make()
    engine = OneProcess()
    engine.every_turn = lambda: [engine.kill(one) for one in engine.alive(EnvWorker)] and None
    with pytest.raises(RuntimeError, match="died 5 times in a row"):
        train(500, Options(actors=1), engine, model, envs)


def test_a_dead_shard_is_filled_again_and_learning_goes_on() -> None:
    model, envs = make()
    engine, said = OneProcess(), []

    def once() -> None:
        shards = engine.alive(ReplayShard)
        if model.num_timesteps > 200 and len([one for one in engine.processes if one.dead]) == 0:
            engine.kill(shards[0])

    engine.every_turn = once
    training = Training(model, envs, Options(replay_shards=1), engine, said.append)
    training.learn(800)
    assert training.shards.deaths == 1 and training.shards.lost > 0 and "replaced by an empty one" in said[0]
    # Nothing is learned from an empty replay: the steps until it is filled again bring no updates.
    assert (800 - 200 - 80) // 8 < model._n_updates < (800 - 40) // 8


def test_nobody_waits_for_an_actor_or_a_shard_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded_replay, "_TIMEOUT_S", 0.05)
    monkeypatch.setattr("rlexp.distributed.actor_pool._TIMEOUT_S", 0.05)
    model, envs = make()
    engine = OneProcess()

    def hang() -> None:
        if model.num_timesteps > 150:
            engine.alive(EnvWorker)[0].hangs = engine.alive(ReplayShard)[0].hangs = True

    engine.every_turn = hang
    train(500, Options(actors=2, replay_shards=2), engine, model, envs)
    assert model.num_timesteps >= 500 and model._n_updates == (model.num_timesteps - 40) // 8


def test_demonstrations_are_mixed_in_and_learned_from_first() -> None:
    demonstrations = demonstrate(Recall)
    arguments = {"demonstrations": demonstrations, "demonstration_ratio": 0.25, "pretrain_updates": 30}
    model, envs = make(kind=R2D3, **arguments)
    train(600, Options(), OneProcess(), model, envs)
    replay = model.replay_buffer
    assert replay.agent.added == 0, "the agent's own were elsewhere"
    assert model._n_updates == 30 + (model.num_timesteps - 40) // 8
    own = replay.demonstration_draws - 30 * 8
    assert abs(own / (own + replay.agent_draws) - 0.25) < 0.1
    assert replay.demonstrations.max_priority != 1.0


def test_a_budget_of_episodes_is_kept() -> None:
    model, envs = make()
    watch = Watch(at_most=17)
    train(10**6, Options(), OneProcess(), model, envs, callback=watch)
    assert watch.episodes == 17 or watch.episodes == 18, "two environments may end at the same moment"


def test_a_checkpoint_goes_on_with_weights_and_counters(tmp_path: Any) -> None:
    model, envs = make()

    class Stop(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            if self.model.num_timesteps >= 300:
                checkpoint.save(tmp_path, checkpoint.capture(self.model), self.model.num_timesteps, 1)
                raise KeyboardInterrupt

    engine = OneProcess()
    with pytest.raises(KeyboardInterrupt):
        train(1000, Options(), engine, model, envs, callback=Stop())
    assert not engine.alive(EnvWorker) and not engine.alive(ReplayShard), "nobody is left behind"
    found = checkpoint.load(checkpoint.available(tmp_path)[0])
    again, _ = make()
    checkpoint.restore(again, found)
    assert again._n_updates == model._n_updates > 0 and again.num_timesteps == model.num_timesteps
    for name, value in model.policy.state_dict().items():
        assert th.equal(again.policy.state_dict()[name], value)
    at, said = again.num_timesteps, []
    training = Training(again, envs, Options(), OneProcess(), said.append)
    training.learn(1000 - at, reset_num_timesteps=False)
    assert "the replay of 2 actors is not part of the checkpoint" in said[0] and "40 new steps" in said[0]
    assert again.num_timesteps >= 1000
    assert again._n_updates == model._n_updates + (again.num_timesteps - at - 40) // 8
