"""R2D3, DQfD and behaviour cloning: what demonstrations do, what is rejected, exact state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp.algos.bc.bc import BC
from rlexp.algos.dqfd.dqfd import DQfD
from rlexp.algos.r2d3.r2d3 import R2D3
from rlexp.demonstrations import storage as files
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.errors import UsageError
from rlexp.losses.imitation import agreement, cloning_loss
from rlexp.runs import checkpoint
from rlexp.runs.evaluation import Evaluator
from tests.algos.recurrent_environments import GridView, Recall, Screens, demonstrate

SMALL: dict[str, dict[type, Any]] = {
    "nets": {
        R2D3: {"net_arch": [16], "lstm_hidden_size": 16},
        BC: {"net_arch": [16], "lstm_hidden_size": 16},
        DQfD: {"net_arch": [16]},
    },
    "arguments": {
        R2D3: {"sequence_length": 4, "burn_in": 0, "n_steps": 2, "batch_size": 8, "learning_starts": 20,
               "buffer_size": 200, "train_freq": 3, "target_update_interval": 20, "learning_rate": 5e-3},
        BC: {"sequence_length": 4, "batch_size": 16, "learning_rate": 1e-2},
        DQfD: {"n_steps": 3, "batch_size": 8, "learning_starts": 20, "buffer_size": 200, "train_freq": 3,
               "pretrain_updates": 60, "learning_rate": 5e-3, "target_update_interval": 60},
    },
}  # fmt: skip


def make(
    kind: Any, environment: Any = Recall, demonstrations: Any = None, policy: str = "MlpPolicy", **kwargs: Any
) -> Any:
    kwargs = {**SMALL["arguments"][kind], "seed": 0, "device": "cpu", **kwargs}
    env = kwargs.pop("env", None) or make_vec_env(environment, 1, seed=0)
    demonstrations = demonstrate(environment) if demonstrations is None else demonstrations
    return kind(policy, env, demonstrations=demonstrations, policy_kwargs=dict(SMALL["nets"][kind]), **kwargs)


def parameters(model: Any) -> list[th.Tensor]:
    return [value.clone() for value in model.policy.state_dict().values()]


def same(one: list[th.Tensor], other: list[th.Tensor]) -> bool:
    return all(th.equal(left, right) for left, right in zip(one, other, strict=True))


class _Rows(KVWriter):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        self.rows.append(dict(key_values))

    def close(self) -> None: ...


# --------------------------------------------------------------------------------------------------- R2D3


def test_the_two_forms_of_the_loss() -> None:
    """R9: the paper's has the n-step term only, the page's all four; each weight can be set by itself."""
    paper, page = make(R2D3, loss="paper").learner.settings, make(R2D3, loss="dqfd").learner.settings
    assert (paper.n_step_coef, paper.one_step_coef, paper.supervised_coef, paper.l2_coef) == (1, 0, 0, 0)
    assert (page.n_step_coef, page.one_step_coef, page.supervised_coef, page.l2_coef) == (1, 1, 1, 1e-5)
    assert make(R2D3, loss="paper", supervised_coef=0.3).learner.settings.supervised_coef == 0.3
    with pytest.raises(
        UsageError, match="loss: 'papers' given, allowed are paper, dqfd; did you mean 'paper'"
    ):
        make(R2D3, loss="papers")


def test_pre_training_is_on_demonstrations_alone() -> None:
    """R11: all of it before the first step, however few demonstrations there are."""
    model = make(R2D3, demonstrations=demonstrate(Recall, 2), pretrain_updates=120, learning_starts=10_000)
    steps: list[int] = []

    class Peek(BaseCallback):
        def _on_rollout_start(self) -> None:
            steps.append((self.model.num_timesteps, self.model._n_updates))  # type: ignore[arg-type]

        def _on_step(self) -> bool:
            return True

    model.learn(12, callback=Peek())
    assert model._n_updates == 120
    assert steps[:4] == [(0, 0), (0, 50), (0, 100), (0, 120)], "rollout boundaries in between"
    assert model.replay_buffer.demonstration_draws == 120 * 8 and model.replay_buffer.agent_draws == 0
    model.learn(12, reset_num_timesteps=False)
    assert model._n_updates == 120, "and only once"


def test_demonstrations_teach_what_nobody_finds() -> None:
    """The expert's four right steps in a row are shown; without them the loss on its own has nothing to go by."""
    model = make(R2D3, pretrain_updates=150, learning_starts=10_000)
    model.learn(3)
    assert Evaluator(Recall, 30, 30, 1, True).evaluate(model)["success_rate"] == 1.0


