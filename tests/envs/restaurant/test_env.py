"""The restaurant as a gymnasium environment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlexp.envs.restaurant.acts import parse_act
from rlexp.envs.restaurant.env import RestaurantEnv
from rlexp.envs.restaurant.summary import ACTIONS

from .conftest import Files

BYE, REPEAT, RESTART = (ACTIONS.index(name) for name in ("bye", "repeat", "restart"))


def finish(env: RestaurantEnv, controller: str = "handcrafted") -> tuple[float, int, dict[str, Any]]:
    """Play on to the end: return, system acts, info."""
    total, turns, done, info = 0.0, 0, False, {}
    while not done:
        _, reward, terminated, truncated, info = env.step(env.controller_action(controller))
        total, turns, done = total + reward, turns + 1, terminated or truncated
    return total, turns, info


# -- citizenship -------------------------------------------------------------------------------------------
# ----------------


@pytest.mark.parametrize(
    "arguments", [{}, {"masks": True, "render_mode": "ansi"}, {"end_on_user_bye": False}]
)
def test_gymnasium_checker(arguments: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A transcript has no frames, hence no frames per second, and no spec outside gymnasium.make.
        warnings.filterwarnings("ignore", message=".*(render fps|spec).*")
        check_env(RestaurantEnv(**arguments), skip_render_check=True)


def test_stable_baselines_checker() -> None:
    from stable_baselines3.common.env_checker import check_env as check

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(RestaurantEnv())


def test_spaces() -> None:
    env = RestaurantEnv()
    assert env.observation_space == gymnasium.spaces.Box(0, 1, (268,), np.float32)
    assert env.action_space == gymnasium.spaces.Discrete(16)
    assert RestaurantEnv().action_space is not env.action_space, "a space has a random generator of its own"


def test_pydials_files(real_files: Files) -> None:
    env = RestaurantEnv(database=real_files[0], ontology=str(real_files[1]), confusion_seed=0)
    observation, _ = env.reset(seed=0)
    assert observation.shape == (268,)
    finish(env)


def test_importing_the_package_is_cheap() -> None:
    def loaded(what: str) -> str:
        code = f"import sys\n{what}\nprint([m for m in ('torch', 'sqlite3') if m in sys.modules])"
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert loaded("import rlexp.envs.restaurant, rlexp.envs") == "[]"
    assert loaded("import rlexp.envs.restaurant.env, rlexp.studies.restaurant_fidelity") == "['sqlite3']"


def test_making_many_is_cheap() -> None:
    RestaurantEnv(confusion_seed=0)
    start = time.perf_counter()
    for _ in range(500):
        RestaurantEnv(confusion_seed=0)
    assert (time.perf_counter() - start) / 500 < 1e-3, "50 microseconds on an idle machine"


# -- arguments ---------------------------------------------------------------------------------------------
# ----------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"error_rate": -0.1}, "error_rate=-0.1 .* number from 0 to 1"),
        ({"error_rate": 1.5}, "error_rate=1.5"),
        ({"error_rate": "high"}, "error_rate='high'"),
        ({"error_rate": float("nan")}, "error_rate=nan"),
        ({"error_rate": True}, "error_rate=True"),
        ({"error_model": "set2"}, "error_model='set2' .* one of set1, set3, random"),
        ({"n_best": 0}, "n_best=0 .* from 1 to 5"),
        ({"n_best": 6}, "n_best=6"),
        ({"n_best": 2.0}, "n_best=2.0"),
        ({"error_model": "random"}, "n_best=5 .* must be 1 with error_model='random'"),
        ({"user": "angry"}, "user='angry' .* one of sampled, unfriendly, default"),
        ({"patience": 5}, "patience=5 .* pair"),
        ({"patience": "45"}, "patience='45'"),
        ({"patience": (4, 4)}, r"patience=\(4, 4\)"),
        ({"patience": (0, 3)}, r"patience=\(0, 3\)"),
        ({"patience": (4.0, 6.0)}, r"patience=\(4.0, 6.0\)"),
        ({"patience": (4, 5, 6)}, "patience="),
        ({"max_turns": 0}, "max_turns=0 .* at least 1"),
        ({"masks": 1}, "masks=1 .* true or false"),
        ({"end_on_user_bye": None}, "end_on_user_bye=None"),
        ({"max_turns_is_truncation": "yes"}, "max_turns_is_truncation='yes'"),
        ({"disabled_actions": "bye"}, "disabled_actions='bye' .* list of names"),
        ({"disabled_actions": ["goodbye"]}, r"disabled_actions=\['goodbye'\] .* request_area"),
        ({"disabled_actions": [3]}, "disabled_actions="),
        ({"disabled_actions": list(ACTIONS)}, "at least one action enabled"),
        ({"success_reward": -1}, "success_reward=-1"),
        ({"confusion_seed": -1}, "confusion_seed=-1"),
        ({"confusion_seed": 1.5}, "confusion_seed=1.5"),
        ({"render_mode": "human"}, "render_mode='human' .* one of ansi"),
        ({"database": "/no/such/file"}, "database=/no/such/file: cannot be read"),
        ({"ontology": "/no/such/file"}, "ontology=/no/such/file: cannot be read"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as error:
        RestaurantEnv(**arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("action", [-1, 16, 2.5, np.array(17)])
def test_bad_actions(action: Any) -> None:
    env = RestaurantEnv()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="whole number from 0 to 15"):
        env.step(action)


def test_user_acts_are_no_system_acts() -> None:
    env = RestaurantEnv()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="not a system act"):
        env.step(parse_act("affirm()"))


def test_step_needs_a_dialogue() -> None:
    env = RestaurantEnv()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    env.step(BYE)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("action", [3, np.int64(3), np.array(3), parse_act("request(food)")])
def test_actions_may_be_numbers_or_acts(action: Any) -> None:
    env = RestaurantEnv()
    env.reset(seed=0)
    env.step(action)
    assert str(env.system_act) == "request(food)"


# -- endings -----------------------------------------------------------------------------------------------
# ----------------


def test_system_bye() -> None:
    env = RestaurantEnv()
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(BYE)
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert not observation.any() and observation.dtype == np.float32, "a terminal state is zeros"
    assert info == {"is_success": False, "turns": 1, "system_turns": 1, "ended_by": "system_bye"}


def test_system_bye_can_succeed() -> None:
    env = RestaurantEnv(error_rate=0.0, error_model="random", n_best=1)
    env.reset(seed=0)
    goal = env.goal
    row = env.domain.query(*goal.constraints.values()).rows[0]
    for slot in goal.requests:
        goal.requests[slot] = env.domain.venues[row][slot]
    _, reward, _, _, info = env.step(BYE)
    assert info["is_success"] and reward == 19.0


def test_success_reward_counts() -> None:
    env = RestaurantEnv(error_rate=0.0, error_model="random", n_best=1, success_reward=5.0)
    env.reset(seed=0)
    total, turns, info = finish(env)
    assert info["is_success"] and total == 5.0 - turns


@pytest.mark.parametrize("end_on_user_bye", [True, False])
def test_user_bye(end_on_user_bye: bool) -> None:
    """With PyDial's ending the system acts once more; turns are counted alike, and the return counts system
    acts."""
    env = RestaurantEnv(end_on_user_bye=end_on_user_bye, confusion_seed=0)
    env.reset(seed=3)
    for _ in range(30):
        env.reset()
        total, acts, info = finish(env)
        assert total == 20.0 * info["is_success"] - acts
        if info["ended_by"] in ("user_bye", "patience"):
            assert info["turns"] == info["system_turns"] + 1
            assert acts == (info["system_turns"] if end_on_user_bye else info["turns"])
        else:
            assert info["turns"] == info["system_turns"] == acts


def test_both_endings_tell_the_same_dialogues() -> None:
    def play(end_on_user_bye: bool) -> list[dict[str, Any]]:
        env = RestaurantEnv(end_on_user_bye=end_on_user_bye, confusion_seed=0)
        infos = []
        for seed in range(40):
            env.reset(seed=seed)
            infos.append(finish(env)[2])
        return infos

    assert play(True) == play(False)


def test_the_turn_after_goodbye_shows_it() -> None:
    env = RestaurantEnv(error_rate=0.0, error_model="random", n_best=1, end_on_user_bye=False)
    env.reset(seed=0)
    while True:
        observation, reward, terminated, _, _ = env.step(env.controller_action("handcrafted"))
        assert not terminated and reward == -1.0
        if env.user_has_left:
            break
    assert observation[220 + 3] > 0.5, "method: finished"
    before = dict(env.goal.requests)
    observation, reward, terminated, _, info = env.step(0)
    assert terminated and info["ended_by"] == "user_bye" and reward == 19.0
    assert env.goal.requests == before, "nothing more is delivered"
    assert not observation.any()


def test_patience() -> None:
    env = RestaurantEnv(disabled_actions=())
    env.reset(seed=1)
    acts, done = 0, False
    while not done:
        _, _, done, _, info = env.step(RESTART)
        acts += 1
    assert info["ended_by"] == "patience" and acts in (4, 5)


def test_twenty_fifth_act_is_delivered() -> None:
    """The user hears it, and a question that it answers can complete the dialogue."""
    env = RestaurantEnv(error_rate=0.0, error_model="random", n_best=1, max_turns=3)
    env.reset(seed=0)
    goal, user = env.goal, env.simulated_user
    row = env.domain.query(*goal.constraints.values()).rows[0]
    venue = env.domain.venues[row]
    for slot in goal.requests:
        goal.requests[slot] = venue[slot]
    last = list(goal.requests)[-1]
    goal.requests[last] = None
    user.first_venue_offered, goal.name_is = True, venue["name"]
    user.parameters = user.parameters._replace(confirm_random_constraint=0.0)
    user.agenda[1:] = [parse_act("inform(type=restaurant)")] * 9
    env.step(parse_act("request(area)"))
    env.step(parse_act("request(food)"))
    assert not goal.all_answered
    _, reward, terminated, truncated, info = env.step(
        parse_act(f'inform(name={venue["name"]},{last}="{venue[last]}")')
    )
    assert info == {"is_success": True, "turns": 3, "system_turns": 3, "ended_by": "max_turns"}
    assert (reward, terminated, truncated) == (19.0, True, False)


def test_running_out_of_turns_can_be_a_truncation() -> None:
    env = RestaurantEnv(max_turns=2, max_turns_is_truncation=True, confusion_seed=0)
    env.reset(seed=0)
    env.step(0)
    observation, _, terminated, truncated, info = env.step(3)
    assert (terminated, truncated, info["ended_by"]) == (False, True, "max_turns")
    assert observation.any(), "the state that would have followed"


def test_no_dialogue_is_longer_than_max_turns() -> None:
    for end_on_user_bye in (True, False):
        env = RestaurantEnv(
            end_on_user_bye=end_on_user_bye, max_turns=6, disabled_actions=("bye",), confusion_seed=0
        )
        env.reset(seed=0)
        for _ in range(60):
            env.reset()
            _, acts, info = finish(env, "random")
            assert acts <= 6 and info["turns"] <= 6


def test_info_is_empty_until_the_end() -> None:
    env = RestaurantEnv()
    assert env.reset(seed=0)[1] == {} and env.step(0)[4] == {}


# -- masks and controllers
# -------------------------------------------------------------------------------------------------


def test_masks_without_rules() -> None:
    env = RestaurantEnv()
    env.reset(seed=0)
    mask = env.action_masks()
    assert mask.dtype == np.bool_ and mask.sum() == 14 and not mask[REPEAT] and not mask[RESTART]
    mask[:] = False
    assert env.action_masks().any(), "a copy"


def test_masks_with_rules() -> None:
    env = RestaurantEnv(masks=True, confusion_seed=0, disabled_actions=("request_area",))
    env.reset(seed=0)
    for _ in range(20):
        env.reset()
        done = False
        while not done:
            mask = env.action_masks()
            assert mask.shape == (16,) and mask.any() and not mask[[0, REPEAT, RESTART]].any()
            _, _, terminated, truncated, _ = env.step(env.controller_action("random"))
            done = terminated or truncated


def test_masked_actions_are_executed_as_they_are() -> None:
    env = RestaurantEnv(masks=True)
    env.reset(seed=0)
    env.step(REPEAT)
    assert str(env.system_act) == "hello()"
    env.step(RESTART)
    assert str(env.system_act) == "null()"


def test_asking_for_alternatives_is_remembered_until_served() -> None:
    env = RestaurantEnv(masks=True, error_rate=0.0, error_model="random", n_best=1)
    alternatives = ACTIONS.index("inform_alternatives")
    for seed in range(40):
        env.reset(seed=seed)
        env.simulated_user.parameters = env.simulated_user.parameters._replace(
            alternatives_after_first_venue=1.0
        )
        while not env._masks.alternatives_wanted:
            env.step(env.controller_action("handcrafted"))
        assert env.action_masks()[alternatives]
        if env.step(alternatives)[2]:
            assert not env._masks.alternatives_wanted
            continue
        thanked = env.tracker.top_discourse() in ("thankyou", "ack")
        assert env._masks.alternatives_wanted == (
            env.tracker.top_method() == "byalternatives" and not thanked
        )


def test_controllers() -> None:
    env = RestaurantEnv()
    env.reset(seed=0)
    assert set(env.controllers) >= {"handcrafted", "random"}
    assert {int(env.controller_action("random")) for _ in range(500)} == set(range(16)) - {REPEAT, RESTART}
    assert {int(env.controller_action("uniform")) for _ in range(500)} == set(range(16))
    with pytest.raises(ValueError, match=r"controller='clever' .* handcrafted, random"):
        env.controller_action("clever")


# -- chance ------------------------------------------------------------------------------------------------
# ----------------


def record(env: RestaurantEnv, actions: list[Any] | None = None) -> tuple[list[bytes], list[Any]]:
    """Observations and actions of one dialogue; plays the given actions, else the handcrafted policy."""
    observation, _ = env.reset()
    observations, played, done = [observation.tobytes()], [], False
    while not done:
        action = env.controller_action("handcrafted") if actions is None else actions[len(played)]
        observation, _, terminated, truncated, _ = env.step(action)
        observations.append(observation.tobytes())
        played.append(action)
        done = terminated or truncated
    return observations, played


@pytest.mark.parametrize(
    "arguments", [{}, {"confusion_seed": 5}, {"error_rate": 0.3, "error_model": "set3", "masks": True}]
)
def test_a_dialogue_can_be_replayed(arguments: dict[str, Any]) -> None:
    env = RestaurantEnv(**arguments)
    env.reset(seed=11)
    for _ in range(20):
        state = env.np_random.bit_generator.state
        observations, actions = record(env)
        env.np_random.bit_generator.state = state
        assert record(env, actions)[0] == observations


def test_the_first_dialogue_can_be_replayed_on_another_env() -> None:
    one, two = RestaurantEnv(), RestaurantEnv()
    one.np_random, two.np_random = np.random.default_rng(4), np.random.default_rng(4)
    observations, actions = record(one)
    assert record(two, actions)[0] == observations
    assert one.confusion_seed == two.confusion_seed is not None


def test_a_dialogue_takes_one_number_whether_it_is_the_first_or_not() -> None:
    env = RestaurantEnv()
    env.np_random = np.random.default_rng(4)
    state = env.np_random.bit_generator.state
    observations, actions = record(env)
    env.np_random.bit_generator.state = state
    assert record(env, actions)[0] == observations


def test_seed_decides_everything() -> None:
    def play(seed: int) -> list[bytes]:
        env = RestaurantEnv()
        env.reset(seed=seed)
        return [part for _ in range(5) for part in record(env)[0]]

    assert play(1) == play(1) != play(2)


def test_dialogues_do_not_depend_on_earlier_ones() -> None:
    one, two = RestaurantEnv(confusion_seed=0), RestaurantEnv(confusion_seed=0)
    for _ in range(30):
        one.reset(seed=5)
        finish(one, "random")
    one.np_random, two.np_random = np.random.default_rng(9), np.random.default_rng(9)
    assert record(one) == record(two)


def test_confusion_seed_is_kept_and_given() -> None:
    env = RestaurantEnv()
    env.reset(seed=1)
    kept, tables = env.confusion_seed, env.channel.tables
    env.reset(seed=2)
    assert env.confusion_seed == kept and env.channel.tables is tables
    env = RestaurantEnv(confusion_seed=7)
    env.reset(seed=1)
    other = RestaurantEnv(confusion_seed=7)
    other.reset(seed=2)
    assert env.channel.tables is other.channel.tables and env.channel.tables.seed == 7


SCRIPT = """
import hashlib
from rlexp.envs.restaurant.env import RestaurantEnv
digest = hashlib.sha256()
env = RestaurantEnv(masks=True)
env.reset(seed=3)
for number in range(150):
    observation, _ = env.reset()
    digest.update(observation.tobytes())
    done = False
    while not done:
        action = env.controller_action(("handcrafted", "random")[number % 2])
        observation, reward, terminated, truncated, info = env.step(action)
        digest.update(observation.tobytes() + str((reward, info, str(env.user_act))).encode())
        done = terminated or truncated
