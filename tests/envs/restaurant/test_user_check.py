"""The implicit check, case by case, and what follows from it."""

from __future__ import annotations

from collections import Counter

import pytest

from rlexp.envs.restaurant.acts import parse_act
from rlexp.envs.restaurant.user import SimulatedUser

from .conftest import MakeUser

FITS = "inform(name=x,area=north,food=indian,pricerange=moderate)"


def say(user: SimulatedUser, system: str) -> str:
    return str(user.turn(parse_act(system)))


CORRECT = {"correct_by_negate": 1.0}


@pytest.mark.parametrize(
    ("goal", "name_is", "name_not", "system", "reaction"),
    [
        # the three slots: only a real wish can clash, with another value or with dontcare
        ({}, None, [], FITS, None),
        ({}, None, [], "inform(name=x,area=west)", 'negate(area="north")'),
        ({}, None, [], "inform(name=x,area=dontcare)", 'negate(area="north")'),
        ({"area": "dontcare"}, None, [], "inform(name=x,area=west)", None),
        ({"area": "dontcare"}, None, [], "inform(name=x,area=dontcare)", None),
        ({}, None, [], "confirm(area=west)", 'negate(area="north")'),
        ({}, None, [], "confirm(area=dontcare)", 'negate(area="north")'),
        ({"area": "dontcare"}, None, [], "confirm(area=west)", None),
        ({}, None, [], "inform(name=x,phone=1)", None),
        ({}, None, [], "inform(name=none,area=north,food=thai)", 'negate(food="indian")'),
        ({}, None, [], "inform(name=x,area=north,food=thai,pricerange=cheap)", 'negate(food="indian")'),
        # a venue settled on: checked only in acts that give information
        ({}, "x", [], FITS, None),
        ({}, "y", [], FITS, None),
        ({}, "y", [], "inform(name=x,area=north)", None),
        ({}, "y", [], "inform(name=x,phone=1)", 'negate(name="y")'),
        ({}, "x", [], "inform(name=x,phone=1)", None),
        ({}, "y", [], "inform(name=none,area=north)", None),
        ({}, "y", [], "inform(name=none,name!=y,area=north)", None),
        # a venue not wanted again
        ({}, None, ["x"], FITS, "reqalts()"),
        ({}, None, ["x"], "inform(name=x,phone=1)", "reqalts()"),
        ({}, None, ["y"], FITS, None),
        ({}, None, ["y"], "inform(name=x,phone=1)", None),
        ({}, None, ["x"], "inform(name=none,name!=x,area=north)", None),
        # both: even a third venue is unwanted
        ({}, "y", ["z"], FITS, "reqalts()"),
        ({}, "x", ["z"], FITS, None),
    ],
)
def test_table(
    make_user: MakeUser,
    goal: dict[str, str],
    name_is: str | None,
    name_not: list[str],
    system: str,
    reaction: str | None,
) -> None:
    user = make_user(**goal, **CORRECT, requests={"name": "x", "phone": "1"})
    user.first_venue_offered = True
    user.goal.name_is, user.goal.name_not = name_is, list(name_not)
    said = say(user, system)
    if reaction is None:
        assert not said.startswith(("negate", "deny"))
        assert said != "reqalts()" or "name=none" in system
        assert user.goal.requests["phone"] == "1", "nothing is asked again"
    else:
        assert said == reaction
        assert user.goal.requests == {"name": None, "phone": None}, "every question is open again"


def test_a_none_act_that_clashes_with_the_name_lifts_the_ban(make_user: MakeUser) -> None:
    user = make_user(requests={"name": None})
    user.goal.name_is, user.goal.name_not = "y", ["z"]
    user.first_venue_offered = True
    say(user, "inform(name=none,name!=x,name!=y,area=north,food=indian,pricerange=moderate)")
    assert user.goal.name_not == [] and user.goal.name_is == "y"


def test_forms_of_correction(make_user: MakeUser) -> None:
    assert say(make_user(correct_by_negate=1.0), "confirm(area=west)") == 'negate(area="north")'
    assert say(make_user(correct_by_deny=1.0), "confirm(area=west)") == 'deny(area="west",area="north")'
    assert say(make_user(), "confirm(area=west)") == 'inform(area="north")'


def test_impatient_users_leave_instead_and_keep_their_answers(make_user: MakeUser) -> None:
    counts: Counter[str] = Counter()
    user = make_user(patience=5)
    for _ in range(4000):
        user.agenda = user.agenda[:1] or [parse_act("bye()")]
        user._previous_system_act = None
        user.patience = 2
        user.goal.requests = {"name": "x", "phone": "1"}
        said = say(user, "confirm(area=west)")
        counts[said] += 1
        assert user.goal.requests["phone"] == ("1" if said == "bye()" else None)
    assert counts["bye()"] / 4000 == pytest.approx((1 - 2 / 5) ** 2, abs=0.03)