def test_draws_are_logged() -> None:
    model, rows = make(R2D3, demonstration_ratio=0.25), _Rows()
    model.set_logger(Logger(None, [rows]))
    model.learn(400, log_interval=5)
    last = rows.rows[-1]
    drawn = last["replay/agent_draws"] + last["replay/demonstration_draws"]
    assert drawn == last["train/n_updates"] * 8
    assert last["replay/demonstration_share"] == pytest.approx(0.25, abs=0.05)
    for name in ("n_step_loss", "one_step_loss", "supervised_loss", "l2", "td_error"):
        assert f"train/{name}" in last


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_extreme_demonstration_ratios(ratio: float) -> None:
    model = make(R2D3, demonstration_ratio=ratio)
    model.learn(60)
    replay = model.replay_buffer
    assert model._n_updates > 5
    assert (replay.demonstration_draws == 0) == (ratio == 0) and (replay.agent_draws == 0) == (ratio == 1)


# ---------------------------------------------------------------------------------------------------- DQfD


def test_one_replay_for_both() -> None:
    """Demonstrations keep their places for ever, n-step returns stay in the episode, bonuses tell the kinds apart."""
    model = make(DQfD, pretrain_updates=0, buffer_size=30, learning_starts=10_000)
    model.learn(100)
    replay = model.replay_buffer
    assert (
        replay.demonstration_buffer is not None
        and len(replay) == 30
        and len(replay.demonstration_buffer) == 80
    )
    before = replay.digest()
    td_errors = np.linspace(-1, 1, 110)
    replay.update_priorities(np.arange(110), td_errors)
    mass = (np.abs(td_errors) + np.where(np.arange(110) >= 30, 1.0, 0.001)) ** 0.4
    np.testing.assert_allclose(replay.priorities.probabilities(), mass / mass.sum(), rtol=1e-6)
    np.random.seed(0)
    batch = replay.sample_mixed(2000)
    marked = batch.is_demonstration[:, 0].numpy() > 0
    np.testing.assert_array_equal(marked, batch.many.indices >= 30)
    assert marked.mean() == pytest.approx(mass[30:].sum() / mass.sum(), abs=0.02)
    # An expert's episode: three rewards of 0, then 1 and the end. Step k of it, three-step returns at γ = 0.99:
    step = (batch.many.indices[marked] - 30) % 4
    for found, expected in (
        (batch.many.rewards, [0, 0.99**2, 0.99, 1]),
        (batch.many.dones, [0, 1, 1, 1]),
        (batch.one.rewards, [0, 0, 0, 1]),
        (batch.one.dones, [0, 0, 0, 1]),
    ):
        np.testing.assert_allclose(found[marked, 0].numpy(), np.array(expected)[step], rtol=1e-5)
    assert replay.digest() == before


def test_a_step_of_dqfd_by_hand() -> None:
    model = make(DQfD, l2_coef=0.01, supervised_coef=0.7, n_step_coef=0.6, td_clip=None)
    model.learn(90)
    np.random.seed(1)
    batch = model.replay_buffer.sample_mixed(16)
    loss, td_errors = model._loss(batch)
    total = 0.0
    with th.no_grad():
        q, following, later = (
            model.q_net(x)
            for x in (batch.many.observations, batch.one.next_observations, batch.many.next_observations)
        )
        target = (model.q_net_target(x) for x in (batch.one.next_observations, batch.many.next_observations))
        near, far = target
        for k in range(16):
            action = int(batch.many.actions[k])
            one = (
                batch.one.rewards[k]
                + 0.99 * (1 - batch.one.dones[k]) * near[k, following[k].argmax()]
                - q[k, action]
            )
            many = (
                batch.many.rewards[k]
                + batch.many.discounts[k] * (1 - batch.many.dones[k]) * far[k, later[k].argmax()]
                - q[k, action]
            )
            lead = max(float(q[k, a]) + 0.8 * (a != action) for a in range(2)) - float(q[k, action])
            weight = float(batch.many.weights[k])
            total += (
                weight * float(one**2 / 2 + 0.6 * many**2 / 2 + 0.7 * lead * batch.is_demonstration[k]) / 16
            )
            assert td_errors[k].item() == pytest.approx(one.item(), abs=1e-5)
        total += 0.01 * sum(float(p.square().sum()) for p in model.q_net.parameters())
    assert loss.item() == pytest.approx(total, rel=1e-4)
    assert 0 < batch.is_demonstration.sum() < 16