print(digest.hexdigest())
"""


def test_processes_agree_whatever_their_hash_seed() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "12345")
    }
    assert len(digests) == 1


# -- transcript --------------------------------------------------------------------------------------------
# ----------------


def test_transcript() -> None:
    env = RestaurantEnv(render_mode="ansi", confusion_seed=0)
    env.reset(seed=0)
    *_, info = finish(env)
    text = env.render()
    assert isinstance(text, str)
    lines = text.splitlines()
    assert lines[0].startswith("Goal") and lines[-1].startswith("End")
    assert sum(line.startswith("System") for line in lines) == info["system_turns"] + 1
    assert sum(line.startswith("User") for line in lines) == info["turns"]
    assert sum(line.startswith("  heard") for line in lines) == info["turns"] - 1
    assert ("success" if info["is_success"] else "failure") in lines[-1]
    env.reset()
    assert len(str(env.render()).splitlines()) == 4, "a new dialogue has a transcript of its own"


@pytest.mark.parametrize(
    "arguments",
    [{"end_on_user_bye": False}, {"max_turns": 4, "max_turns_is_truncation": True}, {"max_turns": 4}],
)
def test_every_act_is_in_the_transcript_once(arguments: dict[str, Any]) -> None:
    env = RestaurantEnv(render_mode="ansi", confusion_seed=0, **arguments)
    env.reset(seed=0)
    for _ in range(30):
        env.reset()
        _, acts, info = finish(env, "random")
        lines = str(env.render()).splitlines()
        assert sum(line.startswith("System") for line in lines) == acts + 1
        left = not env.end_on_user_bye and info["ended_by"] in ("user_bye", "patience")
        silent = left or info["ended_by"] == "system_bye"
        assert sum(line.startswith("User") for line in lines) == acts + 1 - silent


def test_no_transcript_unless_asked_for() -> None:
    env = RestaurantEnv()
    env.reset(seed=0)
    assert env.render() is None
