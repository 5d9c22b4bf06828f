"""The synthetic venues of the restaurant environment: ``python -m rlexp.studies.restaurant_data`` writes them.

Every venue, street, number and sentence is invented. What is kept from the Cambridge task is what makes it
the task: the ontology's values, and how many venues there are for every combination of food, area and price
range, in the order in which the database lists them (an offer is the first that fits). Running this again
writes the same content.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from random import Random

from rlexp.envs.restaurant.domain import SHIPPED_DATABASE

AREAS = ("centre", "north", "west", "south", "east")
PRICES = ("cheap", "moderate", "expensive")
FOODS = """
afghan, african, afternoon tea, asian oriental, australasian, australian, austrian, barbeque, basque,
belgian, bistro, brazilian, british, canapes, cantonese, caribbean, catalan, chinese, christmas, corsica,
creative, crossover, cuban, danish, eastern european, english, eritrean, european, french, fusion,
gastropub, german, greek, halal, hungarian, indian, indonesian, international, irish, italian, jamaican,
japanese, korean, kosher, latin american, lebanese, light bites, malaysian, mediterranean, mexican, middle
eastern, modern american, modern eclectic, modern european, modern global, molecular gastronomy, moroccan,
new zealand, north african, north american, north indian, northern european, panasian, persian, polish,
polynesian, portuguese, romanian, russian, scandinavian, scottish, seafood, singaporean, south african,
south indian, spanish, sri lankan, steakhouse, swedish, swiss, thai, the americas, traditional, turkish,
tuscan, unusual, vegetarian, venetian, vietnamese, welsh, world
"""
# food, first letter of the area, first letter of the price range
VENUES = """
indian nm, british ne, asian oriental ne, chinese ne, indian nm, indian ne, chinese nm, french ne,
italian cm, mediterranean ce, turkish ce, modern european cm, indian em, italian em, gastropub ee,
indian em, british ee, indian ee, chinese ee, italian wm, international cm, north american ce,
british wm, chinese se, european cm, indian se, mediterranean ce, turkish cm, italian cm, chinese cm,
chinese ce, british cm, modern european ce, italian ce, asian oriental cm, chinese ce, indian ee,
indian cc, chinese cc, chinese cc, italian se, italian cc, british cm, korean ce, mexican se, indian ce,
italian sm, chinese sc, asian oriental cc, gastropub ce, international ec, indian ce, african ce,
indian cc, asian oriental ce, chinese cm, indian ce, indian ce, chinese cc, japanese ce,
modern european cm, gastropub ce, british we, modern european sm, spanish cm, portuguese cc, british ce,
italian cc, portuguese sc, european cm, gastropub cm, european ce, british cm, asian oriental cc,
british ce, seafood ce, chinese ce, lebanese cm, indian ce, italian cc, chinese ce, european ce,
italian wc, chinese se, italian ce, chinese cm, indian we, vietnamese wc, british ce, french ce,
indian ce, turkish cm, italian ce, international cm, thai ce, spanish cc, mediterranean cc, italian ce,
thai we, indian nc, indian we, indian we, european we, indian we, british we, chinese ne, italian nc,
modern european cc, indian cc, british cm
"""
STRAY_NAMES = ("brickfield pantry", "osprey and anchor", "tansy house")
"""Names that can be heard although no such venue exists."""

_FIRST = """
amber, barley, bramble, candle, cinder, clover, cobalt, copper, cormorant, dappled, drifting, ember,
fennel, flint, gilded, hazel, heron, hollow, indigo, ivory, juniper, kestrel, lantern, larch, linden,
lunar, marble, meadow, mosaic, nettle, nutmeg, opal, otter, painted, pebble, plover, quiet, quince,
rosehip, russet, sable, scarlet, sorrel, speckled, spindle, sundial, thistle, tidal, tumbling, velvet,
wandering, willow
"""
_SECOND = """
apron, basket, bellows, bowl, cauldron, chimney, compass, cupboard, dovecote, fiddle, fork, garden,
griddle, hearth, jug, kettle, kitchen, ladle, larder, loft, mill, oven, parlour, pepperpot, platter, plum,
quarter, saucepan, skillet, spoon, steps, table, tavern, terrace, trellis, whisk, windmill, yard
"""
_STREETS = """
almond row, bellringer street, cartwright lane, chandler street, dyehouse lane, elderflower road, fiddler
passage, fuller street, gatehouse road, glovers court, hopfield road, inkwell street, lamplighter road,
maltings lane, needlemaker row, orchard gate, pinmaker street, quarry bank, ropewalk road, saddler street,
tallow court, weaver street
"""
_DISHES = """
braised leeks with smoked almonds, slow roast shoulder of lamb with plums, charred aubergine with walnut
sauce, river trout in brown butter with dill, saffron dumplings in a clear broth, duck leg with sour
cherries and barley, baked celeriac with hazelnut crumble, grilled prawns with green chilli and lime, wild
mushroom pie with thyme, chicken with preserved lemon and olives
"""
_TRAITS = """
cooks over an open fire, bakes its own bread every morning, changes its menu with the seasons, has tables
by the water, keeps a long list of wines by the glass, serves late into the night, welcomes large parties,
is known for its desserts, seats forty guests in two small rooms, offers a set lunch on weekdays
"""
N_WITHOUT = {"phone": 3, "signature": 94, "description": 14}
N_EMPTY = {"signature": 1, "description": 19}
"""How many venues have "not available" or an empty text in a column."""


def _entries(text: str) -> list[str]:
    return [word.strip() for word in text.replace("\n", " ").split(",") if word.strip()]


def make_venues() -> list[dict[str, str]]:
    """Draw the venues.

    :return: one mapping from column to text per venue, in database order
    """
    random = Random("rlexp restaurants")
    names = [
        f"{article}{first} {second}"
        for first in _entries(_FIRST)
        for second in _entries(_SECOND)
        for article in ("", "the ")
    ]
    random.shuffle(names)
    chosen: list[str] = []
    for name in names:
        if not any(name.removeprefix("the ") == other.removeprefix("the ") for other in chosen):
            chosen.append(name)
    streets, dishes, traits = _entries(_STREETS), _entries(_DISHES), _entries(_TRAITS)
    venues = []
    for number, line in enumerate(_entries(VENUES)):
        food, code = line.rsplit(" ", 1)
        area = next(area for area in AREAS if area[0] == code[0])
        price = next(price for price in PRICES if price[0] == code[1])
        name = chosen[number]
        letters = [random.choice("abdefghjlnpqrstuwxyz") for _ in range(2)]
        venues.append(
            {
                "id": str(50001 + number),
                "name": name,
                "addr": f"{random.randrange(1, 240)} {random.choice(streets)}",
                "area": area,
                "food": food,
                # 01632 960 is the range that the British regulator keeps free for invented numbers.
                "phone": f"01632 960{random.randrange(1000):03d}",
                "pricerange": price,
                "postcode": f"z.x {1 + AREAS.index(area)}, {random.randrange(1, 10)} {'.'.join(letters)}",
                "signature": random.choice(dishes),
                "description": f"{name} {random.choice(traits)} and {random.choice(traits)}",
            }
        )
    for column in ("phone", "signature", "description"):
        without, empty = N_WITHOUT[column], N_EMPTY.get(column, 0)
        rows = random.sample(range(len(venues)), without + empty)
        for position, row in enumerate(rows):
            venues[row][column] = "not available" if position < without else ""
    return venues


def make_ontology(venues: list[dict[str, str]]) -> dict[str, object]:
    """Return the ontology that goes with the venues.

    :param venues: as :func:`make_venues` returns them
    """
    return {
        "type": "restaurant",
        "requestable": [
            "addr", "area", "food", "name", "phone", "pricerange", "postcode", "signature", "description",
        ],
        "discourseAct": ["ack", "hello", "none", "repeat", "silence", "thankyou"],
        "method": ["none", "byconstraints", "byname", "finished", "byalternatives", "restart"],
        "system_requestable": ["food", "pricerange", "area"],
        "informable": {
            "food": _entries(FOODS),
            "pricerange": list(PRICES),
            "name": sorted([venue["name"] for venue in venues] + list(STRAY_NAMES)),
            "area": list(AREAS),
        },
    }  # fmt: skip


def write(folder: Path) -> None:
    """Write ``restaurants.db`` and ``ontology.json``.

    :param folder: existing folder
    """
    venues = make_venues()
    ontology = json.dumps(make_ontology(venues), indent=4) + "\n"
    (folder / "ontology.json").write_text(ontology, encoding="utf-8")
    database = folder / "restaurants.db"
    database.unlink(missing_ok=True)
    connection = sqlite3.connect(database)
    columns = list(venues[0])
    declarations = [
        "id TEXT NOT NULL",
        "name TEXT PRIMARY KEY NOT NULL",
        *(f"{column} TEXT" for column in columns[2:]),
    ]
    connection.execute(f"CREATE TABLE CamRestaurants ({', '.join(declarations)})")
    marks = ", ".join("?" * len(columns))
    connection.executemany(
        f"INSERT INTO CamRestaurants VALUES ({marks})",
        [tuple(venue[column] for column in columns) for venue in venues],
    )
    connection.commit()
    connection.execute("VACUUM")
    connection.close()


if __name__ == "__main__":
    write(SHIPPED_DATABASE.parent)
