"""The simulated user: what it hears, and what it says."""

from __future__ import annotations

from random import Random

import pytest

from rlexp.envs.restaurant.acts import parse_act
from rlexp.envs.restaurant.domain import Domain
from rlexp.envs.restaurant.user import SimulatedUser
from rlexp.envs.restaurant.user_parameters import RANGES, USERS, UserParameters, sample_parameters

from .conftest import MakeUser


def say(user: SimulatedUser, system: str) -> str:
    return str(user.turn(parse_act(system)))


def agenda(user: SimulatedUser) -> list[str]:
    return [str(act) for act in reversed(user.agenda)]


OFFER = "inform(name=lunar cupboard,area=north,food=indian,pricerange=moderate)"


# -- beginning ---------------------------------------------------------------------------------------------
# --------------


def test_start(domain: Domain) -> None:
    user = SimulatedUser(domain, "sampled", (4, 6))
    orders, patience = set(), []
    for seed in range(400):
        user.start(Random(seed))
        wishes = [item for act in user.agenda[1:-1] for item in act.items]
        assert {slot: value for slot, _, value in wishes} == user.goal.constraints
        assert agenda(user)[0] == 'inform(type="restaurant")' and agenda(user)[-1] == "bye()"
        orders.add(tuple(slot for slot, _, _ in wishes))
        patience.append(user.patience)
    assert len(orders) == 6
    assert set(patience) == {4, 5} and patience.count(4) / 400 == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("name", USERS)
def test_habits_stay_in_their_ranges(name: str) -> None:
    drawn = [sample_parameters(name, Random(seed)) for seed in range(300)]
    for field in UserParameters._fields:
        low, high = RANGES[name][field]
        values = [getattr(parameters, field) for parameters in drawn]
        assert low <= min(values) and max(values) <= high
        if name != "default":
            assert min(values) < low + 0.1 * (high - low) and max(values) > high - 0.1 * (high - low)


def test_the_sets_differ_where_they_should() -> None:
    different = {
        name for name in UserParameters._fields if RANGES["sampled"][name] != RANGES["unfriendly"][name]
    }
    assert different == {
        "inform_combination", "affirm_combination", "greeting", "constraint_relax", "tell_about_change",
    }  # fmt: skip
    assert set(RANGES["default"]) == set(RANGES["sampled"]) == set(UserParameters._fields)


def test_greeting(make_user: MakeUser) -> None:
    assert say(make_user(greeting=1.0, pending=("inform(type=restaurant)",)), "hello()") == "hello()"
    assert say(make_user(pending=("inform(type=restaurant)",)), "hello()") == 'inform(type="restaurant")'


# -- patience ----------------------------------------------------------------------------------------------
# --------------


def test_patience_is_lost_by_repetition_and_nonsense(make_user: MakeUser) -> None:
    user = make_user(patience=4)
    say(user, "hello()")
    say(user, "request(area)")
    assert user.patience == 4
    say(user, "request(area)")
    assert user.patience == 3
    say(user, "request(food)")
    say(user, "null()")
    assert user.patience == 2
    assert say(user, "null()") != "bye()" and user.patience == 1
    assert say(user, "null()") == "bye()" and user.patience == 0


def test_hello_counts_as_the_first_act(make_user: MakeUser) -> None:
    user = make_user(pending=("inform(area=north)",))
    say(user, "hello()")
    say(user, "hello()")
    assert user.patience == user.initial_patience - 1


def test_same_act_in_another_order_is_a_repetition(make_user: MakeUser) -> None:
    user = make_user()
    say(user, "select(area=north,area=west)")
    say(user, "select(area=west,area=north)")
    assert user.patience == user.initial_patience - 1


def test_an_act_too_many_is_not_even_heard(make_user: MakeUser) -> None:
    user = make_user(patience=1, requests={"name": None})
    user.turn(parse_act("request(area)"))
    user._previous_system_act = parse_act(OFFER)
    assert say(user, OFFER) == "bye()"
    assert user.goal.requests == {"name": None}


# -- saying ------------------------------------------------------------------------------------------------
# --------------


def test_combination_stops_at_the_first_refusal_and_at_other_acts(make_user: MakeUser) -> None:
    pending = ("inform(area=north)", "inform(food=indian)", "confirm(pricerange=moderate)")
    user = make_user(pending=("inform(type=restaurant)", *pending), inform_combination=1.0)
    assert say(user, "hello()") == 'inform(type="restaurant",area="north",food="indian")'
    assert agenda(user) == ['confirm(pricerange="moderate")', "bye()"]
    user = make_user(pending=pending)
    assert say(user, "hello()") == 'inform(area="north")'


def test_hello_combines_with_a_question(make_user: MakeUser) -> None:
    user = make_user(pending=("request(phone)",), greeting=1.0, inform_combination=1.0)
    assert say(user, "hello()") == "hello(phone)"


def test_what_is_said_leaves_the_agenda(make_user: MakeUser) -> None:
    user = make_user(pending=("confirm(food=indian)", "inform(area=north)", "affirm(area=north)"))
    assert say(user, "select(area=north,area=west)") == 'inform(area="north")'
    assert agenda(user) == ['confirm(food="indian")', "bye()"]