def test_dqfd_pre_trains_and_learns_from_both() -> None:
    model = make(DQfD)
    start = [p.clone() for p in model.q_net_target.parameters()]
    model.learn(100)
    replay = model.replay_buffer
    assert model._n_updates > 60 + 15 and replay.agent_draws > 0
    assert replay.demonstration_draws > 60 * 8, "those of pre-training and more"
    assert not same(start, list(model.q_net_target.parameters())), "the target is renewed while pre-training"


# ------------------------------------------------------------------------------------------------------ BC


def test_cloning_by_hand() -> None:
    logits = th.tensor([[[2.0, 0.0]], [[0.0, 1.0]], [[5.0, 0.0]]])
    actions, valid = th.tensor([[0], [0], [1]]), th.tensor([[1.0], [1.0], [0.0]])
    expected = (np.log(1 + np.exp(-2.0)) + np.log(1 + np.exp(1.0))) / 2
    assert cloning_loss(logits, actions, valid).item() == pytest.approx(expected, rel=1e-5)
    assert agreement(logits, actions, valid).item() == 0.5


def test_a_recurrent_clone_and_a_feedforward_one() -> None:
    rates, rows = {}, _Rows()
    for units in (16, 0):
        env = make_vec_env(Recall, 1)
        model = BC("MlpPolicy", env, demonstrate(Recall, 40), seed=0, device="cpu", batch_size=32, sequence_length=4,
                   learning_rate=1e-2, policy_kwargs={"net_arch": [16], "lstm_hidden_size": units})  # fmt: skip
        if units:
            model.set_logger(Logger(None, [rows]))
        model.learn(20_000)
        rates[units] = Evaluator(Recall, 40, 40, 1, True).evaluate(model)["success_rate"]
    assert rates[16] == 1.0 and rates[0] < 0.8
    assert rows.rows[-1]["validation/agreement"] == 1.0
    assert model.num_timesteps >= 20_000 and model._n_updates == pytest.approx(20_000 / (32 * 4), abs=10)


# ---------------------------------------------------------------------------------------- all three of them


@pytest.mark.parametrize("kind", [R2D3, DQfD, BC])
@pytest.mark.parametrize(("environment", "policy"), [(GridView, "MultiInputPolicy"), (Screens, "CnnPolicy")])
def test_grids_and_images(kind: Any, environment: Any, policy: str) -> None:
    model = make(kind, environment, demonstrate(environment, 3), policy)
    model.learn(60)
    assert model._n_updates > 0
    model.predict(environment().observation_space.sample(), deterministic=True)


@pytest.mark.parametrize("kind", [R2D3, DQfD, BC])
def test_demonstrations_that_do_not_fit(kind: Any, tmp_path: Path) -> None:
    cart = make_vec_env("CartPole-v1", 1)
    with pytest.raises(UsageError, match="observations are") as error:
        make(kind, env=cart).learn(10)
    assert "\n" not in str(error.value)
    model = make(kind, env=make_vec_env(Recall, 1), demonstration_episodes=21)
    with pytest.raises(UsageError, match="demonstration_episodes: 21 given, demonstrations holds 20"):
        model.learn(10)
    with pytest.raises(UsageError, match="no such file"):
        make(kind, demonstrations=tmp_path / "none.npz").learn(10)
    without = kind("MlpPolicy", make_vec_env(Recall, 1))
    with pytest.raises(UsageError, match="demonstrations: none given"):
        without.learn(10)
    without.predict(np.zeros(3, np.float32))  # acting needs none


def test_a_file_and_the_first_episodes(tmp_path: Path) -> None:
    demonstrations = demonstrate(Recall, 6)
    files.write(tmp_path / "demonstrations.npz", demonstrations)
    model = make(R2D3, demonstrations=tmp_path / "demonstrations.npz", demonstration_episodes=4)
    model.learn(3)
    assert model.replay_buffer.demonstrations.added == 4


@pytest.mark.parametrize("kind", [R2D3, DQfD])
def test_other_demonstrations_are_rejected_on_resumption(kind: Any) -> None:
    def build(seed: int) -> Any:
        env: Any = DummyVecEnv([lambda: EpisodeReplay(Monitor(Recall()))])
        return make(kind, env=env, demonstrations=demonstrate(Recall, 8, seed=seed))

    model = build(0)
    model.learn(30)
    with pytest.raises(ValueError, match="not those with which this run began"):
        checkpoint.restore(build(50), checkpoint.capture(model))
