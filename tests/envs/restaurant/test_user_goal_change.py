"""Settling on a venue, asking for another, and changing one's mind."""

from __future__ import annotations

from collections import Counter

import pytest

from rlexp.envs.restaurant.acts import parse_act
from rlexp.envs.restaurant.user import SimulatedUser

from .conftest import MakeUser

OFFER = "inform(name=x,area=north,food=indian,pricerange=moderate)"
OTHER = OFFER.replace("name=x", "name=y")
NONE_LEFT = "inform(name=none,name!=x,name!=y,area=north,food=indian)"


def say(user: SimulatedUser, system: str) -> str:
    return str(user.turn(parse_act(system)))


def test_settles_on_the_first_venue_and_follows_later_ones(make_user: MakeUser) -> None:
    user = make_user()
    say(user, OFFER)
    assert user.first_venue_offered and user.goal.name_is == "x"
    say(user, OTHER)
    assert user.goal.name_is == "y"


def test_asks_for_alternatives_at_the_first_venue_only(make_user: MakeUser) -> None:
    user = make_user(alternatives_after_first_venue=1.0, requests={"name": None})
    assert say(user, OFFER) == "reqalts()"
    assert user.goal.name_not == ["x"] and user.goal.name_is is None
    assert user.goal.requests == {"name": None}, "the venue is not taken down"
    assert say(user, OTHER) == "bye()"
    assert user.goal.name_is == "y" and user.goal.name_not == ["x"]


def test_an_offer_that_is_corrected_does_not_count_as_the_first(make_user: MakeUser) -> None:
    user = make_user(alternatives_after_first_venue=1.0)
    say(user, "inform(name=x,area=west)")
    assert not user.first_venue_offered
    assert say(user, OFFER) == "reqalts()"


def test_the_two_reactions_share_one_draw(make_user: MakeUser) -> None:
    counts: Counter[str] = Counter()
    for seed in range(3000):
        user = make_user(
            alternatives_after_first_venue=0.3,
            change_goal_after_first_venue=0.3,
            tell_about_change=1.0,
            constraint_relax=1.0,
        )
        user.random.seed(seed)
        counts[say(user, OFFER).split("(")[0]] += 1
    # Both say reqalts; of the changes one in three is of a slot each.
    assert counts["reqalts"] / 3000 == pytest.approx(0.6, abs=0.03)


def test_change_and_tell(make_user: MakeUser) -> None:
    user = make_user(change_goal_after_first_venue=1.0, tell_about_change=1.0, constraint_relax=1.0)
    said = parse_act(say(user, OFFER))
    ((slot, _, value),) = said.items
    assert said.kind == "reqalts" and value == "dontcare" and user.goal.constraints[slot or ""] == "dontcare"
    assert user.goal.name_not == [] and user.goal.name_is is None


def test_change_to_dontcare_without_telling_avoids_the_venue(make_user: MakeUser) -> None:
    user = make_user(change_goal_after_first_venue=1.0, constraint_relax=1.0)
    assert say(user, OFFER) == "reqalts()"
    assert sorted(user.goal.constraints.values()).count("dontcare") == 1
    assert user.goal.name_not == ["x"]


def test_change_to_another_value_without_telling_becomes_a_question(make_user: MakeUser) -> None:
    user = make_user(change_goal_after_first_venue=1.0)
    assert say(user, OFFER) == "reqalts()"
    (changed,) = [slot for slot in ("area", "food", "pricerange") if slot in user.goal.requests]
    assert user.goal.requests[changed] is None and user.goal.constraints[changed] not in ("dontcare", "north")
    assert user.goal.name_not == []


def test_a_pending_wish_is_not_forgotten(make_user: MakeUser) -> None:
    user = make_user(
        change_goal_after_first_venue=1.0,
        tell_about_change=1.0,
        pending=("inform(area=north)", "inform(food=indian)"),
    )
    say(user, "inform(name=x,area=north)")
    assert user.goal.constraints["area"] != "north"
    assert [str(act) for act in user.agenda[1:]] == ['inform(food="indian")', 'inform(area="north")']


