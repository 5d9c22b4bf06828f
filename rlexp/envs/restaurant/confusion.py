"""What is misheard as what."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random

from rlexp.envs.restaurant.acts import ACT_TYPES, DialogueAct, Item, same_act
from rlexp.envs.restaurant.domain import Domain

N_NEAREST = 6
"""How many targets a word has."""
_FLOOR = 0.15
"""Added to every target's share, so that far targets are not rare."""
_ATTEMPTS = 25
_LIST_ATTEMPTS = 100
_TYPE_LEVEL, _SLOT_LEVEL = 0.2, 0.5
"""Cumulative: type .2, slot .3, value .5."""
_SLOT_ONLY = frozenset({"request"})
_SLOT_AND_VALUE = frozenset({"inform", "affirm", "negate", "confirm", "reqalts"})

Row = tuple[tuple[float, ...], tuple[str, ...]]
"""Cumulative shares (without the last) and targets of one word."""


@lru_cache(maxsize=100_000)
def levenshtein(first: str, second: str) -> int:
    """Edit distance: the fewest insertions, deletions and replacements that turn one word into the other.

    :param first: a word
    :param second: another word
    """
    # Myers' bit-parallel form: column by column, bit i of `plus` (`minus`) says that the distance grows
    # (shrinks) from row i to row i + 1. Ten times as fast as the table, which matters for the 113 names.
    n = len(first)
    if n == 0:
        return len(second)
    masks: dict[str, int] = {}
    for i, letter in enumerate(first):
        masks[letter] = masks.get(letter, 0) | 1 << i
    full, top = (1 << n) - 1, 1 << (n - 1)
    plus, minus, distance = full, 0, n
    for letter in second:
        match = masks.get(letter, 0)
        diagonal = (((match & plus) + plus) ^ plus) | match | minus
        grows, shrinks = minus | ~(diagonal | plus), plus & diagonal
        distance += bool(grows & top) - bool(shrinks & top)
        grows, shrinks = grows << 1 | 1, shrinks << 1
        plus, minus = (shrinks | ~(diagonal | grows)) & full, grows & diagonal & full
    return distance


class ConfusionTables:
    """Draws confusions of acts.

    Rows are made when first needed, each from its own random numbers, so that a table depends on the seed
    and never on the order in which dialogues happen to need it.

    :param domain: the domain
    :param kind: ``levenshtein`` (near words, ties broken by chance) or ``random`` (any word)
    :param seed: of the tie-breaking
    """

    def __init__(self, domain: Domain, kind: str, seed: int) -> None:
        self.kind = kind
        self.seed = seed
        self._requestable = domain.requestable
        self._values = domain.values_and_dontcare
        self._rows: dict[tuple[str, str], Row] = {}

    def row(self, table: str, word: str) -> Row:
        """The targets of a word.

        :param table: ``"type"``, ``"slot"``, or the name of an informable slot for its values
        :param word: the word that is misheard
        :return: cumulative shares (without the last) and targets
        """
        key = (table, word)
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._make_row(table, word)
        return found

    def _make_row(self, table: str, word: str) -> Row:
        words: Sequence[str] = (
            ACT_TYPES if table == "type" else self._requestable if table == "slot" else self._values[table]
        )
        if self.kind == "random" or word not in words:
            targets = [other for other in words if other != word]
            return _row(targets, [1.0] * len(targets))
        order = [other for other in words if other != word]
        Random(f"{self.seed}/{table}/{word}").shuffle(order)
        order.sort(key=lambda other: levenshtein(word, other))
        order = order[:N_NEAREST]
        shares = [1.0 / levenshtein(word, other) for other in order]
        total = sum(shares)
        weights = [share / total + _FLOOR for share in shares]
        if table == "slot":
            # Removed after the nearest have been found: a slot near `name` has one target less.
            kept = [(other, weight) for other, weight in zip(order, weights, strict=True) if other != "name"]
            order, weights = [other for other, _ in kept], [weight for _, weight in kept]
        return _row(order, weights)

    def confuse(self, act: DialogueAct, random: Random) -> DialogueAct:
        """A confusion of an act; after 25 attempts without one, the act itself.

        :param act: what is said
        :param random: source of randomness
        """
        kind, items = act
        draw = random.random
        # Only the first item can lack its slot, and then only the type can be misheard.
        deep = bool(items) and items[0][0] is not None
        for _ in range(_ATTEMPTS):
            level = draw() if deep else 0.0
            if level < _TYPE_LEVEL:
                confused = self._confuse_type(kind, random)
                if confused[0] == "bye":
                    continue
            elif level < _SLOT_LEVEL:
                confused = self._confuse_slots(act, random)
            else:
                confused = self._confuse_value(act, random)
            if not same_act(confused, act):
                return confused
        return act

    def confuse_otherwise(
        self, act: DialogueAct, taken: Sequence[DialogueAct], random: Random
    ) -> DialogueAct | None:
        """A confusion that is neither the act itself nor one of those taken.

        :param act: what is said
        :param taken: confusions that are already in the list
        :param random: source of randomness
        :return: None if a hundred attempts have found nothing, which takes a domain with hardly any words
        """
        for _ in range(_LIST_ATTEMPTS):
            confused = self.confuse(act, random)
            if confused == act or confused in taken:
                continue
            if len(confused[1]) < 2 or not any(same_act(confused, other) for other in (act, *taken)):
                return confused
        return None

    def _confuse_type(self, kind: str, random: Random) -> DialogueAct:
        draw = random.random
        shares, targets = self._rows.get(("type", kind)) or self.row("type", kind)
        kind = targets[bisect(shares, draw())]
        if kind in _SLOT_AND_VALUE:
            slot = self._requestable[int(draw() * len(self._requestable))]
            values = self._values.get(slot)
            return DialogueAct(
                kind, ((slot, "=", None if values is None else values[int(draw() * len(values))]),)
            )
        if kind in _SLOT_ONLY:
            return DialogueAct(kind, ((self._requestable[int(draw() * len(self._requestable))], "=", None),))
        return DialogueAct(kind)

    def _confuse_slots(self, act: DialogueAct, random: Random) -> DialogueAct:
        draw = random.random
        items: list[Item] = []
        for slot, operator, value in act[1]:
            if slot is None or slot == "type":
                break
            shares, targets = self._rows.get(("slot", slot)) or self.row("slot", slot)
            other = targets[bisect(shares, draw())]
            values = self._values.get(other)
            if value is not None:
                value = None if values is None else values[int(draw() * len(values))]
            items.append((other, operator, value))
        return DialogueAct(act[0], (*items, *act[1][len(items) :]))

    def _confuse_value(self, act: DialogueAct, random: Random) -> DialogueAct:
        items = act[1]
        draw = random.random
        index = int(draw() * len(items)) if len(items) > 1 else 0
        slot, operator, value = items[index]
        if value is None or slot is None or slot not in self._values:
            return act
        shares, targets = self._rows.get((slot, value)) or self.row(slot, value)
        changed = (slot, operator, targets[bisect(shares, draw())])
        return DialogueAct(act[0], (*items[:index], changed, *items[index + 1 :]))


def _row(targets: Sequence[str], weights: Sequence[float]) -> Row:
    total = sum(weights)
    return tuple(accumulate(weight / total for weight in weights))[:-1], tuple(targets)


@lru_cache(maxsize=64)
def confusion_tables(domain: Domain, kind: str, seed: int) -> ConfusionTables:
    """The tables for a seed, made once.

    :param domain: the domain
    :param kind: ``levenshtein`` or ``random``
    :param seed: of the tie-breaking
    """
    return ConfusionTables(domain, kind, seed)
