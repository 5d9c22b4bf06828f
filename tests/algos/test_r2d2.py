"""R2D2: updates against a plain loop over steps, acting with a memory, exact state, and that it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from torch.nn import functional as F

from rlexp.algos.r2d2.actor import per_actor_epsilons
from rlexp.algos.r2d2.learner import Learner, Settings
from rlexp.algos.r2d2.policies import RecurrentPolicy
from rlexp.algos.r2d2.r2d2 import R2D2
from rlexp.buffers.mixed_sequences import SequenceSample
from rlexp.config.compose import compose
from rlexp.demonstrations.collect import by_model, record
from rlexp.errors import UsageError
from rlexp.runs.evaluation import Evaluator
from tests.algos.recurrent_environments import GridView, Recall, Screens
from tests.conftest import Rlexp, only_run

SMALL: dict[str, Any] = {
    "batch_size": 8,
    "sequence_length": 4,
    "burn_in": 2,
    "n_steps": 2,
    "learning_starts": 40,
    "buffer_size": 400,
    "train_freq": 4,
    "target_update_interval": 10,
    "seed": 0,
    "device": "cpu",
}
SMALL_NETS = {"net_arch": [8], "lstm_hidden_size": 8}


def make(environment: Any = Recall, n_envs: int = 1, policy: str = "MlpPolicy", **kwargs: Any) -> R2D2:
    nets = {**SMALL_NETS, **kwargs.pop("policy_kwargs", {})}
    return R2D2(
        policy, make_vec_env(environment, n_envs, seed=0), **{**SMALL, "policy_kwargs": nets, **kwargs}
    )


def parameters(model: Any) -> list[th.Tensor]:
    return [value.clone() for value in model.policy.state_dict().values()]


# ------------------------------------------------------------------------- an update against a plain loop


def batch_for(policy: RecurrentPolicy, settings: Settings, length: int, seed: int = 0) -> SequenceSample:
    """Sequences of all kinds: with and without burn-in, short and long, terminated and not, demonstrated or not."""
    generator = th.Generator().manual_seed(seed)
    n, n_actions = 6, int(policy.action_space.n)
    rows = settings.burn_in + length + 1
    lengths = th.tensor([length, 1, 2, length, length - 1, length])
    has_burn_in = th.tensor([True, False, True, False, True, True])
    if settings.burn_in == 0:
        has_burn_in[:] = False
    row = th.arange(rows)[:, None]
    there = (row <= settings.burn_in + lengths) & ((row >= settings.burn_in) | has_burn_in)
    actions = th.randint(n_actions, (rows, n), generator=generator)
    return SequenceSample(
        th.randn(rows, n, 3, generator=generator) * there[..., None],
        th.where(there, actions, n_actions),
        th.randn(rows, n, generator=generator) * 3 * there,
        lengths,
        th.tensor([True, True, False, False, True, False]),
        has_burn_in,
        th.randn(n, policy.state_size, generator=generator),
        th.rand(n, generator=generator) + 0.5,
        th.tensor([0.0, 1.0, 0.0, 1.0, 1.0, 0.0]),
    )


def unroll_one(net: Any, batch: SequenceSample, b: int, burn_in: int) -> list[th.Tensor]:
    """Values of one sequence's window, one step after the other, by the equations of an LSTM."""
    hidden = net.lstm_hidden_size
    h, c = batch.states[b, :hidden], batch.states[b, hidden:]
    weights = [getattr(net.lstm, f"{kind}_l0") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    values = []
    for row in range(0 if batch.has_burn_in[b] else burn_in, burn_in + int(batch.lengths[b]) + 1):
        assert isinstance(batch.observations, th.Tensor)
        last = int(batch.last_actions[row, b])
        one_hot = th.zeros(net.n_actions)
        if last < net.n_actions:
            one_hot[last] = 1.0
        reward = batch.last_rewards[row, b].tanh().reshape(1)
        x = th.cat([net.encoder(batch.observations[row, b]), one_hot, reward])
        gates = weights[0] @ x + weights[2] + weights[1] @ h + weights[3]
        i, f, g, o = gates.chunk(4)
        c = th.sigmoid(f) * c + th.sigmoid(i) * th.tanh(g)
        h = th.sigmoid(o) * th.tanh(c)
        if row < burn_in:
            h, c = h.detach(), c.detach()
        else:
            values.append(net.head(h[None])[0])
    return values


def plain_loss(
    policy: RecurrentPolicy, settings: Settings, batch: SequenceSample
) -> tuple[th.Tensor, list[float]]:
    """The loss and priorities, step by step."""
    epsilon = settings.rescale_epsilon

    def h(x: th.Tensor) -> th.Tensor:
        return x if epsilon is None else x.sign() * ((x.abs() + 1).sqrt() - 1) + epsilon * x

    def inverse(x: th.Tensor) -> th.Tensor:
        if epsilon is None:
            return x
        x = x.double()
        root = (1 + 4 * epsilon * (x.abs() + 1 + epsilon)).sqrt()
        return (x.sign() * (((root - 1) / (2 * epsilon)) ** 2 - 1)).float()

    terms, priorities, count = [], [], 0
    for b in range(len(batch.lengths)):
        length = int(batch.lengths[b])
        online = unroll_one(policy.q_net, batch, b, settings.burn_in)
        with th.no_grad():
            target = unroll_one(policy.q_net_target, batch, b, settings.burn_in)
        sizes = []
        for t in range(length):
            row = settings.burn_in + t
            action = int(batch.last_actions[row + 1, b])
            taken, total, size = online[t][action], th.zeros(()), 0.0
            for n, weight in ((settings.n_steps, settings.n_step_coef), (1, settings.one_step_coef)):
                end = min(t + n, length)
                value = th.zeros(())
                for k in range(t, end):
                    value = (
                        value + settings.gamma ** (k - t) * batch.last_rewards[settings.burn_in + k + 1, b]
                    )
                if not (bool(batch.terminated[b]) and end == length):
                    chooser = online[end].detach() if settings.double_q else target[end]
                    value = value + settings.gamma ** (end - t) * inverse(target[end][chooser.argmax()])
                error = h(value) - taken
                total = total + weight * error**2 / 2
                size += weight * abs(float(error.detach()))
            if batch.is_demonstration[b]:
                demanded = online[t] + settings.margin * (
                    1 - F.one_hot(th.tensor(action), policy.q_net.n_actions)
                )
                total = total + settings.supervised_coef * (demanded.max() - taken)
            terms.append(batch.weights[b] * total)
            sizes.append(size)
            count += 1
        priorities.append(settings.eta * max(sizes) + (1 - settings.eta) * float(np.mean(sizes)))
    loss = th.stack(terms).sum() / count
    squares = th.stack([p.square().sum() for p in policy.q_net.parameters()]).sum()
    return loss + settings.l2_coef * squares, priorities


FORMS: dict[str, dict[str, Any]] = {
    "R2D2": {},
    "no burn-in, one step": {"burn_in": 0, "n_steps": 1},
    "plain values": {"rescale_epsilon": None, "double_q": False},
    "the page's four terms": {
        "one_step_coef": 0.7,
        "supervised_coef": 0.5,
        "l2_coef": 1e-3,
        "n_step_coef": 0.9,
    },
    "n beyond the window": {"n_steps": 10},
}


@pytest.mark.parametrize("form", FORMS)
def test_an_update_is_that_of_a_plain_loop(form: str) -> None:
    """R4, R8: two unrolls and slices of them give the loss, priorities and gradients of a loop over valid steps."""
    settings = Settings(**{"gamma": 0.9, "n_steps": 3, "burn_in": 2, **FORMS[form]})
    policy = make(policy_kwargs={"lstm_hidden_size": 5}).policy
    assert policy.q_net_target is not None
    for parameter in policy.q_net_target.parameters():
        parameter.data += 0.3 * th.randn(parameter.shape, generator=th.Generator().manual_seed(7))
    batch = batch_for(policy, settings, 5)
    unrolls = {"online": 0, "target": 0}
    for name, net in (("online", policy.q_net), ("target", policy.q_net_target)):
        net.head.register_forward_hook(
            lambda *_, name=name: unrolls.__setitem__(
                name, unrolls[name] + th.is_inference_mode_enabled() + 1
            )
        )
    expected, expected_priorities = plain_loss(policy, settings, batch)
    expected_gradients = th.autograd.grad(expected, list(policy.q_net.parameters()))
    unrolls.update(online=0, target=0)
    loss, priorities, _ = Learner(policy, settings).loss(batch)
    gradients = th.autograd.grad(loss, list(policy.q_net.parameters()))
    burns = 1 if settings.burn_in else 0
    assert unrolls == {"online": 1 + burns, "target": 1 + burns}, "one unroll each, behind its burn-in"
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    assert priorities.tolist() == pytest.approx(expected_priorities, rel=1e-4)
    for mine, theirs in zip(gradients, expected_gradients, strict=True):
        th.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-6)
    padded = batch._replace(
        last_actions=th.cat([batch.last_actions, th.full((3, 6), 2)]),
        last_rewards=th.cat([batch.last_rewards, th.zeros(3, 6)]),
        observations=th.cat([batch.observations, th.zeros(3, 6, 3)]),  # type: ignore[list-item]
    )
    again, same_priorities, _ = Learner(policy, settings).loss(padded)
    assert again.item() == pytest.approx(loss.item(), rel=1e-5)
    th.testing.assert_close(same_priorities, priorities)


