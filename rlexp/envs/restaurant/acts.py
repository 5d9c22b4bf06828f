"""Dialogue acts, which system, user, error model and tracker exchange.

An act is a type and an ordered list of items ``(slot, operator, value)``. The slot may be missing (a bare
"I do not mind"), and so may the value (a question about the phone number). Written out they look like
``inform(name="the copper pan",area="north")``, ``request(phone)``, ``inform(="dontcare")``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Item = tuple[str | None, str, str | None]
"""(slot or None, "=" or "!=", value or None)."""

DONTCARE = "dontcare"
"""The value of a slot that the user has no constraint on."""
NO_VENUE = "none"
"""The value of ``name`` in an act that says that no venue matches."""
NOT_AVAILABLE = "not available"
"""What the database says where it knows nothing."""

ACT_TYPES = (
    "hello", "thankyou", "ack", "bye", "inform", "request", "reqalts", "reqmore",
    "confirm", "affirm", "negate", "deny", "repeat", "null",
)  # fmt: skip
"""The act types that can be misheard for one another."""

SYSTEM_ACT_TYPES = ("hello", "request", "confirm", "select", "inform", "reqmore", "bye", "null")


class DialogueAct(NamedTuple):
    """One dialogue act.

    A named tuple, because acts are compared and looked up in caches several times a turn and tuples do that
    in C. ``==`` therefore minds the order of the items; :func:`same_act` is the equality that the rules
    speak of.

    :param kind: act type, for example ``"inform"``
    :param items: the items in the order in which they were said
    """

    kind: str
    items: tuple[Item, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({','.join(_item_text(item) for item in self.items)})"


def _item_text(item: Item) -> str:
    slot, operator, value = item
    return (slot or "") if value is None else f'{slot or ""}{operator}"{value}"'


def same_act(first: DialogueAct, second: DialogueAct) -> bool:
    """Whether two acts say the same: same type and same set of items, whatever their order.

    :param first: an act
    :param second: another act
    """
    if first == second:
        return True
    if first[0] != second[0] or len(first[1]) < 2 or len(second[1]) < 2:
        return False
    return set(first[1]) == set(second[1])


_ACT = re.compile(r"\s*(\w+)\s*\((.*)\)\s*")
_ITEM = re.compile(r"\s*(\w*)\s*(?:(!=|=)\s*(\"[^\"]*\"|[^,\"]*?))?\s*(?:,|$)")


def parse_act(text: str) -> DialogueAct:
    """Read an act as :meth:`DialogueAct.__str__` writes it; quotes may be left out around values without
    commas.

    :param text: for example ``'inform(name="the copper pan", area=north)'``
    :raises ValueError: if the text is not an act
    """
    match = _ACT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a dialogue act: {text!r} (expected something like inform(area=north))")
    kind, body = match.groups()
    items: list[Item] = []
    position = 0
    while position < len(body):
        found = _ITEM.match(body, position)
        if found is None or found.end() == position:
            raise ValueError(f"not a dialogue act: {text!r} (stuck at {body[position:]!r})")
        slot, operator, value = found.groups()
        items.append((slot or None, operator or "=", None if value is None else value.strip('"')))
        position = found.end()
    return DialogueAct(kind, tuple(items))
