"""What users of Stable-Baselines3 rely on, on the classes here as on Stable-Baselines3's own."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import (
    CheckpointCallback,
    LogEveryNTimesteps,
    StopTrainingOnMaxEpisodes,
)
from stable_baselines3.common.logger import KVWriter, Logger

import rlexp
from rlexp import A2C, ACER, BC, DQN, LCPO, R2D2, R2D3, SACLSTM, SLAC, TAM, DQfD, MaskableLCPO, RecurrentPPO
from rlexp.algos.r2d2.policies import RecurrentPolicy
from rlexp.algos.sac_lstm.policies import SACLSTMPolicy
from rlexp.algos.slac.policies import SLACPolicy
from rlexp.demonstrations import storage
from rlexp.errors import UsageError
from tests.algos.recurrent_environments import GridView, Recall, Screens, demonstrate

CARTPOLE, PENDULUM = "CartPole-v1", "Pendulum-v1"
SEQUENCES = {"sequence_length": 4, "burn_in": 0, "sequence_period": 2, "batch_size": 4}
R2D2_WORDS = {**SEQUENCES, "learning_starts": 20, "buffer_size": 200}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("demonstrations") / "recall.npz"
    storage.write(path, demonstrate(Recall))
    return str(path)


def memory(kind: type[Any], **kwargs: Any) -> Any:
    sizes = (
        {"policy_kwargs": {"net_arch": [8]}, "pretrain_updates": 2}
        if kind is SLAC
        else {"policy_kwargs": {"lstm_hidden_size": 8}}
    )
    kwargs = {"learning_starts": 20, "sequence_length": 4, "buffer_size": 200, "seed": 0, **sizes, **kwargs}
    return kind("MlpPolicy", gymnasium.make(PENDULUM), device="cpu", **kwargs)


def learner(name: str, file: str, **kwargs: Any) -> Any:
    """Build an off-policy learner or a cloner, small."""
    if name in ("SACLSTM", "SLAC"):
        return memory(getattr(rlexp, name), **kwargs)
    if name in ("DQN", "DQfD"):
        kwargs = {"learning_starts": 20, "buffer_size": 200, **kwargs}
    elif name in ("R2D2", "R2D3"):
        kwargs = {**R2D2_WORDS, **kwargs}
    else:
        kwargs = {**SEQUENCES, **kwargs}
    if name in ("DQfD", "R2D3", "BC"):
        kwargs = {"demonstrations": file, **kwargs}
    if name in ("DQfD", "R2D3"):
        kwargs = {"pretrain_updates": 2, **kwargs}
    return getattr(rlexp, name)("MlpPolicy", Recall(), seed=0, device="cpu", **kwargs)


REPLAYING = ("DQN", "DQfD", "R2D2", "R2D3", "SACLSTM", "SLAC")
CLONING = ("DQfD", "R2D3", "BC")


# -------------------------------------------------------------------------------------------------- replay buffers


@pytest.mark.parametrize("name", REPLAYING)
def test_checkpoint_callback_saves_the_replay_buffer(name: str, file: str, tmp_path: Path) -> None:
    model = learner(name, file)
    model.learn(60, callback=CheckpointCallback(30, str(tmp_path), save_replay_buffer=True))
    paths = sorted(tmp_path.glob("*replay_buffer*"))
    assert len(paths) == 2
    with np.load(paths[-1], allow_pickle=False) as archive:  # no member is a pickle
        assert all(archive[member].dtype != object for member in archive.files)
    model.save_replay_buffer(tmp_path / "last")
    other = learner(name, file)
    other.load_replay_buffer(tmp_path / "last")
    assert _text(other.replay_buffer.checkpoint_state()) == _text(model.replay_buffer.checkpoint_state())
    np.random.seed(3)
    other.learn(40)


def _text(state: Any) -> str:
    with np.printoptions(threshold=10**9, precision=17):
        return str(state)


@pytest.mark.parametrize("name", ["DQN", "R2D2"])
def test_a_replay_buffer_goes_through_an_open_file(name: str, file: str) -> None:
    model, stream = learner(name, file), io.BytesIO()
    model.learn(60)
    model.save_replay_buffer(stream)
    stream.seek(0)
    other = learner(name, file)
    other.load_replay_buffer(stream)
    assert _text(other.replay_buffer.checkpoint_state()) == _text(model.replay_buffer.checkpoint_state())


@pytest.mark.parametrize("name", ["DQN", "R2D2"])
def test_a_foreign_replay_buffer_is_rejected(name: str, file: str, tmp_path: Path) -> None:
    model = learner(name, file)
    model.learn(60)
    model.save_replay_buffer(tmp_path / "small")
    smaller = learner(name, file, buffer_size=24)
    with pytest.raises(UsageError, match="does not fit"):
        smaller.load_replay_buffer(tmp_path / "small")
    (tmp_path / "pickle.pkl").write_bytes(b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.")
    with pytest.raises(UsageError, match="not a file that save_replay_buffer wrote"):
        model.load_replay_buffer(tmp_path / "pickle.pkl")


def test_the_demonstrations_of_a_replay_buffer_are_the_same_ones(file: str, tmp_path: Path) -> None:
    model = learner("R2D3", file)
    model.learn(40)
    model.save_replay_buffer(tmp_path / "replay")
    other = learner("R2D3", file, demonstrations=demonstrate(Recall, seed=5))
    with pytest.raises(UsageError, match="demonstrations"):
        other.load_replay_buffer(tmp_path / "replay")


# ----------------------------------------------------------------------------------------- policies, saved and loaded


def _policies() -> dict[str, Callable[[], Any]]:
    return {
        "sac_lstm": lambda: memory(SACLSTM).policy,
        "slac": lambda: memory(SLAC).policy,
        "slac_lstm": lambda: memory(SLAC, policy_kwargs={"actor_kind": "lstm", "lstm_hidden_size": 8}).policy,
        "r2d2": lambda: R2D2("MlpPolicy", CARTPOLE, device="cpu").policy,
        "r2d2_images": lambda: R2D2("CnnPolicy", Screens(), device="cpu").policy,
        "r2d2_dict": lambda: R2D2("MultiInputPolicy", GridView(), device="cpu").policy,
        "bc": lambda: BC("MlpPolicy", CARTPOLE, device="cpu").policy,
        "dqn": lambda: DQN("MlpPolicy", CARTPOLE, dueling=True, device="cpu").policy,
        "acer": lambda: ACER("MlpPolicy", CARTPOLE, device="cpu").policy,
        "acer_lstm": lambda: ACER("MlpLstmPolicy", CARTPOLE, device="cpu").policy,
        "acer_continuous": lambda: ACER("MlpPolicy", PENDULUM, device="cpu").policy,
        "tam": lambda: TAM("MlpPolicy", CARTPOLE, device="cpu").policy,
        "lcpo": lambda: LCPO("MlpPolicy", CARTPOLE, device="cpu").policy,
        "recurrent_ppo": lambda: RecurrentPPO(
            "MlpLstmPolicy", CARTPOLE, layer_norm=True, device="cpu",
            policy_kwargs={"shared_lstm": True, "enable_critic_lstm": False},
        ).policy,
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(_policies()))
def test_a_policy_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    policy = _policies()[name]()
    policy.save(str(tmp_path / "policy"))
    loaded = type(policy).load(str(tmp_path / "policy"), device="cpu")
    policy.observation_space.seed(0)
    for _ in range(5):
        observation = policy.observation_space.sample()
        wanted, _ = policy.predict(observation, deterministic=True)
        assert np.array_equal(loaded.predict(observation, deterministic=True)[0], wanted)
    saved, found = policy.state_dict(), loaded.state_dict()
    assert saved.keys() == found.keys() and all(th.equal(saved[key], found[key]) for key in saved)


# ----------------------------------------------------------------------------------------------- loaded models learn


@pytest.mark.parametrize("name", CLONING)
def test_a_loaded_model_knows_the_file_of_its_demonstrations(name: str, file: str, tmp_path: Path) -> None:
    learner(name, file).learn(64).save(tmp_path / "model")
    loaded = getattr(rlexp, name).load(tmp_path / "model", env=Recall(), device="cpu")
    assert loaded.demonstrations == file
    loaded.learn(64)


@pytest.mark.parametrize("name", CLONING)
def test_a_loaded_model_says_how_it_takes_demonstrations(name: str, file: str, tmp_path: Path) -> None:
    given = demonstrate(Recall)
    learner(name, file, demonstrations=given).learn(64).save(tmp_path / "model")
    kind = getattr(rlexp, name)
    with pytest.raises(UsageError, match=rf"{name}.load\(path, env=env, demonstrations="):
        kind.load(tmp_path / "model", env=Recall(), device="cpu").learn(64)
    kind.load(tmp_path / "model", env=Recall(), device="cpu", demonstrations=given).learn(64)


class Wider(Recall):
    """The same observations, another action."""

    action_space = spaces.Discrete(3)


class Longer(Recall):
    """The same actions, other observations."""

    observation_space = spaces.Box(0, 1, (4,), np.float32)


def _acting(**more: Any) -> dict[str, Callable[[], Any]]:
    small = {"n_steps": 16, "device": "cpu", **more}
    return {
        "A2C": lambda: A2C("MlpPolicy", Recall(), **small),
        "ACER": lambda: ACER("MlpPolicy", Recall(), **small),
        "BC": lambda: BC("MlpPolicy", Recall(), device="cpu", **more),
        "DQN": lambda: DQN("MlpPolicy", Recall(), device="cpu", **more, buffer_size=100),
        "DQfD": lambda: DQfD("MlpPolicy", Recall(), device="cpu", **more, buffer_size=100),
        "LCPO": lambda: LCPO("MlpPolicy", Recall(), batch_size=16, **small),
        "MaskableLCPO": lambda: MaskableLCPO("MlpPolicy", Recall(), batch_size=16, **small),
        "R2D2": lambda: R2D2("MlpPolicy", Recall(), device="cpu", **more),
        "R2D3": lambda: R2D3("MlpPolicy", Recall(), device="cpu", **more),
        "RecurrentPPO": lambda: RecurrentPPO("MlpLstmPolicy", Recall(), batch_size=16, **small),
        "TAM": lambda: TAM("MlpPolicy", Recall(), batch_size=16, **small),
        "SACLSTM": lambda: memory(SACLSTM, **more),
        "SLAC": lambda: memory(SLAC, **more),
    }


@pytest.mark.parametrize("name", sorted(_acting()))
def test_other_spaces_are_rejected_with_what_to_do(name: str, tmp_path: Path) -> None:
    model = _acting()[name]()
    model.save(tmp_path / "model")
    for other in (Wider(), Longer()):
        for attempt in (
            lambda env=other: type(model).load(tmp_path / "model", env=env),
            lambda env=other: model.set_env(env),
        ):
            with pytest.raises(UsageError, match=r"trained with other spaces .*config.yaml") as caught:
                attempt()
            assert "\n" not in str(caught.value)
    type(model).load(tmp_path / "model", env=model.get_env())


# ------------------------------------------------------------------------------------------------------------ predict


@pytest.mark.parametrize("name", sorted(_acting()))
def test_predict_of_one_observation(name: str) -> None:
    model = _acting()[name]()
    observation = model.observation_space.sample()
    for deterministic in (True, False):
        action, _ = model.predict(observation, deterministic=deterministic)
        assert isinstance(action, np.ndarray) and action.shape == model.action_space.shape
        assert model.action_space.contains(action.astype(model.action_space.dtype))
        actions, _ = model.predict(np.stack([observation] * 3), deterministic=deterministic)
        assert actions.shape == (3, *model.action_space.shape)


@pytest.mark.parametrize("name", sorted(_acting()))
def test_predict_says_that_reset_returns_two_things(name: str) -> None:
    model = _acting()[name]()
    with pytest.raises(ValueError, match="mixing Gym API with SB3 VecEnv API"):
        model.predict((model.observation_space.sample(), {}))


# ----------------------------------------------------------------------------------------------------- constructors


@pytest.mark.parametrize("kind", [DQN, DQfD, R2D2, R2D3, BC])
def test_convolutions_take_features_dim(kind: Any) -> None:
    arguments = {"features_extractor_kwargs": {"features_dim": 16}}
    model = kind("CnnPolicy", Screens(), device="cpu", policy_kwargs=arguments)
    features = model.policy.q_net.features_extractor
    assert features.features_dim == 16
    assert features(th.zeros(2, *model.observation_space.shape)).shape == (2, 16)
    plain = kind("CnnPolicy", Screens(), device="cpu").policy.q_net.features_extractor
    assert plain(th.zeros(2, *model.observation_space.shape)).shape == (2, plain.features_dim)


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (lambda: SACLSTM("MlpPolicy", PENDULUM, policy_kwargs={"net_arch": [16]}),
         r"policy_kwargs: 'net_arch' given, SACLSTMPolicy supports actor_units, critic_units"),
        (lambda: SLAC("MlpPolicy", PENDULUM, policy_kwargs={"lstm_hidden_siz": 8}), r"did you mean 'lstm_hidden_size'"),
        (lambda: R2D2("MlpPolicy", CARTPOLE, policy_kwargs={"lstm_hidden": 8}), r"did you mean 'lstm_hidden_size'"),
        (lambda: LCPO("MlpPolicy", CARTPOLE, policy_kwargs={"net_arc": [8]}), r"did you mean 'net_arch'"),
        (lambda: LCPO("MultiInputPolicy", GridView()), r"policy: 'MultiInputPolicy' given, LCPO supports MlpPolicy"),
        (lambda: LCPO("MlpPolicy", GridView()), r"LCPO reads no dictionaries, the environment has Dict"),
        (lambda: LCPO("MlpPolicy", Screens()), r"LCPO needs observations in one vector"),
        (lambda: LCPO("MlpPolicy", PENDULUM), r"LCPO needs discrete actions, the environment has Box"),
        (lambda: MaskableLCPO("MlpPolicy", GridView()), r"MaskableLCPO reads no dictionaries"),
        (lambda: ACER("MlpPolicy", GridView()), r"ACER reads no dictionaries"),
        (lambda: TAM("MlpPolicy", PENDULUM), r"TAM needs discrete actions, the environment has Box"),
        (lambda: TAM("MlpPolicy", GridView()), r"TAM reads no dictionaries"),
        (lambda: TAM("CnnPolicy", CARTPOLE), r"policy: 'CnnPolicy' given, TAM supports MlpPolicy"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_said_in_one_line(build: Callable[[], Any], line: str) -> None:
    with pytest.raises(UsageError, match=line) as caught:
        build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(_acting()))
def test_optimizers_begin_at_the_first_learning_rate(name: str) -> None:
    model = _acting(learning_rate=lambda remaining: 1e-3 * remaining)[name]()
    parts = [model.policy] if hasattr(model.policy, "optimizer") else [model.actor, model.critic]
    assert [part.optimizer.param_groups[0]["lr"] for part in parts] == [1e-3] * len(parts)


@pytest.mark.parametrize("name", [*REPLAYING, "BC", "ACER", "LCPO", "TAM"])
def test_gradients_need_not_be_clipped(name: str, file: str) -> None:
    if name in ("ACER", "LCPO", "TAM"):
        arguments = {"n_steps": 16, "max_grad_norm": None, "device": "cpu"}
        model = getattr(rlexp, name)(
            "MlpPolicy", Recall(), **arguments, **({} if name == "ACER" else {"batch_size": 16})
        )
    else:
        model = learner(name, file, max_grad_norm=None)
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(64)
    after = list(model.policy.parameters())
    assert any(not th.equal(one, other) for one, other in zip(before, after, strict=True)), (
        "it has not learned"
    )
    assert all(th.isfinite(one).all() for one in after)


# ---------------------------------------------------------------------------------------------- cloning's callbacks


class Rows(KVWriter):
    """A log that remembers its rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, values: dict[str, Any], *_: Any) -> None:
        self.rows.append(dict(values))

    def close(self) -> None:
        pass