def test_targets_are_replaced_or_follow() -> None:
    """R13: a hard copy every so many updates, or a soft one."""
    for tau, interval in ((1.0, 3), (0.25, 1)):
        model = make(tau=tau, target_update_interval=interval)
        policy = model.policy
        assert policy.q_net_target is not None
        target = [p.clone() for p in policy.q_net_target.parameters()]
        batch = batch_for(policy, model.learner.settings, 4)
        for update in range(1, 4):
            model.learner.update(batch)
            online = [p.detach() for p in policy.q_net.parameters()]
            for k, parameter in enumerate(policy.q_net_target.parameters()):
                if update % interval == 0:
                    target[k] = tau * online[k] + (1 - tau) * target[k]
                th.testing.assert_close(parameter.detach(), target[k])


# ------------------------------------------------------------------------------------- acting and remembering


class _Peek(BaseCallback):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        names = ("rewards", "dones", "infos", "new_obs", "actions")
        self.steps.append({name: np.copy(self.locals[name]) for name in names})
        return True


def test_stored_states_are_those_of_acting_time() -> None:
    """Unrolling a stored sequence with the weights that acted gives the states at which the next one begins."""
    model = make(learning_starts=10_000, sequence_length=1, burn_in=1, sequence_period=1, buffer_size=2000)
    model.learn(60)
    store = model.replay_buffer.agent
    checked = 0
    for key in range(len(store) - 1):
        one, following = store.take(np.array([key])), store.take(np.array([key + 1]))
        if following.has_burn_in[0] and one.has_burn_in[0]:
            with th.no_grad():
                _, after = model.policy.q_net(
                    th.from_numpy(one.observations[:, :1]).transpose(0, 1),  # type: ignore[index]
                    th.from_numpy(one.last_actions[:, :1]).T,
                    th.from_numpy(one.last_rewards[:, :1]).T,
                    th.from_numpy(one.states),
                )
            np.testing.assert_allclose(after.numpy(), following.states, atol=1e-6)
            checked += 1
        if not one.has_burn_in[0]:
            assert not one.states.any(), "episodes begin with a zero state"
    assert checked > 3


