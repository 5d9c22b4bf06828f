"""Acts: written, read and compared."""

from __future__ import annotations

import pytest

from rlexp.envs.restaurant.acts import DialogueAct, parse_act, same_act


@pytest.mark.parametrize(
    "text",
    [
        "hello()",
        "request(phone)",
        'inform(="dontcare")',
        'inform(name="none",name!="the copper pan",area="north")',
        'request(phone,name="the copper pan")',
    ],
)
def test_text_and_back(text: str) -> None:
    assert str(parse_act(text)) == text


def test_quotes_may_be_left_out() -> None:
    assert parse_act("inform(name=the copper pan, area = north)") == parse_act(
        'inform(name="the copper pan",area="north")'
    )


@pytest.mark.parametrize("text", ["", "hello", "inform(area=north", "inform(=)x", 'inform(area="north)'])
def test_no_act(text: str) -> None:
    with pytest.raises(ValueError, match="not a dialogue act"):
        parse_act(text)


def test_same_act_ignores_the_order_of_items() -> None:
    first, second = parse_act("inform(area=north,food=thai)"), parse_act("inform(food=thai,area=north)")
    assert first != second
    assert same_act(first, second)


@pytest.mark.parametrize(
    "other",
    ["confirm(area=north,food=thai)", "inform(area=north)", "inform(area=north,food=indian)", "inform()"],
)
def test_different_acts(other: str) -> None:
    assert not same_act(parse_act("inform(area=north,food=thai)"), parse_act(other))


def test_acts_are_hashable_and_plain() -> None:
    assert hash(DialogueAct("bye")) == hash(DialogueAct("bye", ()))
