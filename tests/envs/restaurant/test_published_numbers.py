"""Every figure of the simulator against the notes on PyDial; the sections named are theirs.

The numbers are written out here a second time, so that a slip of the finger in the simulator is seen.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from rlexp.envs.restaurant import confusion, goals, handcrafted
from rlexp.envs.restaurant.acts import ACT_TYPES, DialogueAct
from rlexp.envs.restaurant.channel import STATISTICS, ErrorModel
from rlexp.envs.restaurant.domain import Domain
from rlexp.envs.restaurant.env import RestaurantEnv
from rlexp.envs.restaurant.layout import layout_of
from rlexp.envs.restaurant.summary import ACTIONS
from rlexp.envs.restaurant.user_parameters import RANGES, UserParameters, sample_parameters

# Section 5.5: parameter, sampledUM, unfriendlyUM where it differs, defaultUM.
_USERS: list[tuple[str, tuple[float, float], tuple[float, float] | None, float]] = [
    ("inform_combination", (0.2, 0.7), (0.0, 0.4), 0.6),
    ("affirm_combination", (0.2, 0.7), (0.0, 0.4), 1.0),
    ("greeting", (0.3, 0.7), (0.1, 0.4), 0.5),
    ("constraint_relax", (0.5, 0.8), (0.2, 0.5), 0.667),
    ("tell_about_change", (0.4, 0.6), (0.2, 0.4), 0.5),
    ("add_slot_to_request", (0.2, 0.4), None, 0.333),
    ("no_after_reqmore", (0.8, 0.9), None, 0.7),
    ("yes_after_reqmore", (0.2, 0.3), None, 0.25),
    ("deal_with_pending", (0.4, 0.6), None, 0.5),
    ("add_venue_name_to_request", (0.01, 0.2), None, 0.05),
    ("no_slot_with_dontcare", (0.7, 0.9), None, 0.8),
    ("inform_to_confirm", (0.01, 0.2), None, 0.05),
    ("combine_affirm_with_agenda_item", (0.01, 0.2), None, 0.05),
    ("overrule_correction", (0.01, 0.2), None, 0.1),
    ("confirm_random_constraint", (0.01, 0.3), None, 0.1),
    ("alternatives_after_first_venue", (0.01, 0.3), None, 0.143),
    ("change_goal_after_first_venue", (0.01, 0.3), None, 0.143),
    ("correct_by_negate", (0.3, 0.5), None, 0.45),
    ("correct_by_deny", (0.3, 0.5), None, 0.4),
    ("thank_after_inform", (0.01, 0.2), None, 0.1),
    ("acknowledge_after_inform", (0.01, 0.2), None, 0.1),
]


def test_every_parameter_of_a_user_is_listed() -> None:
    assert {name for name, *_ in _USERS} == set(UserParameters._fields) == set(RANGES["sampled"])


@pytest.mark.parametrize(("name", "sampled", "unfriendly", "default"), _USERS, ids=[row[0] for row in _USERS])
def test_habits_of_users(name: str, sampled: Any, unfriendly: Any, default: float) -> None:
    assert RANGES["sampled"][name] == sampled
    assert RANGES["unfriendly"][name] == (unfriendly or sampled)
    assert RANGES["default"][name] == (default, default)


@pytest.mark.parametrize("user", ["sampled", "unfriendly", "default"])
def test_users_are_drawn_from_the_whole_of_their_ranges(user: str) -> None:
    random = Random(0)
    drawn = [sample_parameters(user, random) for _ in range(2000)]
    for name, sampled, unfriendly, default in _USERS:
        low, high = {"sampled": sampled, "unfriendly": unfriendly or sampled, "default": (default, default)}[
            user
        ]
        values = [getattr(one, name) for one in drawn]
        slack = 0.01 * (high - low)
        assert low <= min(values) <= low + slack and high - slack <= max(values) <= high, name


# Section 6.1 and 6.2: correctNBLen, incorrectNBLen, incorrectPos; mean and variance, correct and incorrect.
_CHANNELS = {
    "set1": (
        [0.264, 0.215, 0.138, 0.099, 0.08],
        [0.3, 0.068, 0.085, 0.072, 0.079],
        [0, 0.179, 0.063, 0.027, 0.017],
        [(0.871, 0.029), (0.103, 0.01), (0.045, 0.002), (0.032, 0.001), (0.027, 0), (0.049, 0.001)],
        [(0.757, 0.052), (0.179, 0.014), (0.077, 0.003), (0.048, 0.001), (0.037, 0), (0.065, 0.002)],
    ),
    "set3": (
        [0.147, 0.43, 0.212, 0.147, 0.048],
        [0.351, 0.388, 0.158, 0.071, 0.02],
        [0, 0.116, 0.027, 0.007, 0.002],
        [(0.905, 0.016), (0.101, 0.013), (0.017, 0.002), (0.008, 0.001), (0.005, 0), (0.01, 0.001)],
        [(0.871, 0.029), (0.164, 0.02), (0.065, 0.005), (0.043, 0.002), (0.03, 0.001), (0.054, 0.003)],
    ),
}


@pytest.mark.parametrize("name", ["set1", "set3"])
def test_statistics_of_the_channel(name: str) -> None:
    assert [list(table) for table in STATISTICS[name]] == [list(table) for table in _CHANNELS[name]]
    assert set(STATISTICS) == {"set1", "set3"}


def test_confidences_have_these_means(domain: Domain) -> None:
    # Section 6.2: the scores of a list of one and what is left to null(), five positions summed, share all
    # of 1; clipping to [.01, .99] moves set1's means only a little.
    channel = ErrorModel(domain, 0.0, "set1", 1)
    channel.tables = confusion.confusion_tables(domain, "levenshtein", 0)
    random = Random(1)
    first = [channel.transmit(DialogueAct("affirm"), random)[0][1] for _ in range(4000)]
    assert sum(first) / len(first) == pytest.approx(
        0.871 / (0.871 + 0.103 + 0.045 + 0.032 + 0.027 + 0.049), abs=0.04
    )


def test_confusions() -> None:
    # Section 6.3: level type .2, slot .3, value .5, at most 25 attempts, the 6 nearest, 1/d plus .15.
    assert (confusion._TYPE_LEVEL, confusion._SLOT_LEVEL) == (0.2, 0.2 + 0.3)
    assert (confusion.N_NEAREST, confusion._FLOOR, confusion._ATTEMPTS) == (6, 0.15, 25)
    acts = "hello thankyou ack bye inform request reqalts reqmore confirm affirm negate deny repeat null"
    assert set(ACT_TYPES) == set(acts.split())
    assert {"inform", "affirm", "negate", "confirm", "reqalts"} == confusion._SLOT_AND_VALUE
    assert {"request"} == confusion._SLOT_ONLY


def test_levels_are_drawn_as_often(domain: Domain) -> None:
    # Section 6.3, errata 6.3: an act with a slot and a value is confused in its type, slot or value.
    tables = confusion.confusion_tables(domain, "levenshtein", 0)
    act, random = DialogueAct("inform", (("food", "=", "chinese"),)), Random(0)
    drawn = [tables.confuse(act, random) for _ in range(4000)]
    by_type = sum(one[0] != "inform" for one in drawn) / len(drawn)
    by_value = sum(one[0] == "inform" and one[1][0][0] == "food" for one in drawn) / len(drawn)
    assert by_type == pytest.approx(0.2, abs=0.03) and by_value == pytest.approx(0.5, abs=0.03)


def test_goals_and_patience(domain: Domain) -> None:
    # Section 5.1: 1 < n < 4 venues, and 0 to 2 further requests; 5.2: patience 4 or 5, equally often.
    assert (goals.MINIMUM_VENUES, goals.MAXIMUM_VENUES) == (2, 3)
    env = RestaurantEnv()
    drawn = []
    for seed in range(400):
        env.reset(seed=seed)
        drawn.append(env.simulated_user.initial_patience)
    assert set(drawn) == {4, 5} and drawn.count(4) / len(drawn) == pytest.approx(0.5, abs=0.08)


def test_the_reference_policy() -> None:
    # Errata, H.1: a name counts from .8 on; H.3, step B: confirm between .6 and .8, select or confirm above .3, by .2.
    assert (handcrafted.SURE, handcrafted.LIKELY, handcrafted.POSSIBLE, handcrafted.CLOSE) == (
        0.8,
        0.6,
        0.3,
        0.2,
    )


def test_sizes(domain: Domain) -> None:
    # Section 3: food 93, pricerange 5, name 115, area 7, method 6, discourse act 6, and so on: 268; 2.1: 16 actions.
    layout = layout_of(domain)
    assert layout.size == 268 and len(ACTIONS) == 16
    assert {slot: len(values) + 2 for slot, values in domain.informable.items()} == {
        "food": 93, "pricerange": 5, "name": 115, "area": 7,
    }  # fmt: skip
    assert (len(domain.methods), len(domain.discourse_acts)) == (6, 6)


# Section 2.5: error rate, masks, users, longest list, channel.
_BENCHMARKS = {
    "env1": (0.0, True, "sampled", 1, "random"),
    "env2": (0.0, False, "sampled", 1, "random"),
    "env3": (0.15, True, "sampled", 5, "set1"),
    "env4": (0.15, False, "sampled", 5, "set1"),
    "env5": (0.15, True, "unfriendly", 5, "set1"),
    "env6": (0.3, True, "sampled", 5, "set3"),
}


@pytest.mark.parametrize("name", list(_BENCHMARKS))
def test_benchmark_environments(name: str) -> None:
    conf = Path(__file__).parents[3] / "conf" / "env"
    found = yaml.safe_load((conf / "benchmark" / f"{name}.yaml").read_text())
    keys = ("error_rate", "masks", "user", "n_best", "error_model")
    assert tuple(found[key] for key in keys) == _BENCHMARKS[name]
    task = yaml.safe_load((conf / "restaurant.yaml").read_text())
    assert (task["max_turns"], task["patience"], task["success_reward"]) == (25, [4, 6], 20.0)