def test_predict_acts_as_training_does() -> None:
    """Previous action and reward are inputs of ``predict``, too."""
    model = make(learning_starts=0, exploration_initial_eps=0.0, exploration_final_eps=0.0, train_freq=1000)
    with th.no_grad():  # values that depend on what was before, so that a slip changes an action
        for parameter in model.policy.q_net.parameters():
            parameter *= 4
    env, peek = make_vec_env(Recall, 1, seed=0), _Peek()
    observation = model.env.reset() if model.env else None  # as learn() does below, once more
    model.learn(80, callback=peek)
    state, start, rewards = None, np.ones(1, bool), np.zeros(1)
    env.seed(0)
    observation = env.reset()
    observation = env.reset()
    for step in peek.steps:
        actions, state = model.predict(observation, state, start, deterministic=True, rewards=rewards)
        np.testing.assert_array_equal(actions, step["actions"])
        observation, rewards, start, _ = env.step(actions)


def test_an_episode_begins_without_anything_remembered() -> None:
    policy = make().policy
    one, other = np.eye(3, dtype=np.float32)[:1], np.eye(3, dtype=np.float32)[1:2]
    _, fresh = policy.predict(one)
    _, state = policy.predict(other)
    _, begun = policy.predict(one, state, np.array([True]), rewards=np.array([5.0]))
    _, gone_on = policy.predict(one, state, np.array([False]), rewards=np.array([5.0]))
    assert fresh is not None and begun is not None and gone_on is not None
    np.testing.assert_array_equal(fresh[0], begun[0])
    assert not np.allclose(fresh[0], gone_on[0])


