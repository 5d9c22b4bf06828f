"""The 16 actions and PyDial's masks."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rlexp.envs.restaurant.acts import DialogueAct, parse_act
from rlexp.envs.restaurant.summary import ACTIONS, Masks, execute, static_mask
from rlexp.envs.restaurant.tracker import FocusTracker

from .conftest import receive

HELLO = DialogueAct("hello")


def act(tracker: FocusTracker, name: str, previous: DialogueAct = HELLO, seed: int = 0) -> str:
    return str(execute(ACTIONS.index(name), tracker, previous, Random(seed)))


def know(tracker: FocusTracker, text: str = "inform(area=east,food=indian,pricerange=moderate)") -> list[str]:
    """Let the system know everything; returns the names of the two venues that fit."""
    receive(tracker, "hello()", text)
    return [tracker.domain.venues[row]["name"] for row in tracker.domain.query(*tracker.accepted).rows]


def test_order_of_the_actions() -> None:
    assert len(ACTIONS) == 16
    assert ACTIONS[:3] == ("request_area", "confirm_area", "select_area")
    assert ACTIONS[9:] == (
        "inform",
        "inform_byname",
        "inform_alternatives",
        "bye",
        "repeat",
        "reqmore",
        "restart",
    )


def test_questions(tracker: FocusTracker) -> None:
    assert act(tracker, "request_pricerange") == "request(pricerange)"
    assert act(tracker, "confirm_area") == 'confirm(area="centre")', "nothing heard: the first value there is"
    assert act(tracker, "select_food") == 'select(food="afghan",food="african")'
    receive(tracker, "hello()", ("inform(food=thai)", 0.5), ("inform(food=dontcare)", 0.2))
    assert act(tracker, "confirm_food") == 'confirm(food="thai")'
    assert act(tracker, "select_food") == 'select(food="thai",food="dontcare")'


def test_simple_acts(tracker: FocusTracker) -> None:
    assert act(tracker, "bye") == "bye()" and act(tracker, "reqmore") == "reqmore()"
    assert act(tracker, "restart") == "null()"
    assert act(tracker, "repeat") == "hello()"
    assert act(tracker, "repeat", parse_act("request(food)")) == "request(food)"


# -- inform ------------------------------------------------------------------------------------------------
# --------------


def test_inform_offers_the_first_venue_with_every_accepted_slot(tracker: FocusTracker) -> None:
    first, _ = know(tracker)
    assert act(tracker, "inform") == f'inform(name="{first}",area="east",food="indian",pricerange="moderate")'


def test_inform_prefers_the_last_offer(tracker: FocusTracker) -> None:
    _, second = know(tracker)
    receive(tracker, f"inform(name={second})", "null()")
    assert act(tracker, "inform").startswith(f'inform(name="{second}"')


def test_inform_fills_dontcare_slots_and_leaves_unaccepted_ones_out(tracker: FocusTracker) -> None:
    know(tracker, "inform(food=korean,pricerange=dontcare)")
    (venue,) = [venue for venue in tracker.domain.venues if venue["food"] == "korean"]
    assert act(tracker, "inform") == f'inform(name="{venue["name"]}",food="korean",pricerange="expensive")'


def test_inform_without_a_match_names_the_real_values(tracker: FocusTracker) -> None:
    know(tracker, "inform(food=swiss,area=dontcare,pricerange=cheap)")
    assert act(tracker, "inform") == 'inform(name="none",food="swiss",pricerange="cheap")'


def test_inform_without_constraints_draws_unless_something_was_offered(tracker: FocusTracker) -> None:
    know(tracker, "inform(area=dontcare)")
    offers = {act(tracker, "inform", seed=seed) for seed in range(60)}
    assert len(offers) > 30
    name = tracker.domain.venues[70]["name"]
    receive(tracker, f"inform(name={name})", "null()")
    assert {act(tracker, "inform", seed=seed).split(",")[0] for seed in range(20)} == {
        f'inform(name="{name}"'
    }


# -- inform_byname
# -------------------------------------------------------------------------------------------------------


def test_byname_answers_what_was_asked(tracker: FocusTracker) -> None:
    venue = tracker.domain.venues[0]
    receive(tracker, f"inform(name={venue['name']})", ("request(phone,addr)", 0.6))
    assert act(tracker, "inform_byname") == (
        f'inform(name="{venue["name"]}",addr="{venue["addr"]}",phone="{venue["phone"]}")'
    )


def test_byname_tells_something_when_nothing_was_asked(tracker: FocusTracker) -> None:
    name = tracker.domain.venues[0]["name"]
    receive(tracker, f"inform(name={name})", "null()")
    told = [execute(10, tracker, HELLO, Random(seed)).items for seed in range(200)]
    assert all(len(items) == 2 and items[0] == ("name", "=", name) for items in told)
    assert {items[1][0] for items in told} == set(tracker.domain.requestable) - {"name"}


def test_who_asks_the_name_is_told_no_more(tracker: FocusTracker) -> None:
    name = tracker.domain.venues[0]["name"]
    receive(tracker, f"inform(name={name})", ("confirm(name=whatever)", 0.9), ("request(name)", 0.1))
    assert act(tracker, "inform_byname") == f'inform(name="{name}")'


def test_byname_uses_the_name_whatever_its_size(tracker: FocusTracker) -> None:
    venue, named = tracker.domain.venues[0], tracker.domain.venues[5]
    receive(tracker, f"inform(name={venue['name']})", (f"request(phone,name={named['name']})", 0.5))
    assert tracker.top_name() == named["name"]
    assert act(tracker, "inform_byname").startswith(f'inform(name="{named["name"]}"')
    tracker.start()
    receive(tracker, f"inform(name={venue['name']})", (f"request(phone,name={named['name']})", 0.4))
    assert act(tracker, "inform_byname").startswith(f'inform(name="{venue["name"]}"'), (
        "nothing named is likelier"
    )


@pytest.mark.parametrize("heard", ["null()", "inform(name=dontcare)"])
def test_byname_of_no_venue_is_about_any(tracker: FocusTracker, heard: str) -> None:
    receive(tracker, "hello()", heard)
    names = {execute(10, tracker, HELLO, Random(seed)).items[0][2] for seed in range(60)}
    assert len(names) > 30 and names <= set(tracker.domain.venue_by_name)


def test_byname_of_a_name_without_a_venue(tracker: FocusTracker) -> None:
    (stray, *_) = set(tracker.domain.informable["name"]) - set(tracker.domain.venue_by_name)
    receive(tracker, "hello()", f"inform(name={stray})")
    assert act(tracker, "inform_byname") == f'inform(name="none",name="{stray}")'


def test_at_most_five_answers(tracker: FocusTracker) -> None:
    name = tracker.domain.venues[0]["name"]
    receive(tracker, f"inform(name={name})", "request(addr,area,food,phone,pricerange,postcode)")
    told = {execute(10, tracker, HELLO, Random(seed)).items for seed in range(50)}
    assert {len(items) for items in told} == {6} and len(told) == 6


# -- inform_alternatives
# -------------------------------------------------------------------------------------------------


def test_alternatives_in_turn_then_none_is_left(tracker: FocusTracker) -> None:
    first, second = know(tracker)
    assert first in act(tracker, "inform_alternatives")
    receive(tracker, f"inform(name={first})", "null()")
    assert second in act(tracker, "inform_alternatives")
    receive(tracker, f"inform(name={second})", "null()")
    assert act(tracker, "inform_alternatives") == (
        f'inform(name="none",name!="{first}",name!="{second}",area="east",food="indian",pricerange="moderate")'
    )
    receive(tracker, "inform(name=none)", "null()")
    assert first in act(tracker, "inform_alternatives"), "after a none everything can be offered again"


def test_all_offered_names_dontcare_slots_but_no_match_does_not(tracker: FocusTracker) -> None:
    (only,) = know(tracker, "inform(food=korean,area=dontcare)")
    receive(tracker, f"inform(name={only})", "null()")
    assert (
        act(tracker, "inform_alternatives")
        == f'inform(name="none",name!="{only}",area="dontcare",food="korean")'
    )
    tracker.start()
    know(tracker, "inform(food=swiss,area=dontcare)")
    assert act(tracker, "inform_alternatives") == 'inform(name="none",food="swiss")'


def test_alternatives_without_constraints_are_drawn(tracker: FocusTracker) -> None:
    name = tracker.domain.venues[0]["name"]
    receive(tracker, f"inform(name={name})", "reqalts()")
    offers = {act(tracker, "inform_alternatives", seed=seed) for seed in range(80)}
    assert len(offers) > 40 and f'inform(name="{name}")' not in offers


# -- masks -------------------------------------------------------------------------------------------------
# --------------


def allowed(tracker: FocusTracker, masks: Masks | None = None) -> set[str]:
    return {ACTIONS[number] for number in np.flatnonzero((masks or Masks(())).mask(tracker))}


REQUESTS = {"request_area", "request_food", "request_pricerange"}


def test_static_mask() -> None:
    mask = static_mask(("repeat", "restart"))
    assert mask.dtype == np.bool_ and mask.sum() == 14 and not mask[13] and not mask[15]


def test_at_first_only_requests_make_sense(tracker: FocusTracker) -> None:
    assert allowed(tracker) == REQUESTS


def test_confirm_and_select_need_something_heard(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("inform(food=thai)", 0.1))
    assert allowed(tracker) == REQUESTS | {"confirm_food"}
    receive(tracker, "request(food)", ("inform(food=indian)", 0.1))
    assert allowed(tracker) == REQUESTS | {"confirm_food", "select_food"}


def test_inform_when_venues_cannot_be_told_apart(tracker: FocusTracker) -> None:
    know(tracker, "inform(area=east,food=indian)")
    assert "inform" not in allowed(tracker)
    receive(tracker, "request(pricerange)", "inform(pricerange=moderate)")
    assert "inform" in allowed(tracker)
    receive(tracker, "request(pricerange)", "reqalts()")
    assert "inform" not in allowed(tracker), "only while the user gives constraints"


def test_byname_needs_the_method_and_a_venue(tracker: FocusTracker) -> None:
    name = tracker.domain.venues[0]["name"]
    receive(tracker, "hello()", ("request(phone)", 0.9))
    assert "inform_byname" not in allowed(tracker)
    receive(tracker, f"inform(name={name})", ("request(phone)", 0.9))
    assert "inform_byname" in allowed(tracker) and "reqmore" in allowed(tracker)
    tracker.start()
    receive(tracker, "hello()", f"inform(name={name})")
    assert "inform_byname" in allowed(tracker) and "reqmore" not in allowed(tracker)


def test_alternatives_are_wanted_until_given(tracker: FocusTracker) -> None:
    name = tracker.domain.venues[0]["name"]
    masks = Masks(())
    receive(tracker, "hello()", ("reqalts()", 0.9))
    masks.observe(tracker)
    assert "inform_alternatives" not in allowed(tracker, masks), "nothing has been offered"
    receive(tracker, f"inform(name={name})", ("inform(area=north)", 1.0))
    masks.observe(tracker)
    assert tracker.top_method() == "byconstraints" and "inform_alternatives" in allowed(tracker, masks)
    masks.executed(ACTIONS.index("inform"))
    assert "inform_alternatives" in allowed(tracker, masks)
    masks.executed(ACTIONS.index("inform_alternatives"))
    assert "inform_alternatives" not in allowed(tracker, masks)
    masks.observe(tracker)
    assert "inform_alternatives" not in allowed(tracker, masks)


@pytest.mark.parametrize(("thanks", "wanted"), [(0.6, False), (0.4, True)])
def test_thanks_are_no_wish_for_alternatives(tracker: FocusTracker, thanks: float, wanted: bool) -> None:
    masks = Masks(())
    receive(tracker, "hello()", ("thankyou()", thanks), ("reqalts()", 0.2))
    masks.observe(tracker)
    assert masks.alternatives_wanted is wanted
    masks.start()
    assert not masks.alternatives_wanted


def test_bye_needs_a_sure_goodbye(tracker: FocusTracker) -> None:
    receive(tracker, "hello()", ("bye()", 0.7))
    assert "bye" not in allowed(tracker)
    receive(tracker, "reqmore()", ("bye()", 0.9))
    assert "bye" in allowed(tracker)


def test_disabled_actions_stay_disabled_and_something_is_always_allowed(tracker: FocusTracker) -> None:
    assert allowed(tracker, Masks(("request_food",))) == REQUESTS - {"request_food"}
    assert allowed(tracker, Masks(tuple(sorted(REQUESTS)))) == set(ACTIONS) - REQUESTS
