"""What is misheard as what."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from rlexp.envs.restaurant.acts import ACT_TYPES, DialogueAct, parse_act, same_act
from rlexp.envs.restaurant.confusion import ConfusionTables, confusion_tables, levenshtein
from rlexp.envs.restaurant.domain import Domain


def _confusions(domain: Domain, text: str, n: int = 3000, kind: str = "levenshtein") -> list[DialogueAct]:
    tables, random = ConfusionTables(domain, kind, 3), Random(5)
    return [tables.confuse(parse_act(text), random) for _ in range(n)]


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("hello", "null", 3),
        ("hello", "deny", 4),
        ("", "abc", 3),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
        ("a", "a", 0),
    ],
)
def test_levenshtein(first: str, second: str, distance: int) -> None:
    assert levenshtein(first, second) == distance


def test_levenshtein_against_the_textbook() -> None:
    def textbook(first: str, second: str) -> int:
        row = list(range(len(second) + 1))
        for i, letter in enumerate(first, start=1):
            diagonal, row[0] = row[0], i
            for j, other in enumerate(second, start=1):
                diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (letter != other))
        return row[-1]

    random = Random(0)
    for _ in range(500):
        first, second = ("".join(random.choices("abc ", k=random.randrange(30))) for _ in range(2))
        assert levenshtein(first, second) == textbook(first, second)


def _shares(cumulative: tuple[float, ...]) -> list[float]:
    return [high - low for low, high in pairwise((0.0, *cumulative, 1.0))]


def test_type_table_of_hello(domain: Domain) -> None:
    """null is 3 away, deny 4; six types at 5 share the last four places by chance."""
    with_reqalts = 0
    for seed in range(300):
        cumulative, targets = ConfusionTables(domain, "levenshtein", seed).row("type", "hello")
        assert targets[:2] == ("null", "deny") and len(targets) == 6
        assert set(targets[2:]) < {"ack", "bye", "reqalts", "reqmore", "negate", "repeat"}
        with_reqalts += "reqalts" in targets
        distances = [1 / 3, 1 / 4, 1 / 5, 1 / 5, 1 / 5, 1 / 5]
        weights = [distance / sum(distances) + 0.15 for distance in distances]
        assert _shares(cumulative) == pytest.approx([weight / sum(weights) for weight in weights])
    assert with_reqalts / 300 == pytest.approx(2 / 3, abs=0.1)


def test_slot_table_never_leads_to_name(domain: Domain) -> None:
    for seed in range(30):
        tables = ConfusionTables(domain, "levenshtein", seed)
        for slot in domain.requestable:
            cumulative, targets = tables.row("slot", slot)
            assert len(targets) in (5, 6) and not {"name", slot} & set(targets)
            assert sum(_shares(cumulative)) == pytest.approx(1.0)


def test_value_table_includes_dontcare(domain: Domain) -> None:
    tables = ConfusionTables(domain, "levenshtein", 0)
    assert set(tables.row("pricerange", "cheap")[1]) == {"moderate", "expensive", "dontcare"}
    assert set(tables.row("area", "dontcare")[1]) == {"centre", "north", "west", "south", "east"}
    assert len(tables.row("food", "thai")[1]) == 6


def test_rows_do_not_depend_on_the_order_of_asking(domain: Domain) -> None:
    words = [*(("type", kind) for kind in ACT_TYPES), ("food", "thai"), ("slot", "addr")]
    one, two = ConfusionTables(domain, "levenshtein", 7), ConfusionTables(domain, "levenshtein", 7)
    assert [one.row(*word) for word in words] == [two.row(*word) for word in reversed(words)][::-1]
    other = ConfusionTables(domain, "levenshtein", 8)
    assert [one.row(*word) for word in words] != [other.row(*word) for word in words]


def test_tables_are_made_once(domain: Domain) -> None:
    assert confusion_tables(domain, "levenshtein", 5) is confusion_tables(domain, "levenshtein", 5)


@pytest.mark.parametrize("kind", ["levenshtein", "random"])
@pytest.mark.parametrize(
    "text",
    ["hello()", "inform(area=north)", "request(phone)", "bye()", "null()", "deny(area=north,area=west)"],
)
def test_never_the_truth_and_never_bye(domain: Domain, kind: str, text: str) -> None:
    for confused in _confusions(domain, text, kind=kind, n=1000):
        assert not same_act(confused, parse_act(text))
        assert confused.kind != "bye" or text == "bye()"


def test_levels_of_an_inform(domain: Domain) -> None:
    """Type .2, slot .3, value .5."""
    levels: Counter[str] = Counter()
    for confused in _confusions(domain, "inform(food=thai)", 10_000):
        level = "type" if confused.kind != "inform" else "slot" if confused.items[0][0] != "food" else "value"
        levels[level] += 1
    assert levels["type"] / 10_000 == pytest.approx(0.2, abs=0.02)
    assert levels["slot"] / 10_000 == pytest.approx(0.3, abs=0.02)
    assert levels["value"] / 10_000 == pytest.approx(0.5, abs=0.02)


def test_a_request_has_no_value_to_mishear(domain: Domain) -> None:
    confusions = _confusions(domain, "request(phone)", 10_000)
    kinds = Counter(confused.kind == "request" for confused in confusions)
    assert kinds[True] / 10_000 == pytest.approx(0.6, abs=0.02)
    assert all(confused.items[0][2] is None for confused in confusions if confused.kind == "request")


def test_type_items_and_unnamed_slots_leave_only_the_type(domain: Domain) -> None:
    for text in ("inform(type=restaurant)", "inform(=dontcare,area=north)", "inform(=dontcare)"):
        assert all(confused.kind != "inform" for confused in _confusions(domain, text, 500))


def test_slots_after_a_type_item_stay(domain: Domain) -> None:
    changed = [
        confused
        for confused in _confusions(domain, "inform(area=north,type=restaurant,food=thai)")
        if confused.kind == "inform"
    ]
    assert all(confused.items[1] == ("type", "=", "restaurant") for confused in changed)
    slots = [confused for confused in changed if confused.items[0][0] != "area"]
    assert slots and all(confused.items[2] == ("food", "=", "thai") for confused in slots)


def test_one_value_at_a_time(domain: Domain) -> None:
    values = [
        confused
        for confused in _confusions(domain, "inform(area=north,food=thai)")
        if confused.kind == "inform" and [item[0] for item in confused.items] == ["area", "food"]
    ]
    assert all((confused.items[0][2] == "north") != (confused.items[1][2] == "thai") for confused in values)


def test_arity_of_misheard_types(domain: Domain) -> None:
    for confused in _confusions(domain, "hello()", 5000) + _confusions(domain, "affirm()", 5000):
        if confused.kind == "request":
            ((slot, _, value),) = confused.items
            assert slot in domain.requestable and value is None
        elif confused.kind in ("inform", "affirm", "negate", "confirm", "reqalts"):
            ((slot, _, value),) = confused.items
            assert slot is not None and (value is None) == (slot not in domain.informable)
            assert value is None or value in domain.values_and_dontcare[slot]
        else:
            assert confused.items == ()


def test_a_new_slot_brings_a_new_value_or_none(domain: Domain) -> None:
    for confused in _confusions(domain, "inform(area=north)"):
        slot, _, value = confused.items[0] if confused.items else ("", "", None)
        if confused.kind == "inform" and slot != "area":
            assert (value is None) == (slot not in domain.informable)


def test_a_value_outside_the_table_is_misheard_as_any(domain: Domain) -> None:
    cumulative, targets = ConfusionTables(domain, "levenshtein", 0).row("area", "atlantis")
    assert set(targets) == set(domain.values_and_dontcare["area"])
    assert _shares(cumulative) == pytest.approx([1 / 6] * 6)


def test_random_confusions_are_uniform(domain: Domain) -> None:
    cumulative, targets = ConfusionTables(domain, "random", 0).row("food", "thai")
    assert len(targets) == 91 and _shares(cumulative) == pytest.approx([1 / 91] * 91)
