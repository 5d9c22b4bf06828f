"""The focus tracker: the numbers of every rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlexp.envs.restaurant.domain import Domain
from rlexp.envs.restaurant.tracker import FocusTracker, count_block

from .conftest import belief, receive


def method(tracker: FocusTracker) -> dict[str, float]:
    return {name: p for name, p in zip(tracker.domain.methods, tracker.method, strict=True) if p > 0}


def requested(tracker: FocusTracker) -> dict[str, float]:
    return {name: p for name, p in zip(tracker.domain.requestable, tracker.requested, strict=True) if p > 0}


# -- slots -------------------------------------------------------------------------------------------------
# ------------


def test_focus_update(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("inform(food=thai)", 0.6), ("inform(food=indian)", 0.1))
    assert belief(tracker, "food") == pytest.approx({"thai": 0.6, "indian": 0.1})
    assert tracker.beliefs["food"].nothing == pytest.approx(0.3)
    receive(tracker, "request(food)", ("inform(food=indian)", 0.5))
    assert belief(tracker, "food") == pytest.approx({"thai": 0.3, "indian": 0.55})
    before = tracker.vector()
    receive(tracker, "request(area)", ("inform(area=north)", 0.5))
    assert belief(tracker, "food") == pytest.approx({"thai": 0.3, "indian": 0.55}), (
        "only contradicted beliefs decay"
    )
    assert (tracker.vector()[:93] == before[:93]).all()


def test_a_turn_without_news_leaves_the_state_as_it_is(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("inform(food=thai)", 0.6))
    before = tracker.vector()
    receive(tracker, "request(food)", "null()")
    assert (tracker.vector() == before).all()


def test_same_value_in_several_hypotheses_adds_up(tracker: FocusTracker) -> None:
    receive(
        tracker,
        "hello()",
        ("inform(food=thai)", 0.5),
        ("affirm(food=thai)", 0.2),
        ("reqalts(food=thai)", 0.1),
    )
    assert belief(tracker, "food") == pytest.approx({"thai": 0.8})


def test_ranking_breaks_ties_by_the_ontology_with_dontcare_last(tracker: FocusTracker) -> None:
    top = tracker.beliefs["area"]
    assert (tracker.value_of(top.top), tracker.value_of(top.second)) == ("centre", "north")
    receive(tracker, "hello()", ("inform(area=dontcare)", 0.4), ("inform(area=south)", 0.4))
    assert (tracker.value_of(top.top), tracker.value_of(top.second)) == ("south", "dontcare")
    assert (top.p1, top.p2) == pytest.approx((0.4, 0.4))
    receive(tracker, "request(area)", "inform(area=north)")
    assert (tracker.value_of(top.top), tracker.value_of(top.second)) == ("north", "centre")
    assert (top.p1, top.p2) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("heard", "accepted"),
    [
        ([("inform(food=thai)", 0.51)], "thai"),
        ([("inform(food=thai)", 0.49)], None),
        ([("inform(food=thai)", 0.5)], "thai"),  # a tie with "nothing heard" goes to the value
        ([("inform(food=thai)", 0.4), ("inform(food=indian)", 0.3)], "thai"),
        ([("inform(food=dontcare)", 0.6)], "dontcare"),
    ],
)
def test_accepted_values(tracker: FocusTracker, heard: list[tuple[str, float]], accepted: str | None) -> None:
    receive(tracker, "request(area)", *heard)
    assert tracker.accepted == (None, accepted, None)


# -- what acts mean
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("request(area)", {"dontcare": 0.9}),
        ("select(area=north,area=west)", {}),
        ("confirm(area=north)", {}),
        ("hello()", {}),
        ("reqmore()", {}),
    ],
)
def test_unnamed_dontcare_is_understood_only_after_a_request(
    tracker: FocusTracker, system: str, expected: dict[str, float]
) -> None:
    receive(tracker, system, ("inform(=dontcare)", 0.9))
    assert belief(tracker, "area") == pytest.approx(expected)
    assert tracker.top_method() == "byconstraints" and method(tracker)["byconstraints"] > 0.4


def test_unnamed_dontcare_with_more(tracker: FocusTracker) -> None:
    receive(tracker, "request(area)", "inform(=dontcare,food=thai)")
    assert tracker.accepted == ("dontcare", "thai", None)


@pytest.mark.parametrize(
    ("system", "said", "area", "food", "said_method"),
    [
        ("confirm(area=north)", "affirm()", "north", None, "byconstraints"),
        ("select(area=north,area=west)", "affirm()", None, None, "none"),
        ("confirm(area=north)", "negate()", None, None, "none"),
        ("confirm(area=north)", "negate(area=west)", "west", None, "byconstraints"),
        ("confirm(area=north)", "affirm(food=thai)", "north", "thai", "byconstraints"),
        ("confirm(area=north)", "affirm(type=restaurant)", "north", None, "none"),
        ("request(food)", "affirm(food=thai)", None, "thai", "byconstraints"),
        ("confirm(area=north)", "deny(area=north,area=west)", "west", None, "byconstraints"),
        ("confirm(area=dontcare)", "deny(area=dontcare,area=west)", None, None, "none"),
        ("confirm(area=north)", "deny(area=north,area=dontcare)", None, None, "none"),
        ("confirm(area=north)", "deny(area=north,area=north)", None, None, "none"),
        ("confirm(area=north)", "deny(area=north)", None, None, "none"),
        ("confirm(area=north)", "deny()", None, None, "none"),
        ("hello()", "hello(area=west)", "west", None, "byconstraints"),
        ("hello()", "hello()", None, None, "none"),
        ("hello()", "inform(type=restaurant)", None, None, "none"),
        ("hello()", "inform(phone)", None, None, "none"),
        ("hello()", "inform(area=west,area=east)", "east", None, "byconstraints"),
        ("hello()", "reqalts(food=thai)", None, "thai", "byalternatives"),
        ("hello()", "reqalts()", None, None, "byalternatives"),
        ("hello()", "reqmore()", None, None, "none"),
        ("hello()", "thankyou()", None, None, "none"),
        ("hello()", "confirm(area=west)", None, None, "none"),
        ("hello()", "bye()", None, None, "finished"),
        ("hello()", "restart()", None, None, "restart"),
    ],
)
def test_meanings(
    tracker: FocusTracker, system: str, said: str, area: str | None, food: str | None, said_method: str
) -> None:
    receive(tracker, system, said)
    assert tracker.accepted == (area, food, None)
    carried = {name for name in method(tracker) if name != "none"}
    assert carried == ({said_method} - {"none"})


def test_venue_names_are_informed_too(tracker: FocusTracker, domain: Domain) -> None:
    name = domain.venues[3]["name"]
    receive(tracker, "hello()", (f"inform(name={name},area=north)", 0.7))
    assert tracker.top_name() == name and tracker.top_name(0.8) is None
    assert method(tracker)["byname"] > 0.4


def test_request_with_a_venue_name_informs_it(tracker: FocusTracker, domain: Domain) -> None:
    name = domain.venues[3]["name"]
    receive(tracker, "hello()", (f"request(phone,name={name})", 0.9))
    assert belief(tracker, "name") == pytest.approx({name: 0.9})
    assert requested(tracker) == pytest.approx({"phone": 0.9})
    assert "byname" in method(tracker)


# -- method ------------------------------------------------------------------------------------------------
# ------------


def test_method_numbers(tracker: FocusTracker) -> None:
    """Its "none" is neither multiplied nor added to; it only shrinks when everything is scaled to 1."""
    receive(tracker, "hello()", ("inform(area=north)", 0.9))
    assert method(tracker) == pytest.approx({"none": 0.526, "byconstraints": 0.474}, abs=5e-4)
    receive(tracker, "request(food)", ("inform(food=thai)", 0.8))
    assert method(tracker) == pytest.approx({"none": 0.370, "byconstraints": 0.630}, abs=5e-4)


def test_a_less_certain_bye_counts_for_little(tracker: FocusTracker, domain: Domain) -> None:
    tracker.method = [{"none": 0.526, "byname": 0.474}.get(name, 0.0) for name in domain.methods]
    receive(tracker, "hello()", ("bye()", 0.7))
    assert method(tracker) == pytest.approx({"finished": 0.51, "byname": 0.10, "none": 0.38}, abs=5e-3)
    assert tracker.top_method() == "finished"
    tracker.start()
    receive(tracker, "hello()", ("bye()", 0.7))
    assert tracker.top_method() == "byconstraints", "finished needs more than half"


def test_top_method_leaves_none_out_and_has_no_threshold_for_alternatives(tracker: FocusTracker) -> None:
    assert tracker.top_method() == "byconstraints"
    receive(tracker, "hello()", ("reqalts()", 0.02))
    assert tracker.top_method() == "byalternatives"


def test_top_method_breaks_ties_in_its_own_order(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("reqalts()", 0.5), ("inform(area=north)", 0.5))
    assert tracker.top_method() == "byconstraints"


def test_questions_are_by_name_once_a_venue_was_offered(tracker: FocusTracker, domain: Domain) -> None:
    receive(tracker, "hello()", ("request(phone)", 0.9))
    assert "byname" not in method(tracker)
    name = domain.venues[0]["name"]
    receive(tracker, f"inform(name={name})", ("request(phone)", 0.9))
    assert "byname" in method(tracker)
    tracker.start()
    receive(tracker, "hello()", ("confirm(area=north)", 0.9))
    assert "byname" not in method(tracker), "a new dialogue has offered nothing"


# -- requested slots
# -----------------------------------------------------------------------------------------------------


def test_requests_add_up_until_they_are_answered(tracker: FocusTracker, domain: Domain) -> None:
    name = domain.venues[0]["name"]
    receive(tracker, "hello()", ("request(phone,addr)", 0.6))
    assert requested(tracker) == pytest.approx({"addr": 0.6, "phone": 0.6})
    receive(tracker, "reqmore()", ("request(phone)", 0.6))
    assert requested(tracker) == pytest.approx({"addr": 0.6, "phone": 1.0})
    assert tracker.requested_slots() == ["addr", "phone"]
    for nothing_told in ("inform(name=none,phone=x)", "confirm(area=north)", "select(area=north,area=west)"):
        receive(tracker, nothing_told, "null()")
        assert requested(tracker) == pytest.approx({"addr": 0.6, "phone": 1.0})
    receive(tracker, f"inform(name={name},phone=not available)", "null()")
    assert requested(tracker) == pytest.approx({"addr": 0.6})
    receive(tracker, f'inform(name={name},addr="")', ("request(addr)", 0.3))
    assert requested(tracker) == pytest.approx({"addr": 0.3})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("confirm(area=north)", {"area": 1.0}),
        ("confirm(phone)", {}),
        ("confirm(type=restaurant)", {}),
        ("request(name)", {"name": 1.0}),
        ("request(phone,phone)", {"phone": 1.0}),
    ],
)
def test_what_requests(tracker: FocusTracker, said: str, expected: dict[str, float]) -> None:
    receive(tracker, "hello()", said)
    assert requested(tracker) == pytest.approx(expected)
    assert tracker.accepted == (None, None, None), "a question is not a constraint"


# -- features and vector
# -----------------------------------------------------------------------------------------------


def test_features_of_the_last_system_act(tracker: FocusTracker, domain: Domain) -> None:
    one, two = domain.venues[0]["name"], domain.venues[1]["name"]
    receive(tracker, f"inform(name={one},area=north)", "null()")
    assert (tracker.last_venue, tracker.offer_happened, tracker.inform_none) == (one, True, False)
    receive(tracker, f"inform(name={two},phone=1)", "null()")
    assert tracker.offered_since_none == [one, two] and tracker.offer_happened, "an answer is an offer too"
    receive(tracker, "request(area)", "null()")
    assert (tracker.last_venue, tracker.offer_happened) == (two, False)
    receive(tracker, f"inform(name=none,name!={one},area=north)", "null()")
    assert (tracker.last_venue, tracker.offer_happened, tracker.inform_none) == (two, False, True)
    assert tracker.offered_since_none == []
    receive(tracker, "reqmore()", "null()")
    assert not tracker.inform_none


def test_initial_vector(tracker: FocusTracker) -> None:
    vector = tracker.vector()
    assert vector.shape == (268,) and vector.dtype == np.float32
    # nothing heard about food, pricerange, name, area; method none; discourse none; five times "many, can
    # be told apart"
    ones = [91, 96, 211, 218, 220, 228, *(243 + 5 * k + bit for k in range(5) for bit in (3, 4))]
    assert np.flatnonzero(vector).tolist() == sorted(ones)
    assert (vector[ones] == 1.0).all()


def test_vector_blocks(tracker: FocusTracker, domain: Domain) -> None:
    name = domain.venues[0]["name"]
    receive(
        tracker,
        f"inform(name={name})",
        ("inform(food=thai,pricerange=dontcare)", 0.6),
        ("request(description)", 0.1),
        ("ack()", 0.2),
    )
    vector = tracker.vector()
    assert vector[domain.informable["food"].index("thai")] == pytest.approx(0.6)
    assert vector[91] == pytest.approx(0.4), "nothing heard about food"
    assert vector[93 + 4] == pytest.approx(0.6), "dontcare comes after nothing heard"
    assert vector[220:226].sum() == pytest.approx(1.0), "method"
    assert vector[226] == pytest.approx(0.2), "ack"
    assert vector[228] == pytest.approx(0.8), "no discourse act"
    assert vector[232 + 8] == pytest.approx(0.1), "description requested"
    assert (vector[241], vector[242]) == (0.0, 1.0), "an offer happened"
    assert vector.min() >= 0.0 and vector.max() <= 1.0


def test_bye_is_in_no_discourse_cell(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("bye()", 0.9))
    assert tracker.vector()[226:232].sum() == pytest.approx(0.1)
    assert tracker.top_discourse() == "bye"


def test_counts_follow_the_surest_values(tracker: FocusTracker, domain: Domain) -> None:
    receive(tracker, "request(area)", ("inform(area=east)", 0.6))
    receive(tracker, "request(food)", ("inform(food=indian)", 0.9))
    n_indian, n_both = (
        len(domain.query(None, "indian", None).rows),
        len(domain.query("east", "indian", None).rows),
    )
    assert (n_indian, n_both) == (22, 4)
    first, *others = tracker.vector()[243:].reshape(5, 5).tolist()
    assert first == [0, 0, 0, 1, 1], "22 Indian venues: food is surest"
    assert others == [[0, 0, 1, 0, 1]] * 4, "4 of them in the east, of two price ranges"


def test_count_block_of_equal_beliefs_goes_by_slot(domain: Domain) -> None:
    assert (
        list(count_block(domain, (("food", "korean"), ("area", "east"))))
        == [0, 1, 0, 0, 0] + [1, 0, 0, 0, 0] * 4
    )


def test_vector_is_a_copy(tracker: FocusTracker) -> None:
    before = tracker.vector()
    receive(tracker, "hello()", "inform(area=north)")
    assert before[218] == 1.0 and tracker.vector()[218] == 0.0


def test_start_forgets_everything(tracker: FocusTracker) -> None:
    fresh = tracker.vector()
    receive(tracker, "hello()", ("inform(area=north,food=thai)", 0.5), ("request(phone)", 0.2))
    tracker.start()
    assert (tracker.vector() == fresh).all() and tracker.accepted == (None, None, None)


@pytest.mark.parametrize(
    "channel",
    [
        {"error_rate": 0.4, "error_model": "set3"},
        {"error_rate": 0.4, "error_model": "random", "n_best": 1},  # beliefs are replaced, not mixed
    ],
)
def test_vector_always_shows_the_beliefs(channel: dict[str, Any]) -> None:
    """The vector is kept up to date piece by piece; here it is rebuilt from scratch after every turn."""
    from rlexp.envs.restaurant.env import RestaurantEnv

    env = RestaurantEnv(confusion_seed=1, **channel)
    env.reset(seed=1)
    layout = env.tracker._layout
    for _ in range(30):
        env.reset()
        done = False
        while not done:
            observation, _, terminated, truncated, _ = env.step(env.controller_action("random"))
            done = terminated or truncated
            if done:
                break
            expected = np.zeros(268)
            for slot, one in env.tracker.beliefs.items():
                expected[list(one.values)] = list(one.values.values())
                expected[layout.nothing_heard[slot]] = one.nothing
            expected[layout.method : layout.discourse] = env.tracker.method
            expected[layout.discourse : layout.requested] = env.tracker.discourse[:-1]
            expected[layout.requested : layout.inform_none] = env.tracker.requested
            expected[layout.inform_none] = env.tracker.inform_none
            expected[layout.offer_happened] = env.tracker.offer_happened
            expected[layout.counts :] = observation[layout.counts :]
            np.testing.assert_allclose(observation, expected, atol=1e-6)
            assert observation.min() >= 0.0 and observation.max() <= 1.0
