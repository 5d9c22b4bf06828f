"""The handcrafted policy: its constructors and its list of decisions."""

from __future__ import annotations

from random import Random

import pytest

from rlexp.envs.restaurant.handcrafted import handcrafted_act
from rlexp.envs.restaurant.tracker import FocusTracker

from .conftest import receive


def act(tracker: FocusTracker, seed: int = 0) -> str:
    return str(handcrafted_act(tracker, Random(seed)))


def test_asks_for_area_food_and_price_in_turn(tracker: FocusTracker) -> None:
    assert act(tracker) == "request(area)"
    receive(tracker, "request(area)", "inform(area=centre)")
    assert act(tracker) == "request(food)"
    receive(tracker, "request(food)", "inform(food=indian)")
    assert act(tracker) == "request(pricerange)"
    receive(tracker, "request(pricerange)", "inform(pricerange=cheap)")
    assert act(tracker).startswith("inform(name=")


def test_stops_asking_when_venues_cannot_be_told_apart(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", "inform(food=korean)")
    assert act(tracker).startswith("inform(name=")


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        ([0.85], "request(area)"),
        ([0.8], "request(area)"),
        ([0.75], 'confirm(food="thai")'),
        ([0.6], 'confirm(food="thai")'),
        ([0.31], 'confirm(food="thai")'),
        ([0.3], "request(area)"),
        ([0.5, 0.31], 'select(food="thai",food="indian")'),
        ([0.5, 0.29], 'confirm(food="thai")'),
        ([0.65, 0.35], 'confirm(food="thai")'),
    ],
)
def test_clarifies(tracker: FocusTracker, heard: list[float], expected: str) -> None:
    foods = ("thai", "indian")
    receive(tracker, "hello()", *((f"inform(food={food})", p) for food, p in zip(foods, heard, strict=False)))
    assert act(tracker) == expected


def test_clarifies_area_before_food_and_dontcare_too(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("inform(food=thai,area=dontcare)", 0.7))
    assert act(tracker) == 'confirm(area="dontcare")'


def test_offers_the_first_row_again_and_again(tracker: FocusTracker) -> None:
    """Unlike the summary action `inform`, which stays with the last offer."""
    receive(tracker, "hello()", "inform(area=east,food=indian,pricerange=moderate)")
    first, second = (
        tracker.domain.venues[row]["name"] for row in tracker.domain.query(*tracker.accepted).rows
    )
    receive(tracker, f"inform(name={second},area=east)", "inform(area=east)")
    assert act(tracker) == f'inform(name="{first}",area="east",food="indian",pricerange="moderate")'


def test_says_that_nothing_fits(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", "inform(food=swiss,area=dontcare)")
    assert act(tracker) == 'inform(name="none",food="swiss")'


def test_answers_questions_about_the_last_offer(tracker: FocusTracker) -> None:
    venue = tracker.domain.venues[0]
    receive(tracker, f"inform(name={venue['name']})", ("request(phone)", 0.9))
    assert act(tracker) == f'inform(name="{venue["name"]}",phone="{venue["phone"]}")'


@pytest.mark.parametrize(("p", "about_named"), [(0.8, True), (0.79, False)])
def test_a_named_venue_counts_from_point_eight(tracker: FocusTracker, p: float, about_named: bool) -> None:
    last, named = tracker.domain.venues[0]["name"], tracker.domain.venues[5]["name"]
    receive(tracker, f"inform(name={last})", (f"request(phone,name={named})", p))
    assert act(tracker).startswith(f'inform(name="{named if about_named else last}"')


def test_a_question_about_no_venue_falls_through(tracker: FocusTracker) -> None:
    (stray, *_) = set(tracker.domain.informable["name"]) - set(tracker.domain.venue_by_name)
    receive(tracker, "hello()", f"request(phone,name={stray})")
    assert tracker.top_method() == "byname" and act(tracker) == "request(area)"


def test_alternatives_need_next_to_no_evidence(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("reqalts()", 0.02), ("hello()", 0.9))
    offers = {act(tracker, seed) for seed in range(40)}
    assert len(offers) > 20 and all(offer.startswith("inform(name=") for offer in offers), "any venue will do"


def test_goodbye(tracker: FocusTracker) -> None:
    receive(tracker, "reqmore()", ("bye()", 0.9))
    receive(tracker, "reqmore()", ("bye()", 0.9))
    assert act(tracker) == "bye()"


def test_thanks_are_answered_only_after_an_offer_and_by_constraints(tracker: FocusTracker) -> None:
    name = tracker.domain.venues[0]["name"]
    receive(tracker, "hello()", ("thankyou()", 0.9))
    assert act(tracker) == "request(area)"
    receive(tracker, f"inform(name={name})", ("thankyou()", 0.9))
    assert act(tracker) == "reqmore()"
    receive(tracker, "reqmore()", ("ack()", 0.5), ("null()", 0.5))
    assert act(tracker) == "request(area)", "an unsure thank you does not count"
    receive(tracker, "reqmore()", ("reqalts()", 0.3))
    receive(tracker, "reqmore()", ("thankyou()", 1.0))
    assert act(tracker).startswith("inform(name="), "the wish for alternatives is carried on"


def test_answers_in_step_c_too(tracker: FocusTracker) -> None:
    venue = tracker.domain.venues[0]
    receive(tracker, "hello()", "inform(food=korean)")
    receive(tracker, f"inform(name={venue['name']})", ("inform(food=korean)", 0.4), ("request(phone)", 0.55))
    tracker.method = [float(name == "byconstraints") for name in tracker.domain.methods]
    assert act(tracker) == f'inform(name="{venue["name"]}",phone="{venue["phone"]}")'
    receive(tracker, "request(area)", "null()")
    assert "korean" in act(tracker), "only right after an offer"