def logged(model: Any) -> list[dict[str, Any]]:
    rows = Rows()
    model.set_logger(Logger(folder=None, output_formats=[rows]))  # type: ignore[list-item]
    return rows.rows


def test_cloning_logs_when_a_callback_says_so(file: str) -> None:
    model = learner("BC", file)
    rows = logged(model)
    model.learn(500, callback=LogEveryNTimesteps(100), log_interval=None)
    assert len(rows) >= 3 and all(row["train/loss"] > 0 for row in rows)
    experts = demonstrate(Recall).episodes[:18]  # the last tenth is held back
    assert {row["rollout/ep_len_mean"] for row in rows} == {4.0}
    assert min(one.rewards.sum() for one in experts) <= rows[-1]["rollout/ep_rew_mean"] <= 1.0


def test_cloning_ends_with_the_update_that_reaches_the_budget(file: str) -> None:
    model = learner("BC", file, updates_per_round=10)
    model.learn(64)
    most = model.batch_size * model.sequence_length
    assert 64 <= model.num_timesteps < 64 + most and model._n_updates * most >= 64
    before = model.num_timesteps
    model.learn(5, reset_num_timesteps=False)
    assert before + 5 <= model.num_timesteps < before + 5 + most


def test_cloning_counts_the_episodes_whose_end_it_looked_at(file: str) -> None:
    model = learner("BC", file, updates_per_round=1)
    counted: list[int] = []

    def count(names: dict[str, Any], _: dict[str, Any]) -> bool:
        counted.append(int(np.sum(names["dones"])))
        assert len(names["dones"]) == len(names["infos"]) == model.batch_size
        return True

    model.learn(200, callback=count)
    # Episodes of 4 steps are one sequence of 4 each, or, at a period of 2, that one alone: every draw is an end.
    assert counted and all(number == model.batch_size for number in counted)
    model = learner("BC", file, updates_per_round=1)
    model.learn(10_000, callback=StopTrainingOnMaxEpisodes(20))
    assert model.num_timesteps == 5 * 16, "five batches of four episodes of four steps"


def test_cloning_counts_an_episode_once_however_many_sequences_it_has() -> None:
    given = demonstrate(
        GridView, episodes=10
    )  # of six steps each: windows of three by two begin at 0, 2, 4 or end
    model = BC(
        "MultiInputPolicy",
        GridView(),
        given,
        sequence_length=2,
        sequence_period=2,
        batch_size=8,
        device="cpu",
    )
    model.learn(64)
    assert sum("episode" in info for info in model._infos) == 9, "one in ten is held back"
    assert len(model._infos) == len(model._training) == 27


def test_policies_named_here_are_those_of_the_classes() -> None:
    assert SACLSTM.policy_aliases == {"MlpPolicy": SACLSTMPolicy} and SLAC.policy_aliases == {
        "MlpPolicy": SLACPolicy
    }
    assert set(R2D2.policy_aliases.values()) == {RecurrentPolicy}
