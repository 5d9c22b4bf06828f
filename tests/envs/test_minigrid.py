"""MiniGrid tasks as small whole numbers: nothing of the originals is lost or changed."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import gymnasium
import minigrid  # noqa: F401  (registers its tasks)
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.envs.common.wrappers import Controlled
from rlexp.envs.minigrid.env import GridEnv, make
from rlexp.envs.minigrid.missions import WORDS, encode
from rlexp.envs.minigrid.view import image
from rlexp.errors import UsageError

TASKS = {
    "MiniGrid-UnlockPickup-v0": (288, 5),
    "MiniGrid-BlockedUnlockPickup-v0": (576, 5),
    "MiniGrid-KeyCorridorS3R3-v0": (270, 5),
    "BabyAI-UnlockLocal-v0": (576, 0),
    "MiniGrid-MemoryS7-v0": (245, 0),
}
WITH_BOT = [task for task in TASKS if "Memory" not in task]


def _task(id: str) -> GridEnv:
    env = make(id, mission_length=TASKS[id][1])
    assert isinstance(env, GridEnv)
    return env


@pytest.mark.parametrize("id", TASKS)
def test_it_is_the_original_in_other_words(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    env, original = _task(id), gymnasium.make(id, disable_env_checker=True).unwrapped
    rng = np.random.default_rng(0)
    seen, _ = env.reset(seed=5)
    wanted, _ = original.reset(seed=5)
    assert env.mission == wanted["mission"]
    assert original.max_steps == TASKS[id][0], "the published limit"  # type: ignore[attr-defined]
    ended = False
    for step in range(600):
        assert np.array_equal(seen["image"], wanted["image"]) and seen["direction"] == [wanted["direction"]]
        assert ("mission" in seen) == (TASKS[id][1] > 0)
        assert env.observation_space.contains(seen)
        action = rng.integers(7)
        seen, reward, terminated, truncated, info = env.step(action)
        wanted, *rest, _ = original.step(original.actions(int(action)))  # type: ignore[attr-defined]
        assert (reward, terminated, truncated) == (float(rest[0]), rest[1], rest[2] and not rest[1])
        assert info["is_success"] == (reward > 0)
        if terminated or truncated:
            ended = True
            assert terminated or step + 1 == TASKS[id][0]
            break
    assert ended
    assert "rejected" not in capsys.readouterr().out.split("Sampling")[0]


@pytest.mark.parametrize(
    ("id", "options"),
    [
        ("MiniGrid-ObstructedMaze-Full-v1", {}),
        ("BabyAI-BossLevel-v0", {}),
        ("MiniGrid-LavaCrossingS9N3-v0", {"agent_view_size": 5}),
        ("MiniGrid-MultiRoom-N6-v0", {"see_through_walls": True}),
    ],
)
def test_the_faster_view_sees_the_same(id: str, options: dict[str, Any]) -> None:
    game: Any = gymnasium.make(id, disable_env_checker=True, **options).unwrapped
    rng = np.random.default_rng(3)
    kinds = set()
    for episode in range(4):
        with contextlib.redirect_stdout(io.StringIO()):
            game.reset(seed=episode)
        for _ in range(100):
            seen = image(game)
            assert np.array_equal(seen, game.gen_obs()["image"])
            kinds |= set(seen[..., 0].ravel().tolist())
            if game.step(rng.choice([0, 1, 2, 2, 2, 3, 4, 5]))[2]:
                break
    assert {1, 2} < kinds


def test_it_is_well_behaved() -> None:
    check_env(_task("MiniGrid-BlockedUnlockPickup-v0"), skip_render_check=True)


def test_babyai_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    env = make("BabyAI-UnlockToUnlock-v0")
    for seed in range(3):
        env.reset(seed=seed)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("id", WITH_BOT)
def test_the_bot_accomplishes_every_mission(id: str) -> None:
    env = _task(id)
    longest = 0
    for seed in range(10):
        env.reset(seed=seed)
        total, steps, ended = 0.0, 0, False
        while not ended:
            _, reward, terminated, truncated, info = env.step(np.int64(env.controller_action("handcrafted")))
            total, steps, ended = total + reward, steps + 1, terminated or truncated
        assert info["is_success"] and not truncated
        limit = env.unwrapped._game.max_steps  # type: ignore[attr-defined]
        assert total == pytest.approx(1 - 0.9 * steps / limit), "the published reward"
        longest = max(longest, steps)
    assert longest < 130


def test_what_is_accomplished_in_the_last_step_is_not_cut_off() -> None:
    def play(env: gymnasium.Env[Any, Any]) -> tuple[int, tuple[bool, bool]]:
        env.reset(seed=3)
        for step in range(1, 100):
            ends = env.step(env.unwrapped.controller_action("handcrafted"))[2:4]  # type: ignore[attr-defined]
            if any(ends):
                return step, ends
        raise AssertionError("the bot does not arrive")

    steps, _ = play(make("MiniGrid-UnlockPickup-v0"))
    assert play(make("MiniGrid-UnlockPickup-v0", max_steps=steps)) == (steps, (True, False))
    assert play(make("MiniGrid-UnlockPickup-v0", max_steps=steps - 1)) == (steps - 1, (False, True))


def test_the_bot_goes_on_from_wherever_others_have_led() -> None:
    env = _task("MiniGrid-BlockedUnlockPickup-v0")
    rng = np.random.default_rng(1)
    for seed in range(5):
        env.reset(seed=seed)
        for _ in range(15):
            env.step(rng.integers(3))  # turns and steps
        for _ in range(200):
            _, _, terminated, _, info = env.step(np.int64(env.controller_action("handcrafted")))
            if terminated:
                break
        assert info["is_success"]


def test_the_bot_knows_only_what_it_can_plan() -> None:
    assert _task("MiniGrid-MemoryS7-v0").controllers == ()
    with pytest.raises(ValueError, match="controller"):
        Controlled(_task("MiniGrid-MemoryS7-v0"), "handcrafted")
    env = Controlled(_task("MiniGrid-UnlockPickup-v0"), "handcrafted")
    env.reset(seed=0)
    ends = [env.step(np.int64(0))[2:] for _ in range(60)]  # turning left for ever would get nowhere
    assert next(info["is_success"] for terminated, _, info in ends if terminated)


@pytest.mark.parametrize("id", TASKS)
def test_it_comes_back_where_it_was(id: str) -> None:
    env = EpisodeReplay(_task(id))
    rng = np.random.default_rng(2)
    env.reset(seed=1)
    env.reset()  # not the first layout: it follows from the random state, not from a seed
    seen: Any = None
    for _ in range(20):
        seen = env.step(rng.integers(7))[0]
    other = EpisodeReplay(_task(id))
    found = other.set_replay_state(env.get_replay_state())
    assert all(np.array_equal(found[key], seen[key]) for key in seen)
    one, two = env.reset()[0], other.reset()[0]
    assert all(np.array_equal(one[key], two[key]) for key in one)


def test_missions_differ_where_their_words_do() -> None:
    assert encode("pick up the red box", 5).tolist() != encode("pick up the blue box", 5).tolist()
    assert encode("open the door", 5).tolist()[3:] == [0, 0]
    assert encode("go to the door, then open the box", 9)[4] == WORDS.index(",") + 1
    assert len(set(WORDS)) == len(WORDS)
    with pytest.raises(ValueError, match=r"mission_length: 3 given, .* has 5 words"):
        encode("pick up the red box", 3)
    with pytest.raises(ValueError, match="unknown word 'sofa'"):
        encode("pick up the sofa", 5)


def test_what_cannot_be_built() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'MiniGrid-UnlockPickup-v0'"):
        make("MiniGrid-UnlckPickup-v0")
    with pytest.raises(UsageError, match=r"env\.mission_length: 2 given"):
        make("MiniGrid-UnlockPickup-v0", mission_length=2)


def test_a_shorter_limit() -> None:
    env = make("MiniGrid-UnlockPickup-v0", max_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