def test_a_patient_user_never_leaves(make_user: MakeUser) -> None:
    for _ in range(200):
        assert say(make_user(), "confirm(area=west)") != "bye()"


def test_overruled_correction_asks_about_something_unmentioned(make_user: MakeUser) -> None:
    asked = set()
    user = make_user(overrule_correction=1.0, requests={"name": "x"})
    for _ in range(100):
        user._previous_system_act = None
        user.goal.requests = {"name": "x"}
        asked.add(say(user, "confirm(area=west)"))
        assert user.goal.requests == {"name": None}, "the misunderstanding still reopens every question"
        user.agenda = [parse_act("bye()")]
    assert asked == {'confirm(area="north")', 'confirm(food="indian")', 'confirm(pricerange="moderate")'}


def test_nothing_to_ask_means_correcting(make_user: MakeUser) -> None:
    user = make_user(overrule_correction=1.0, **CORRECT)
    assert say(user, "inform(name=none,area=west)") == 'negate(area="north")', "never in none acts"


# -- checking an unmentioned wish
# ------------------------------------------------------------------------------------------


def test_offer_that_leaves_a_wish_out(make_user: MakeUser) -> None:
    user = make_user(confirm_random_constraint=1.0, requests={"name": None, "phone": None})
    assert say(user, "inform(name=x,area=north,food=indian)") == 'confirm(pricerange="moderate")'
    assert user.goal.requests == {"name": "x", "phone": None, "area": "north", "food": "indian"}
    say(user, "inform(name=y,area=north,food=indian,pricerange=moderate)")
    assert user.goal.requests == {"name": "y", "phone": None, "area": "north", "food": "indian"}


def test_new_questions_are_reopened_by_another_venue(make_user: MakeUser) -> None:
    user = make_user(requests={"name": "x", "area": "north"})
    say(user, "inform(name=y,food=indian)")
    assert user.goal.requests == {"name": "y", "area": None}


def test_complete_offers_and_dontcare_are_not_questioned(make_user: MakeUser) -> None:
    assert say(make_user(confirm_random_constraint=1.0), FITS) == "request(phone)"
    user = make_user(pricerange="dontcare", confirm_random_constraint=1.0)
    assert say(user, "inform(name=x,area=north,food=indian)") == "request(phone)"


def test_a_settled_venue_can_be_asked_about(make_user: MakeUser) -> None:
    user = make_user(confirm_random_constraint=1.0)
    user.goal.name_is = "y"
    assert say(user, FITS) == 'confirm(name="y")'


def test_only_informs_are_questioned(make_user: MakeUser) -> None:
    user = make_user(confirm_random_constraint=1.0)
    assert say(user, "confirm(area=north)") == "affirm()"
    user = make_user(confirm_random_constraint=1.0)
    assert say(user, "inform(name=none,area=north)").startswith("reqalts"), "nor acts without a venue"


@pytest.mark.parametrize(
    ("system", "examined"),
    [
        ("inform(name=x,area=north)", 1),  # the name is not looked at: no constraint on it
        ("inform(name=x,area=north,food=indian)", 2),
        ("inform(name=x,phone=1)", 0),
        ("inform(name=x,phone=1,addr=2,area=north)", 1),
    ],
)
def test_one_draw_for_every_item_examined(make_user: MakeUser, system: str, examined: int) -> None:
    user = make_user(confirm_random_constraint=0.3)
    hits = 0
    for _ in range(6000):
        user.agenda = [parse_act("bye()")]
        user._previous_system_act, user.first_venue_offered = None, True
        user.goal.name_is, user.goal.requests = None, {"name": None, "phone": None}
        hits += say(user, system).startswith("confirm")
    assert hits / 6000 == pytest.approx(1 - 0.7**examined, abs=0.025)


def test_a_settled_name_is_examined_where_it_is_checked(make_user: MakeUser) -> None:
    for system, examined in (("inform(name=x,phone=1)", 1), ("inform(name=x,area=north)", 1)):
        user = make_user(confirm_random_constraint=0.3)
        hits = 0
        for _ in range(6000):
            user.agenda = [parse_act("bye()")]
            user._previous_system_act, user.first_venue_offered = None, True
            user.goal.name_is, user.goal.requests = "x", {"name": "x", "phone": None}
            hits += say(user, system).startswith("confirm")
        assert hits / 6000 == pytest.approx(1 - 0.7**examined, abs=0.025)


def test_a_clash_after_a_hit_is_still_a_clash(make_user: MakeUser) -> None:
    user = make_user(confirm_random_constraint=1.0, **CORRECT)
    assert say(user, "inform(name=x,area=north,food=thai)") == 'negate(food="indian")'
