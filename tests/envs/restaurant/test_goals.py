"""What users want, and when they got it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from rlexp.envs.restaurant.domain import SHIPPED_ONTOLOGY, Domain, load_domain
from rlexp.envs.restaurant.goals import Goal, possible_goals, sample_goal
from rlexp.envs.restaurant.success import is_success

from .conftest import Files
from .test_domain import ROW, _database


def test_there_are_56_goals(domain: Domain) -> None:
    goals = possible_goals(domain)
    assert len(goals) == len(set(goals)) == 56
    assert all(len(domain.query(*goal).rows) in (2, 3) for goal in goals)
    assert len({food for _, food, _ in goals}) == 16  # 15 foods and dontcare


def test_there_are_56_goals_in_pydials_data(real_files: Files) -> None:
    assert len(possible_goals(load_domain(*real_files))) == 56


def test_a_domain_without_goals_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    rows = [(str(number), name, *ROW[2:]) for number, name in enumerate(load_domain().informable["name"][:5])]
    _database(path, rows)
    with pytest.raises(ValueError, match="no combination of area, food and pricerange"):
        possible_goals(load_domain(path, SHIPPED_ONTOLOGY))


def test_requests(domain: Domain) -> None:
    random = Random(1)
    goals = [sample_goal(domain, random) for _ in range(20_000)]
    lengths = [len(goal.requests) for goal in goals]
    # name, and 0, 1 or 2 draws among six slots of which name is one
    assert lengths.count(1) / len(goals) == pytest.approx(1 / 3 + 1 / 18, abs=0.01)
    assert lengths.count(2) / len(goals) == pytest.approx(7 / 18, abs=0.01)
    assert lengths.count(3) / len(goals) == pytest.approx(2 / 9, abs=0.01)
    assert all(next(iter(goal.requests)) == "name" for goal in goals)
    asked = {slot for goal in goals for slot in goal.requests}
    assert asked == {"name", "addr", "phone", "postcode", "signature", "description"}
    orders = {tuple(goal.requests) for goal in goals}
    assert ("name", "phone", "addr") in orders and ("name", "addr", "phone") in orders


def _goal(domain: Domain, **requests: str | None) -> tuple[Goal, list[str]]:
    matching = [domain.venues[row]["name"] for row in domain.query("east", "indian", "moderate").rows]
    goal = Goal({"area": "east", "food": "indian", "pricerange": "moderate"}, dict(requests))
    return goal, matching


def test_success_needs_every_answer_and_a_fitting_venue(domain: Domain) -> None:
    goal, matching = _goal(domain, name=None, phone=None)
    assert not is_success(domain, goal)
    goal.requests["name"] = matching[0]
    assert not is_success(domain, goal), "the phone number is still unknown"
    goal.requests["phone"] = ""
    assert is_success(domain, goal), "an empty answer is an answer"
    goal.requests["area"] = None
    assert not is_success(domain, goal), "a question that came up on the way counts too"
    goal.requests["area"] = "east"
    goal.constraints["area"] = "west"
    assert not is_success(domain, goal), "the goal as it stands at the end counts"
    goal.constraints["area"] = "dontcare"
    assert is_success(domain, goal)


def test_success_respects_constraints_on_the_name(domain: Domain) -> None:
    goal, matching = _goal(domain, name=None)
    goal.requests["name"] = matching[0]
    goal.name_is = matching[1]
    assert not is_success(domain, goal)
    goal.name_is = None
    goal.name_not = [matching[0]]
    assert not is_success(domain, goal)
    goal.name_not = [matching[1]]
    assert is_success(domain, goal)


def test_a_venue_that_does_not_exist_is_no_success(domain: Domain) -> None:
    goal, _ = _goal(domain, name="nobody")
    assert not is_success(domain, goal)
