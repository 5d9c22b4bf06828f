"""Lines: the colour of an algorithm is its own, in every figure, and a grey print can be read."""

from __future__ import annotations

import itertools

import pytest

from rlexp.registry import algos
from rlexp.reports import line_style
from rlexp.reports.line_style import LineStyle, assign


def _grey(colour: str) -> float:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_an_algorithm_looks_alike_wherever_it_is() -> None:
    one = assign({"SLAC": "slac", "SAC": "sac"})
    other = assign({"PPO": "ppo", "V SAC": "sac", "A2C": "a2c"})
    assert one["SAC"] == other["V SAC"]


def test_built_in_algorithms_are_told_apart_in_colour_and_in_grey() -> None:
    styles = assign({name: name for name in algos()})
    assert len({look.colour for look in styles.values()}) >= len(styles) - 1, (
        "handcrafted and schedule_aware meet nowhere"
    )
    learned = {name: look for name, look in styles.items() if look.marker}
    assert {spec.name for spec in algos().values() if spec.trains} == set(learned)
    for (name, look), (other, second) in itertools.combinations(learned.items(), 2):
        assert look.marker != second.marker or abs(_grey(look.colour) - _grey(second.colour)) > 40, (
            name,
            other,
        )


def test_settings_of_one_algorithm_keep_its_marker() -> None:
    styles = assign({"PPO": "ppo", "LCPO": "lcpo", "LCPO 50": "lcpo", "LCPO 100": "lcpo"})
    ours = [styles[name] for name in ("LCPO", "LCPO 50", "LCPO 100")]
    assert len({look.marker for look in ours}) == 1 and len({look.dashes for look in ours}) == 3
    assert len({look.colour for look in ours}) == 3 and [look.filled for look in ours] == [True, False, False]


@pytest.mark.parametrize("algorithm", ["dqn", None])
def test_where_one_algorithm_is_studied_colours_are_settings(algorithm: str | None) -> None:
    styles = assign({f"ratio {number}": algorithm for number in range(20)})
    assert len(set(styles.values())) == 20
    assert len({look.colour for look in list(styles.values())[:7]}) == 7


def test_an_algorithm_of_another_package_has_a_style_too() -> None:
    assert assign({"ours": "ppo", "theirs": "curious"})["theirs"] == assign({"x": "curious", "y": "a2c"})["x"]


def test_a_shade_is_a_colour() -> None:
    assert line_style._shade("#102030", 1.0) == "#FFFFFF" and line_style._shade("#102030", -1.0) == "#000000"
    assert LineStyle("#102030", "o", filled=False).face == "white"