def test_reqalts_and_requests_leave_the_agenda_alone(make_user: MakeUser) -> None:
    for top in ("reqalts(area=north)", "request(area)", "deny(area=west,area=north)"):
        user = make_user(pending=(top, "inform(area=north)"))
        say(user, "hello()")
        assert agenda(user) == ['inform(area="north")', "bye()"]


def test_slot_name_is_dropped_from_dontcare_answers(make_user: MakeUser) -> None:
    for system in ("request(area)", "select(area=north,area=west)"):
        user = make_user(area="dontcare", no_slot_with_dontcare=1.0)
        assert say(user, system) == 'inform(="dontcare")'
    user = make_user(area="dontcare", pending=("inform(area=dontcare)",), no_slot_with_dontcare=1.0)
    assert say(user, "confirm(food=indian)") == "affirm()"
    assert say(user, "hello()") == 'inform(area="dontcare")', "only in answer to request and select"
    user = make_user(area="dontcare")
    assert say(user, "request(area)") == 'inform(area="dontcare")'


def test_only_the_first_slot_name_is_dropped(make_user: MakeUser) -> None:
    user = make_user(
        area="dontcare",
        pricerange="dontcare",
        pending=("inform(pricerange=dontcare)",),
        no_slot_with_dontcare=1.0,
        inform_combination=1.0,
    )
    assert say(user, "request(area)") == 'inform(="dontcare",pricerange="dontcare")'


def test_venue_name_in_questions(make_user: MakeUser) -> None:
    requests = {"name": "lunar cupboard", "phone": None}
    user = make_user(requests=requests, pending=("request(phone)",), add_venue_name_to_request=1.0)
    assert say(user, "hello()") == 'request(phone,name="lunar cupboard")'
    user = make_user(requests=requests, pending=("request(phone,addr)",), add_venue_name_to_request=1.0)
    assert say(user, "hello()") == "request(phone,addr)"
    user = make_user(pending=("request(phone)",), add_venue_name_to_request=1.0)
    assert say(user, "hello()") == "request(phone)", "no venue, no name"


def test_unwanted_items_become_reqalts(make_user: MakeUser) -> None:
    user = make_user(pending=("inform(area=north,name!=lunar cupboard)", "inform(area=north)"))
    assert say(user, "hello()") == "reqalts()"
    assert agenda(user) == ['inform(area="north")', "bye()"]


def test_null_repeats_the_last_act_that_went_all_the_way(make_user: MakeUser) -> None:
    user = make_user(pending=("inform(area=north)", "thankyou()"))
    assert say(user, "null()") == "null()", "nothing has been said"
    assert say(user, "hello()") == 'inform(area="north")'
    assert say(user, "hello()") == "thankyou()"
    user.patience = 5
    assert say(user, "null()") == 'inform(area="north")'


def test_what_follows_reqmore_is_not_repeated(make_user: MakeUser) -> None:
    user = make_user(pending=("inform(area=north)", "inform(food=indian)"), inform_combination=1.0)
    assert say(user, "reqmore()") == 'inform(area="north")', "nor combined"
    assert say(user, "null()") == "null()"


# -- hearing -----------------------------------------------------------------------------------------------
# --------------


def test_request(make_user: MakeUser) -> None:
    user = make_user(pending=("inform(area=north)", "inform(food=indian)"))
    assert say(user, "request(food)") == 'inform(food="indian")'
    assert agenda(user) == ['inform(area="north")', "bye()"]
    assert say(user, "request(food)") == 'inform(food="indian")', "told before, told again"


def test_request_is_answered_by_a_question_while_a_venue_is_discussed(make_user: MakeUser) -> None:
    user = make_user(requests={"name": "lunar cupboard", "phone": "1", "addr": None, "signature": None})
    assert say(user, "request(food)") == 'request(name="lunar cupboard",addr)'
    user = make_user(requests={"name": "lunar cupboard", "phone": "1"})
    assert say(user, "request(food)") == 'inform(food="indian")'


def test_select(make_user: MakeUser) -> None:
    assert say(make_user(), "select(area=east,area=west)") == 'inform(area="north")'


def test_confirm(make_user: MakeUser) -> None:
    user = make_user(pending=("inform(food=indian)",))
    assert say(user, "confirm(area=north)") == "affirm()"
    user = make_user(pending=("inform(food=indian)",), affirm_combination=1.0)
    assert say(user, "confirm(area=north)") == 'affirm(food="indian")'
    user = make_user(area="dontcare")
    assert say(user, "confirm(area=west)") == "affirm()", "who does not mind agrees to anything"


def test_affirm_combines_twice(make_user: MakeUser) -> None:
    user = make_user(
        pending=("inform(food=indian)", "inform(pricerange=moderate)"),
        affirm_combination=1.0,
        inform_combination=1.0,
    )
    assert say(user, "confirm(area=north)") == 'affirm(food="indian",pricerange="moderate")'


