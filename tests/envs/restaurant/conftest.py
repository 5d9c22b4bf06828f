"""Shared by the restaurant tests: domains, and users, trackers and acts made to order."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from rlexp.envs.restaurant.acts import DialogueAct, parse_act
from rlexp.envs.restaurant.domain import SLOTS, Domain, load_domain
from rlexp.envs.restaurant.goals import Goal
from rlexp.envs.restaurant.tracker import FocusTracker
from rlexp.envs.restaurant.user import BYE, SimulatedUser
from rlexp.envs.restaurant.user_parameters import UserParameters

Files = tuple[Path, Path]
MakeUser = Callable[..., SimulatedUser]


@pytest.fixture(scope="session")
def domain() -> Domain:
    """The shipped domain."""
    return load_domain()


@pytest.fixture(scope="session")
def real_files() -> Files:
    """PyDial's own files, which are not part of the project."""
    folder = Path(
        os.environ.get("RLEXP_PYDIAL_DATA", Path(__file__).parents[4] / "shared" / "data" / "pydial")
    )
    files = (folder / "CamRestaurants-dbase.db", folder / "CamRestaurants-rules.json")
    if not all(file.is_file() for file in files):
        pytest.skip("PyDial's CamRestaurants files are not here: set RLEXP_PYDIAL_DATA to their folder")
    return files


@pytest.fixture
def tracker(domain: Domain) -> FocusTracker:
    """A tracker that has heard nothing."""
    return FocusTracker(domain)


@pytest.fixture
def make_user(domain: Domain) -> MakeUser:
    """Make a user with a goal, an agenda that holds nothing but bye, and habits that leave nothing to
    chance."""

    def make(
        area: str = "north",
        food: str = "indian",
        pricerange: str = "moderate",
        requests: dict[str, str | None] | None = None,
        pending: tuple[str, ...] = (),
        patience: int = 5,
        **habits: float,
    ) -> SimulatedUser:
        user = SimulatedUser(domain, "default", (patience, patience + 1))
        user.start(Random(0))
        wishes = dict(zip(SLOTS, (area, food, pricerange), strict=True))
        user.goal = Goal(wishes, {"name": None, "phone": None} if requests is None else dict(requests))
        # The top of the agenda is the end of the list; tests write the top first.
        user.agenda = [BYE, *(parse_act(text) for text in reversed(pending))]
        user.parameters = UserParameters(**{name: habits.pop(name, 0.0) for name in UserParameters._fields})
        assert not habits, f"no such habits: {habits}"
        return user

    return make


def receive(tracker: FocusTracker, system: str, *heard: str | tuple[str, float]) -> None:
    """Let a tracker take in a turn; acts without a probability share what is left, null() gets the rest."""
    hypotheses: list[tuple[DialogueAct, float]] = []
    for entry in heard:
        text, p = (entry, 1.0) if isinstance(entry, str) else entry
        hypotheses.append((parse_act(text), p))
    rest = 1.0 - sum(p for _, p in hypotheses)
    if rest > 1e-9:
        hypotheses.append((DialogueAct("null"), rest))
    tracker.update(parse_act(system), hypotheses)


def belief(tracker: FocusTracker, slot: str) -> dict[str, float]:
    """What is believed about a slot, by value."""
    return {tracker.value_of(position): p for position, p in tracker.beliefs[slot].values.items()}
