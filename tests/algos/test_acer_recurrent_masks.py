"""ACER with recurrent policies, and ACER with action masks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.env_util import make_vec_env

from rlexp.algos.acer.acer import ACER, MaskableACER
from rlexp.algos.acer.policies import ACERPolicy
from rlexp.algos.acer.replay import TRUNCATED, Segments
from rlexp.algos.acer.updates import acer_loss
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.errors import UsageError
from tests.algos.acer_environments import Chain, Grid, MaskedChain, Reach, Recall, make
from tests.algos.test_acer_updates import settings, some_segments

LSTM = {"policy": "MlpLstmPolicy", "policy_kwargs": {"net_arch": [16], "lstm_hidden_size": 8}}


def everything(model: ACER) -> Segments:
    return model.replay_buffer.get(np.arange(len(model.replay_buffer)), th.device("cpu"))


# --------------------------------------------------------------------------------------------- recurrent


@pytest.mark.parametrize("environment", [Chain, Reach])
def test_unrolling_segments_repeats_acting(environment: type) -> None:
    model = make(environment, n_envs=3, learning_rate=1e-30, replay_ratio=1, learning_starts=10_000, **LSTM)
    model.learn(300)  # ten segments from each environment, with episodes beginning anywhere inside
    segments = everything(model)
    assert segments.lstm_states is not None and segments.lstm_states.shape == (2, 30, 8)
    assert (segments.lstm_states[:, :3] == 0).all() and (segments.lstm_states[:, 3:] != 0).any()
    statistics, _ = model.policy.evaluate_sequence(segments)
    taken = statistics[: segments.n_transitions]
    expected = taken.log_softmax(-1) if environment is Chain else taken
    found = segments.behaviour.flatten(0, 1)[:, : expected.shape[1]]
    th.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    th.testing.assert_close(model.policy.evaluate_average(segments), taken, atol=1e-5, rtol=1e-4)


def test_truncation_observations_continue_their_episode() -> None:
    model = make(Reach, n_envs=2, learning_starts=10_000, **LSTM)
    model.learn(60)
    segments = everything(model)
    t, b = segments.truncations[:, 0].tolist()
    statistics, _ = model.policy.evaluate_sequence(segments)
    lstm_states = segments.lstm_states[:, b : b + 1] if segments.lstm_states is not None else None
    start = th.zeros(1, dtype=th.bool)
    for step in range(t + 1):
        _, lstm_states = model.policy.step(segments.observations[step, b : b + 1], lstm_states, start)
        start = segments.ends[step, b : b + 1] != 0
    expected, _ = model.policy.step(segments.truncation_observations[:1], lstm_states)
    first_truncation = segments.observations.shape[0] * segments.observations.shape[1]
    th.testing.assert_close(statistics[first_truncation], expected[0])


@pytest.mark.parametrize(
    ("policy", "least", "most"), [("MlpLstmPolicy", 0.95, 1.0), ("MlpPolicy", 0.0, 0.75)]
)
def test_only_a_recurrent_policy_recalls(policy: str, least: float, most: float) -> None:
    model = make(Recall, n_envs=8, policy=policy, batch_size=8, n_steps=6, learning_rate=3e-3)
    model.learn(6000)
    env = make_vec_env(Recall, 40, seed=7)
    observation, state, starts, rewards = env.reset(), None, np.ones(40, bool), []
    for _ in range(6):
        actions, state = model.predict(observation, state, starts, deterministic=True)
        observation, reward, starts, _ = env.step(actions)
        rewards.append(reward)
    assert least <= np.sum(rewards) / 80 <= most
    assert (state is None) == (policy == "MlpPolicy")


def test_images_with_a_recurrent_policy() -> None:
    model = make(Grid, n_envs=2, policy="CnnLstmPolicy", n_steps=5, learning_starts=20).learn(60)
    assert model.policy.lstm.input_size == 128 and model.policy.predict_values(
        th.zeros(1, 4, 10, 10)
    ).shape == (1, 1)


# ------------------------------------------------------------------------------------------------- masks


def test_forbidden_actions_change_nothing() -> None:
    """Three actions of which one is forbidden are two actions: the same loss and the same gradient."""
    three = make(Chain, policy_kwargs={"net_arch": [16]})
    three.learn(200)  # the average policy now differs
    segments = some_segments(continuous=False)
    actions = segments.actions % 2
    behaviour = segments.behaviour[..., :2].log_softmax(-1)
    masks = th.tensor([True, True, False])
    truncation_masks = masks.expand(1, 3)
    padded = th.cat([behaviour, th.full((4, 3, 1), -1e8)], dim=-1)
    with_masks = segments._replace(
        actions=actions, behaviour=padded, masks=masks.expand(5, 3, 3), truncation_masks=truncation_masks
    )
    three.policy.zero_grad()
    loss, info = acer_loss(three.policy, with_masks, settings())
    loss.backward()
    two = copy.deepcopy(three.policy)
    two.zero_grad()
    for layer in (two.action_net, two.value_net, two.average.head):
        layer.weight = th.nn.Parameter(layer.weight[:2].detach().clone())
        layer.bias = th.nn.Parameter(layer.bias[:2].detach().clone())
    assert isinstance(two, ACERPolicy)
    expected, _ = acer_loss(two, segments._replace(actions=actions, behaviour=behaviour), settings())
    expected.backward()
    assert info["constraint_active"] > 0
    th.testing.assert_close(loss, expected)
    found = dict(three.policy.named_parameters())
    for name, parameter in two.named_parameters():
        if parameter.grad is not None:
            gradient = found[name].grad
            assert gradient is not None
            th.testing.assert_close(gradient[: len(parameter)], parameter.grad, atol=1e-6, rtol=1e-4)
            assert len(gradient) == len(parameter) or (gradient[2] == 0).all()


@pytest.mark.parametrize("policy", ["MlpPolicy", "MlpLstmPolicy"])
def test_masks_are_respected_and_stored(policy: str) -> None:
    model = make(MaskedChain, n_envs=2, policy=policy, kind=MaskableACER, learning_starts=40)
    model.learn(600)  # the environment itself asserts that nothing forbidden is done
    segments = everything(model)
    assert segments.masks is not None
    indices = segments.observations.argmax(-1)
    assert th.equal(segments.masks[..., 0], indices % 2 == 0) and not segments.masks[..., 2].any()
    assert (segments.behaviour.exp()[~segments.masks[:-1]] == 0).all()
    observations = np.eye(6, dtype=np.float32)
    for mask in ([True, False, False], [False, False, True]):
        actions, _ = model.predict(observations, action_masks=np.tile(mask, (6, 1)))
        assert (actions == int(np.argmax(mask))).all()


def test_masks_at_truncations() -> None:
    env = make_vec_env(lambda: EpisodeReplay(MaskedChain()), 2, seed=0)
    model = MaskableACER("MlpPolicy", env, n_steps=10, seed=0, learning_starts=10_000, learning_rate=1e-30)
    model.learn(400)
    segments = everything(model)
    assert segments.truncation_masks is not None and (segments.ends == TRUNCATED).any()
    indices = segments.truncation_observations.argmax(-1)
    assert th.equal(segments.truncation_masks[:, 0], indices % 2 == 0), (
        "of the state that ended, not of the next one"
    )
    assert len(set(indices.tolist())) > 1


def test_learns_with_masks() -> None:
    model = make(MaskedChain, n_envs=2, kind=MaskableACER, learning_starts=100)
    model.learn(2000)
    chosen, _ = model.predict(np.eye(6, dtype=np.float32)[[0, 2, 4]], deterministic=True)
    assert (chosen == 1).all()


def test_masks_need_numbered_actions() -> None:
    with pytest.raises(UsageError, match="Discrete"):
        make(Reach, kind=MaskableACER)


def test_the_dialogue_task_from_the_command_line(rlexp: Any, tmp_path: Path) -> None:
    result = rlexp(
        "algo=acer",
        "env=restaurant",
        "env.masks=true",
        "algo.policy=MlpLstmPolicy",
        "total_episodes=30",
        "evaluation.episodes=5",
        "logger=none",
    )
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.glob("outputs/runs/restaurant/acer/*/seed=0/model.zip"))


def test_recurrent_policies_need_shared_features() -> None:
    with pytest.raises(UsageError, match="share"):
        make(Chain, policy="MlpLstmPolicy", policy_kwargs={"share_features_extractor": False})