def test_time_limits_are_no_terminations() -> None:
    """R13: and what is bootstrapped from is the episode's last observation, not the next one's first."""
    model = make(n_envs=2, learning_starts=10_000)
    model.learn(200)
    stored = model.replay_buffer.agent.take(np.arange(len(model.replay_buffer.agent)))
    final = model.burn_in + 4
    assert (stored.lengths == 4).all() and set(stored.last_rewards[:, final].tolist()) == {-1.0, 1.0}
    np.testing.assert_array_equal(stored.terminated, stored.last_rewards[:, final] > 0)
    assert (stored.observations[:, final] == np.eye(3)[2]).all()  # type: ignore[index]


def test_whoever_plays_hands_over_rewards() -> None:
    seen: list[np.ndarray[Any, Any]] = []

    class Spy:
        reads_rewards = True

        def predict(
            self, observation: Any, state: Any, episode_start: Any, deterministic: bool, rewards: Any
        ) -> Any:
            seen.append(np.where(episode_start, 0.0, rewards))
            return np.zeros(len(observation), np.int64), None

    Evaluator(Recall, 4, 2, 0, True).evaluate(Spy())
    assert any((rewards != 0).any() for rewards in seen) is False, (
        "rewards come only at the end of an episode"
    )
    cart = gymnasium.make("CartPole-v1")
    seen.clear()
    Evaluator(lambda: cart, 1, 1, 0, True).evaluate(Spy())
    assert [float(rewards[0]) for rewards in seen] == [0.0] + [1.0] * (len(seen) - 1)
    seen.clear()
    record([cart], by_model(Spy(), True, False), [0, 1], 0, lambda *_: None)
    given = [float(rewards[0]) for rewards in seen]
    assert given.count(0.0) == 2 and given.count(1.0) == len(given) - 2, (
        "also where demonstrations are recorded"
    )


def test_a_ladder_of_exploration_rates() -> None:
    rates = per_actor_epsilons(4, 0.4, 7.0)
    np.testing.assert_allclose(rates, [0.4 ** (1 + 7 * i / 3) for i in range(4)])
    np.testing.assert_allclose(per_actor_epsilons(2, 0.4, 7.0, total=4, first=2), rates[2:])
    assert per_actor_epsilons(1, 0.4, 7.0).tolist() == [0.4]
    model = make(n_envs=3, epsilon_base=0.4, epsilon_exponent=3.0, learning_starts=0)
    given: list[Any] = []
    act = model.acting.act
    model.acting.act = lambda observations, epsilons: given.append(epsilons) or act(observations, epsilons)  # type: ignore[method-assign,func-returns-value]
    model.learn(30)
    np.testing.assert_allclose(given[-1], per_actor_epsilons(3, 0.4, 3.0))


