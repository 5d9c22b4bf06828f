"""Sentences."""

from __future__ import annotations

import pytest

from rlexp.envs.restaurant.acts import parse_act
from rlexp.envs.restaurant.transcript import system_sentence, user_sentence


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("request(pricerange)", "Which price range would you like?"),
        ("confirm(area=dontcare)", "Did you say any for the area?"),
        ("select(food=thai,food=indian)", "Which food do you mean: thai or indian?"),
        ("inform(name=x,area=north,food=thai)", "x: area north and food thai."),
        ("inform(name=x)", "x might be something for you."),
        ("inform(name=x,phone=not available)", "x: I do not know its phone number."),
        ("inform(name=none,food=swiss)", "I am sorry, there is nothing with food swiss."),
        ("inform(name=none)", "I am sorry, there is nothing that fits."),
        ("inform(name=none,name!=x,name!=y,food=thai)", "Nothing else than x and y with food thai."),
        ("reqmore()", "Can I help you with anything else?"),
    ],
)
def test_system(act: str, sentence: str) -> None:
    assert system_sentence(parse_act(act)) == sentence


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("inform(type=restaurant,area=north)", "A restaurant and area north."),
        ("inform(=dontcare)", "I do not mind."),
        ("hello(area=dontcare)", "Hello, any area."),
        ("request(phone,addr)", "What is the phone number and the address?"),
        ("request(phone,name=x)", "What is the phone number of x?"),
        ("deny(food=thai,food=indian)", "Not thai, but indian."),
        ("confirm(food=thai)", "Is it food thai?"),
        ("affirm()", "Yes."),
        ("negate(area=north)", "No, area north."),
        ("reqalts()", "Something else, please."),
        ("bye()", "Goodbye."),
        ("null()", "(mumbles)."),
    ],
)
def test_user(act: str, sentence: str) -> None:
    assert user_sentence(parse_act(act)) == sentence