def test_new_values_are_never_used_twice(make_user: MakeUser) -> None:
    user = make_user(pricerange="moderate", area="dontcare", food="dontcare")
    said = []
    for value in ("moderate", None, None):
        wanted = value or user.goal.constraints["pricerange"]
        said.append(wanted)
        say(user, f"inform(name=none,pricerange={wanted})")
        user._previous_system_act = None
    assert sorted(said) == ["cheap", "expensive", "moderate"]
    assert user.goal.constraints["pricerange"] == "dontcare", "when every value has been tried"


def test_no_venue_changes_the_goal_for_sure_and_says_so(make_user: MakeUser) -> None:
    user = make_user(requests={"name": None})
    user.goal.name_not = ["z"]
    said = parse_act(say(user, "inform(name=none,area=north,food=indian)"))
    ((slot, _, value),) = said.items
    assert said.kind == "reqalts" and slot in ("area", "food")
    assert user.goal.constraints[slot or ""] == value and user.goal.name_not == []


def test_a_filled_in_dontcare_slot_can_become_a_wish(make_user: MakeUser) -> None:
    changed = set()
    for seed in range(60):
        user = make_user(area="dontcare", change_goal_after_first_venue=1.0, tell_about_change=1.0)
        user.random.seed(seed)
        changed.add(parse_act(say(user, "inform(name=x,area=west)")).items[0])
    assert {slot for slot, _, _ in changed} == {"area"}
    assert {value for _, _, value in changed} == {"centre", "north", "west", "south", "east"}


def test_without_a_candidate_any_wish_may_change(make_user: MakeUser) -> None:
    changed = set()
    for seed in range(60):
        user = make_user(change_goal_after_first_venue=1.0, tell_about_change=1.0, constraint_relax=1.0)
        user.random.seed(seed)
        changed.add(say(user, "inform(name=x,phone=1)"))
    assert changed == {f'reqalts({slot}="dontcare")' for slot in ("area", "food", "pricerange")}


# -- nothing but these venues
# ------------------------------------------------------------------------------------------------


def settled(user: SimulatedUser) -> SimulatedUser:
    user.first_venue_offered = True
    return user


def test_one_of_the_listed_venues_is_chosen(make_user: MakeUser) -> None:
    chosen = set()
    for seed in range(40):
        user = settled(make_user(pending=("inform(pricerange=moderate)", "inform(food=indian)")))
        user.random.seed(seed)
        said = parse_act(say(user, NONE_LEFT))
        venue = user.goal.requests["name"]
        chosen.add(venue)
        assert said.kind == "request" and said.items == (("phone", "=", None), ("name", "=", venue))
        assert user.goal.constraints == {"area": "north", "food": "indian", "pricerange": "dontcare"}
        assert [str(act) for act in user.agenda] == ["bye()", 'inform(food="indian")']
    assert chosen == {"x", "y"}


def test_unwanted_venues_are_left_out(make_user: MakeUser) -> None:
    for seed in range(20):
        user = settled(make_user())
        user.random.seed(seed)
        user.goal.name_not = ["x"]
        say(user, NONE_LEFT)
        assert user.goal.requests["name"] == "y" and user.goal.name_not == ["x"]


def test_if_no_listed_venue_fits_the_name_no_longer_matters(make_user: MakeUser) -> None:
    user = settled(make_user())
    user.goal.name_not = ["x", "y"]
    say(user, NONE_LEFT)
    assert user.goal.requests["name"] in ("x", "y") and user.goal.name_not == []


def test_the_check_comes_first(make_user: MakeUser) -> None:
    user = settled(make_user(correct_by_negate=1.0))
    assert say(user, "inform(name=none,name!=x,area=dontcare)") == 'negate(area="north")'
    assert user.goal.requests["name"] is None


def test_the_list_uses_up_the_first_venue(make_user: MakeUser) -> None:
    user = make_user(alternatives_after_first_venue=1.0)
    assert say(user, NONE_LEFT) == "reqalts()"
    assert user.first_venue_offered and user.goal.name_not == []


def test_nothing_to_ask_about_the_chosen_venue(make_user: MakeUser) -> None:
    user = settled(make_user(requests={"name": None}))
    assert say(user, NONE_LEFT) == "bye()"
    assert user.goal.requests["name"] in ("x", "y")
