"""Ontology, venues and queries; and what happens to files that are no such thing."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlexp.envs.restaurant.domain import SHIPPED_DATABASE, SHIPPED_ONTOLOGY, Domain, load_domain
from rlexp.envs.restaurant.goals import possible_goals
from rlexp.envs.restaurant.layout import layout_of

from .conftest import Files


def test_shipped_domain_has_the_numbers_of_the_task(domain: Domain) -> None:
    assert len(domain.venues) == 110
    assert {slot: len(values) for slot, values in domain.informable.items()} == {
        "food": 91,
        "pricerange": 3,
        "name": 113,
        "area": 5,
    }
    assert list(domain.informable) == ["food", "pricerange", "name", "area"]
    assert len(set(domain.informable["name"]) - set(domain.venue_by_name)) == 3
    foods = Counter(venue["food"] for venue in domain.venues)
    assert len(foods) == 23
    assert foods["indian"] == 22 and foods["chinese"] == 17 and foods["italian"] == 15
    assert Counter(venue["area"] for venue in domain.venues)["centre"] == 69
    assert Counter(venue["pricerange"] for venue in domain.venues)["expensive"] == 57
    assert sum(venue["signature"] in ("", "not available") for venue in domain.venues) == 95
    assert sum(venue["description"] in ("", "not available") for venue in domain.venues) == 33
    assert sum(venue["phone"] == "not available" for venue in domain.venues) == 3
    assert layout_of(domain).size == 268


def test_shipped_files_are_what_the_script_writes(tmp_path: Path) -> None:
    from rlexp.studies import restaurant_data

    restaurant_data.write(tmp_path)
    again = load_domain(tmp_path / "restaurants.db", tmp_path / "ontology.json")
    assert again.venues == load_domain().venues
    assert (tmp_path / "ontology.json").read_bytes() == SHIPPED_ONTOLOGY.read_bytes()


def test_pydials_files_load_and_are_like_the_shipped_ones(domain: Domain, real_files: Files) -> None:
    real = load_domain(*real_files)

    def triples(one: Domain) -> list[tuple[str, str, str]]:
        return [(venue["food"], venue["area"], venue["pricerange"]) for venue in one.venues]

    assert triples(real) == triples(domain)
    assert possible_goals(real) == possible_goals(domain)
    assert layout_of(real).size == 268
    # Nothing but the values of the three slots may be taken over.
    for slot in ("name", "addr", "postcode"):
        assert not {venue[slot] for venue in real.venues} & {venue[slot] for venue in domain.venues}
    texts = {venue[slot] for venue in real.venues for slot in ("phone", "signature", "description")}
    ours = {venue[slot] for venue in domain.venues for slot in ("phone", "signature", "description")}
    assert texts & ours == {"", "not available"}


def test_the_same_files_give_the_same_object(tmp_path: Path) -> None:
    assert load_domain() is load_domain(SHIPPED_DATABASE, SHIPPED_ONTOLOGY)


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    ontology = tmp_path / "ontology.json"
    ontology.write_text(SHIPPED_ONTOLOGY.read_text())
    before = load_domain(SHIPPED_DATABASE, ontology)
    content = json.loads(ontology.read_text())
    content["informable"]["food"].append("zambian")
    ontology.write_text(json.dumps(content))
    assert (
        len(load_domain(SHIPPED_DATABASE, ontology).informable["food"]) == len(before.informable["food"]) + 1
    )


# -- queries -----------------------------------------------------------------------------------------------
# ------------


def test_query_is_a_conjunction_and_skips_dontcare(domain: Domain) -> None:
    query = domain.query("north", "indian", "dontcare")
    assert [domain.venues[row]["food"] for row in query.rows] == ["indian"] * 4
    assert list(query.rows) == sorted(query.rows)
    assert query.constrained
    everything = domain.query("dontcare", None, None)
    assert len(everything.rows) == 110 and not everything.constrained


@pytest.mark.parametrize(
    ("accepted", "discriminable"),
    [
        ((None, None, None), True),
        (("north", None, None), True),
        (("dontcare", "dontcare", "dontcare"), False),  # nothing left to ask, however many match
        (("dontcare", "dontcare", None), True),
        (("east", "indian", "moderate"), False),  # two venues, alike in all three slots
        (("east", "indian", None), True),  # moderate and expensive ones
        (("east", "indian", "dontcare"), False),
        ((None, "korean", None), False),  # a single venue
        ((None, "zambian", None), False),  # none
        ((None, "portuguese", "cheap"), True),  # one in the centre, one in the south
        (("dontcare", "portuguese", "cheap"), False),
    ],
)
def test_discriminable(domain: Domain, accepted: tuple[str | None, ...], discriminable: bool) -> None:
    assert domain.query(*accepted).discriminable is discriminable


# -- bad files
# ---------------------------------------------------------------------------------------------------------


def _edit(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        content = json.loads(SHIPPED_ONTOLOGY.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return write


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (lambda path: None, "cannot be read"),
        (lambda path: path.mkdir(), "cannot be read"),
        (lambda path: path.write_text(""), "is not JSON"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "is not JSON"),
        (lambda path: path.write_text("[1, 2]"), "must hold one JSON object, not list"),
        (lambda path: path.write_text("{}"), "lacks the keys type, requestable"),
        (_edit(lambda o: o.pop("method")), "lacks the key method"),
        (_edit(lambda o: o.update(type=3)), "key type must be a non-empty string"),
        (_edit(lambda o: o.update(informable=[])), "key informable must be an object"),
        (
            _edit(lambda o: o.update(requestable="phone")),
            "key requestable must be a list of non-empty strings",
        ),
        (_edit(lambda o: o["informable"].update(area=["north", 5])), "key informable.area must be a list"),
        (
            _edit(lambda o: o["informable"].update(area=["north", "North"])),
            "informable.area names a value twice",
        ),
        (
            _edit(lambda o: o["informable"].pop("area")),
            "must have the slots area, food, name, pricerange, not food",
        ),
        (
            _edit(lambda o: o["informable"].update(stars=["1"])),
            "must have the slots area, food, name, pricerange",
        ),
        (_edit(lambda o: o["system_requestable"].append("name")), "key system_requestable must list"),
        (_edit(lambda o: o["method"].remove("byname")), "key method must list"),
        (_edit(lambda o: o["discourseAct"].append("bye")), "key discourseAct must list"),
        (_edit(lambda o: o["requestable"].remove("food")), "requestable must contain .* lacks food"),
        (
            _edit(lambda o: o["informable"].update(area=["centre"])),
            "informable.area must list at least 2 values",
        ),
        (_edit(lambda o: o["informable"]["food"].append("dontcare")), "must not contain 'dontcare'"),
        (_edit(lambda o: o["informable"]["food"].remove("indian")), "food 'indian' of venue .* is not among"),
    ],
)
def test_bad_ontology(tmp_path: Path, write: Callable[[Path], Any], complaint: str) -> None:
    path = tmp_path / "mine.json"
    write(path)
    with pytest.raises(ValueError, match=complaint) as error:
        load_domain(SHIPPED_DATABASE, path)
    assert str(path) in str(error.value) and "ontology=" in str(error.value)
    assert "\n" not in str(error.value)


COLUMNS = (
    "id",
    "name",
    "addr",
    "area",
    "food",
    "phone",
    "pricerange",
    "postcode",
    "signature",
    "description",
)
ROW = ("1", "lunar cupboard", "1 x street", "north", "indian", "1", "cheap", "p", "s", "d")
OTHER = ("2", "mosaic apron", "1 x street", "north", "indian", "1", "cheap", "p", "s", "d")


def _database(
    path: Path, rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS, table: str = "CamRestaurants"
) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    for row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    connection.commit()
    connection.close()


def _two_tables(path: Path) -> None:
    _database(path, [ROW, OTHER])
    _database(path, [ROW, OTHER], table="More")


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (lambda path: None, "cannot be read"),
        (lambda path: path.mkdir(), "is not a file"),
        (lambda path: path.write_text("no database" * 200), "cannot be read as SQLite"),
        (lambda path: path.write_text(""), "no table has the columns .*tables: none"),
        (
            lambda path: _database(path, [ROW[:9]], COLUMNS[:9]),
            "table CamRestaurants lacks the column description",
        ),
        (lambda path: _database(path, [ROW[:8]], COLUMNS[:8]), "lacks the columns signature, description"),
        (_two_tables, "more than one table has all the columns"),
        (lambda path: _database(path, [ROW]), "must hold at least 2 venues, not 1"),
        (
            lambda path: _database(path, [ROW, (*OTHER[:5], 5, *OTHER[6:])]),
            "row 2, column phone: expected text, found 5",
        ),
        (
            lambda path: _database(path, [ROW, (*OTHER[:3], None, *OTHER[4:])]),
            "row 2, column area: .* found None",
        ),
        (
            lambda path: _database(path, [ROW, (*OTHER[:9], b"x")]),
            "column description: expected text, found b'x'",
        ),
        (lambda path: _database(path, [ROW, ROW]), "row 2: a second venue named 'lunar cupboard'"),
        (lambda path: _database(path, [ROW, ("3", "nobody", *OTHER[2:])]), "name 'nobody' of venue 'nobody'"),
        (
            lambda path: _database(path, [ROW, (*OTHER[:4], "moon food", *OTHER[5:])]),
            "food 'moon food' of venue",
        ),
    ],
)
def test_bad_database(tmp_path: Path, write: Callable[[Path], Any], complaint: str) -> None:
    path = tmp_path / "mine.db"
    write(path)
    before = path.exists()
    with pytest.raises(ValueError, match=complaint) as error:
        load_domain(path, SHIPPED_ONTOLOGY)
    assert str(path) in str(error.value) and "database=" in str(error.value)
    assert "\n" not in str(error.value)
    assert path.exists() == before, "looking at a file must not create it"


def test_any_table_name_and_missing_texts_and_capitals_will_do(tmp_path: Path) -> None:
    path = tmp_path / "a file%20with # odd name?.db"
    _database(
        path,
        [ROW, ("2", "Mosaic Apron", "x", "NORTH", "indian", None, "cheap", "p", None, "d")],
        table="Mine",
    )
    venue = load_domain(path, SHIPPED_ONTOLOGY).venues[1]
    assert venue["name"] == "mosaic apron" and venue["area"] == "north" and venue["phone"] == "not available"
