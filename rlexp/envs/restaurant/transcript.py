"""A dialogue as text that a person can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlexp.envs.restaurant.acts import DONTCARE, NO_VENUE, DialogueAct, Item
from rlexp.envs.restaurant.goals import Goal
from rlexp.envs.restaurant.tracker import Hypothesis

_SLOT_NAMES = {
    "addr": "address",
    "pricerange": "price range",
    "phone": "phone number",
    "signature": "signature dish",
}
_UNKNOWN = ("", "not available")


class Transcript:
    """Collects the lines of one dialogue."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def start(self, goal: Goal) -> None:
        """Begin a dialogue.

        :param goal: what the user wants
        """
        constraints = ", ".join(
            f"{slot_name(slot)} {_value(value)}" for slot, value in goal.constraints.items()
        )
        questions = ", ".join(slot_name(slot) for slot in goal.requests)
        self._lines = [f"Goal     {constraints}; asks for {questions}"]

    def system(self, act: DialogueAct) -> None:
        """Add what the system says.

        :param act: the system act
        """
        self._lines.append(f"System   {system_sentence(act)}  [{act}]")

    def user(self, act: DialogueAct, hypotheses: Sequence[Hypothesis]) -> None:
        """Add what the user says and what is heard.

        :param act: the user act
        :param hypotheses: the N-best list
        """
        self._lines.append(f"User     {user_sentence(act)}  [{act}]")
        heard = "  ".join(f"{p:.2f} {hypothesis}" for hypothesis, p in hypotheses)
        self._lines.append(f"  heard  {heard}")

    def end(self, act: DialogueAct | None, info: Mapping[str, Any], goal: Goal) -> None:
        """Add how the dialogue ended.

        :param act: the user's last act, where nobody heard it
        :param info: the info of the last step
        :param goal: the goal at the end
        """
        if act is not None:
            self._lines.append(f"User     {user_sentence(act)}  [{act}]")
        outcome = "success" if info["is_success"] else "failure"
        answers = ", ".join(f"{slot_name(slot)}: {value or '-'}" for slot, value in goal.requests.items())
        how = str(info["ended_by"]).replace("_", " ")
        self._lines.append(f"End      {outcome} after {info['turns']} turns ({how}); answers: {answers}")


def slot_name(slot: str | None) -> str:
    """How to speak of a slot.

    :param slot: its name in the ontology
    """
    return _SLOT_NAMES.get(slot or "", slot or "it")


def _value(value: str | None) -> str:
    return "any" if value == DONTCARE else value or ""


def _constraint(item: Item) -> str:
    slot, operator, value = item
    if slot == "type":
        return f"a {value}"
    if slot is None:
        return "I do not mind"
    if value == DONTCARE:
        return f"any {slot_name(slot)}"
    if operator == "!=":
        return f"not {value}"
    return f"{slot_name(slot)} {value}"


def _list(words: Sequence[str], joint: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {joint} {words[-1]}" if words else ""


def system_sentence(act: DialogueAct) -> str:
    """A system act in English.

    :param act: the act
    """
    kind, items = act
    if kind == "inform":
        return _inform_sentence(items)
    slot = slot_name(items[0][0]) if items else ""
    values = [_value(value) for _, _, value in items]
    sentences = {
        "hello": "Hello, which kind of restaurant are you looking for?",
        "request": f"Which {slot} would you like?",
        "confirm": f"Did you say {_list(values)} for the {slot}?",
        "select": f"Which {slot} do you mean: {_list(values, 'or')}?",
        "reqmore": "Can I help you with anything else?",
        "bye": "Goodbye.",
        "null": "(says nothing that can be understood)",
    }
    return sentences.get(kind, str(act))


def _inform_sentence(items: Sequence[Item]) -> str:
    stated = [(slot, value) for slot, operator, value in items if slot != "name" and operator == "="]
    names = [value or "" for slot, operator, value in items if slot == "name" and operator == "="]
    excluded = [value or "" for slot, operator, value in items if slot == "name" and operator == "!="]
    details = [
        f"I do not know its {slot_name(slot)}" if value in _UNKNOWN else f"{slot_name(slot)} {_value(value)}"
        for slot, value in stated
    ]
    if NO_VENUE in names:
        nothing = f"Nothing else than {_list(excluded)}" if excluded else "I am sorry, there is nothing"
        return f"{nothing} with {_list(details)}." if details else f"{nothing} that fits."
    return f"{_list(names)}: {_list(details)}." if details else f"{_list(names)} might be something for you."


def user_sentence(act: DialogueAct) -> str:
    """A user act in English.

    :param act: the act
    """
    kind, items = act
    constraints = _list([_constraint(item) for item in items if item[2] is not None])
    questions = _list([f"the {slot_name(slot)}" for slot, _, value in items if value is None])
    about = f" of {_list([value or '' for slot, _, value in items if slot == 'name' and value])}"
    if kind == "request":
        return f"What is {questions}{about if about != ' of ' else ''}?"
    if kind == "deny" and len(items) == 2:
        return f"Not {_value(items[0][2])}, but {_value(items[1][2])}."
    beginnings = {
        "inform": "",
        "hello": "Hello",
        "affirm": "Yes",
        "negate": "No",
        "reqalts": "Something else, please",
        "confirm": "Is it",
        "thankyou": "Thank you",
        "ack": "Okay",
        "bye": "Goodbye",
        "null": "(mumbles)",
    }
    beginning = beginnings.get(kind, kind)
    ending = "?" if kind == "confirm" else "."
    text = (
        ", ".join(part for part in (beginning, constraints) if part)
        if kind != "confirm"
        else f"{beginning} {constraints}"
    )
    return f"{text[:1].upper()}{text[1:]}{ending}"