@pytest.mark.parametrize(("environment", "policy"), [(GridView, "MultiInputPolicy"), (Screens, "CnnPolicy")])
def test_grids_and_images(environment: Any, policy: str) -> None:
    model = make(environment, 2, policy)
    model.learn(150)
    assert model._n_updates > 10
    observation = environment().observation_space.sample()
    actions, state = model.predict(observation, deterministic=True)
    assert np.ndim(actions) == 0 and state is not None and state[0].shape == (1, 16)


# -------------------------------------------------------------------------------------- the whole algorithm


@pytest.mark.slow
def test_remembers_what_a_policy_without_memory_cannot() -> None:
    arguments = {**SMALL, "learning_rate": 5e-3, "batch_size": 32, "exploration_final_eps": 0.1, "gamma": 0.95,
             "sequence_length": 4, "burn_in": 0, "exploration_fraction": 0.5}  # fmt: skip
    scores = {}
    for units in (16, 0):
        env = make_vec_env(Recall, 4, seed=0)
        model = R2D2(
            "MlpPolicy", env, **arguments, policy_kwargs={"net_arch": [16], "lstm_hidden_size": units}
        )
        model.learn(6000)
        scores[units] = Evaluator(Recall, 50, 50, 1, True).evaluate(model)["success_rate"]
    assert scores[16] == 1.0 and scores[0] < 0.8


def test_what_cannot_work_is_rejected() -> None:
    for arguments, message in (
        ({"replay": "uniform"}, "replay: 'uniform' given, allowed are proportional, rank"),
        ({"sequence_period": 1}, "sequence_period: 1 given"),
        ({"buffer_size": 4}, "buffer_size: 4 given, must be at least 6"),
        ({"initial_priorities": "maximal"}, "initial_priorities: 'maximal' given"),
    ):
        with pytest.raises(UsageError, match=message):
            make(**arguments)
    with pytest.raises(UsageError, match="VecNormalize"):
        R2D2("MlpPolicy", VecNormalize(make_vec_env(Recall)))


def test_the_command_line(rlexp: Rlexp, tmp_path: Path) -> None:
    arguments = ("algo=r2d2", "env=gym", "env.id=CartPole-v1", "total_timesteps=300", "logger=none",
             "evaluation.episodes=2", "algo.learning_starts=100", "algo.batch_size=4")  # fmt: skip
    done = rlexp(*arguments)
    assert done.returncode == 0, done.stderr
    assert (only_run(tmp_path) / "model.zip").is_file()


@pytest.mark.slow
def test_learns_cartpole() -> None:
    model = R2D2("MlpPolicy", "CartPole-v1", seed=1, device="cpu", batch_size=32, sequence_length=20, train_freq=4,
                 learning_rate=1e-3, learning_starts=500, exploration_fraction=0.4, target_update_interval=100,
                 policy_kwargs={"lstm_hidden_size": 32, "net_arch": [32]})  # fmt: skip
    model.learn(3000)
    played = Evaluator(lambda: gymnasium.make("CartPole-v1"), 10, 10, 5, True).evaluate(model)
    assert played["return_mean"] > 100, "a random policy keeps the pole up for 22 steps"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("algo.sequence_period=1",),
            "algo.sequence_period: 1 given, must be at least burn_in = 2 and at most",
        ),
        (("algo.sequence_period=50",), "at most sequence_length = 40"),
        (("algo.burn_in=50",), "algo.sequence_length: 40 given, must be at least burn_in = 50"),
        (("algo.head_arch=[0]",), r"algo.head_arch: \[0\] given"),
        (("algo.net_arch={pi:[8]}",), "algo.net_arch: .* given"),
        (("algo.buffer_size=100", "hardware.n_envs=2"), "algo.buffer_size: 100 given, must be at least 120"),
    ],
)
def test_settings_that_contradict_one_another(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compose(["algo=r2d2", "env=gym", "env.id=CartPole-v1", "total_timesteps=9", *arguments])