@pytest.mark.parametrize(
    ("pending", "requests", "habits", "expected"),
    [
        # more than goodbye on the agenda: go on with it
        (("inform(area=north)",), {"name": None}, {}, 'inform(area="north")'),
        (
            ("inform(area=north)",),
            {"name": None},
            {"combine_affirm_with_agenda_item": 1.0},
            'affirm(area="north")',
        ),
        (("request(phone)",), {"name": None}, {"combine_affirm_with_agenda_item": 1.0}, "request(phone)"),
        # everything answered
        ((), {"name": "x"}, {"no_after_reqmore": 1.0}, "negate()"),
        ((), {"name": "x"}, {}, "bye()"),
        # open questions about a venue: the last one first
        ((), {"name": "x", "phone": None, "addr": None}, {}, "request(addr)"),
        # no venue yet
        ((), {"name": None}, {"yes_after_reqmore": 1.0}, "affirm()"),
        (
            (),
            {"name": None},
            {},
            'inform(type="restaurant",area="north",food="indian",pricerange="moderate")',
        ),
        # the beginning of the agenda does not hold back
        (
            ("inform(type=restaurant)", "inform(area=north)"),
            {"name": None},
            {},
            'inform(type="restaurant",area="north",food="indian",pricerange="moderate")',
        ),
        (("inform(type=restaurant)", "inform(area=north)"), {"name": "x"}, {}, 'inform(type="restaurant")'),
        (("inform(type=restaurant)",), {"name": "x"}, {"no_after_reqmore": 1.0}, "negate()"),
    ],
)
def test_reqmore(
    make_user: MakeUser,
    pending: tuple[str, ...],
    requests: dict[str, str | None],
    habits: dict[str, float],
    expected: str,
) -> None:
    assert say(make_user(pending=pending, requests=requests, **habits), "reqmore()") == expected


def test_reqmore_pushes_every_open_question(make_user: MakeUser) -> None:
    user = make_user(requests={"name": "x", "phone": None, "addr": None})
    say(user, "reqmore()")
    assert agenda(user) == ["request(phone)", "bye()"]


def test_reqmore_with_an_unwanted_venue(make_user: MakeUser) -> None:
    user = make_user(requests={"name": None})
    user.goal.name_not = ["x"]
    assert say(user, "reqmore()") == "reqalts()"


# -- offers that fit
# -----------------------------------------------------------------------------------------------------


def test_an_offer_is_taken_down_and_asked_about(make_user: MakeUser) -> None:
    user = make_user()
    assert say(user, OFFER) == "request(phone)"
    assert user.goal.requests == {"name": "lunar cupboard", "phone": None}
    assert user.goal.name_is == "lunar cupboard"
    assert say(user, "inform(name=lunar cupboard,phone=1)") == "bye()"
    assert user.goal.requests == {"name": "lunar cupboard", "phone": "1"}


def test_useless_answers_are_answers(make_user: MakeUser) -> None:
    user = make_user(requests={"name": "lunar cupboard", "phone": None, "addr": None})
    say(user, 'inform(name=lunar cupboard,phone="",addr=not available)')
    assert user.goal.requests == {"name": "lunar cupboard", "phone": "", "addr": "not available"}


def test_another_venue_reopens_every_question(make_user: MakeUser) -> None:
    user = make_user(requests={"name": "mosaic apron", "phone": "1"})
    say(user, OFFER)
    assert user.goal.requests == {"name": "lunar cupboard", "phone": None}


def test_further_questions_in_the_same_breath(make_user: MakeUser) -> None:
    user = make_user(
        requests={"name": None, "phone": None, "addr": None, "postcode": None}, add_slot_to_request=1.0
    )
    assert say(user, OFFER) == "request(phone,addr,postcode)"


@pytest.mark.parametrize(
    ("habits", "expected"),
    [
        ({"thank_after_inform": 1.0}, "thankyou()"),
        ({"acknowledge_after_inform": 1.0}, "ack()"),
        ({"deal_with_pending": 1.0}, 'inform(food="indian")'),
        ({"inform_to_confirm": 1.0, "deal_with_pending": 1.0}, 'confirm(food="indian")'),
        ({}, "request(phone)"),
    ],
)
def test_manners_after_an_offer(make_user: MakeUser, habits: dict[str, float], expected: str) -> None:
    user = make_user(pending=("inform(food=indian)", "inform(pricerange=dontcare)"), **habits)
    assert say(user, OFFER) == expected


def test_inform_to_confirm_spares_dontcare_but_not_the_type(make_user: MakeUser) -> None:
    user = make_user(
        pending=("inform(type=restaurant)", "inform(area=dontcare)", "inform(food=indian)"),
        inform_to_confirm=1.0,
        thank_after_inform=1.0,
    )
    say(user, OFFER)
    assert agenda(user) == [
        'confirm(type="restaurant")',
        'inform(area="dontcare")',
        'confirm(food="indian")',
        "bye()",
    ]


def test_user_leaves_when_nothing_is_left_to_say_even_with_open_questions(make_user: MakeUser) -> None:
    user = make_user()
    assert say(user, "hello()") == "bye()"
