"""The restaurant domain: an ontology (JSON), the venues (SQLite), and questions about both.

The file formats are PyDial's, so that a user's own ``CamRestaurants`` files load unchanged.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from rlexp.envs.restaurant.acts import DONTCARE, NOT_AVAILABLE

SLOTS = ("area", "food", "pricerange")
"""The slots that a user has constraints on, in the order in which every rule visits them."""
METHODS = ("none", "byconstraints", "byname", "finished", "byalternatives", "restart")
DISCOURSE_ACTS = ("ack", "hello", "none", "repeat", "silence", "thankyou")
_KEYS = ("type", "requestable", "discourseAct", "method", "system_requestable", "informable")

SHIPPED_DATABASE = Path(__file__).parent / "data" / "restaurants.db"
SHIPPED_ONTOLOGY = Path(__file__).parent / "data" / "ontology.json"


class Query(NamedTuple):
    """What the database holds for a set of accepted values.

    :param rows: indices of the matching venues, in database order
    :param discriminable: whether a further question could tell the matching venues apart: at least two
        match, and some slot without an accepted value takes two or more values among them
    :param constrained: whether any accepted value was other than dontcare; without one the order of the
        rows means nothing, so that "the first" is sampled
    """

    rows: tuple[int, ...]
    discriminable: bool
    constrained: bool


class Domain:
    """An ontology and its venues.

    Instances are compared by identity and never change after loading, so that they can be the key of caches.

    :param entity_type: what the venues are, ``"restaurant"``
    :param requestable: every slot that can be asked for, in file order
    :param discourse_acts: the discourse acts of the state vector, in file order
    :param methods: the methods of the state vector, in file order
    :param informable: slot -> its values, both in file order, without ``dontcare``
    :param venues: one mapping slot -> value per venue, in database order
    """

    def __init__(
        self,
        entity_type: str,
        requestable: Sequence[str],
        discourse_acts: Sequence[str],
        methods: Sequence[str],
        informable: Mapping[str, Sequence[str]],
        venues: Sequence[Mapping[str, str]],
    ) -> None:
        self.entity_type = entity_type
        self.requestable = tuple(requestable)
        self.discourse_acts = tuple(discourse_acts)
        self.methods = tuple(methods)
        self.informable = {slot: tuple(values) for slot, values in informable.items()}
        self.venues = tuple(dict(venue) for venue in venues)
        self.info_slots = tuple(slot for slot in requestable if slot not in informable)
        """Slots that only the system knows about: address, phone and so on."""
        self.values_and_dontcare = {slot: (*values, DONTCARE) for slot, values in self.informable.items()}
        self.venue_by_name = {venue["name"]: venue for venue in self.venues}
        self._queries: dict[tuple[str | None, str | None, str | None], Query] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Domain:
        return self  # never changes; tables that follow from it are cached by its identity

    def query(self, area: str | None, food: str | None, pricerange: str | None) -> Query:
        """The venues for the accepted values of the three slots; answers are cached.

        :param area: the accepted value, ``"dontcare"``, or None where nothing has been accepted
        :param food: the same for the kind of food
        :param pricerange: the same for the price range
        """
        key = (area, food, pricerange)
        answer = self._queries.get(key)
        if answer is None:
            answer = self._queries[key] = self._query(key)
        return answer

    def _query(self, key: tuple[str | None, ...]) -> Query:
        wanted = [
            (slot, value) for slot, value in zip(SLOTS, key, strict=True) if value not in (None, DONTCARE)
        ]
        rows = tuple(
            row
            for row, venue in enumerate(self.venues)
            if all(venue[slot] == value for slot, value in wanted)
        )
        open_slots = [slot for slot, value in zip(SLOTS, key, strict=True) if value is None]
        distinguishable = any(len({self.venues[row][slot] for row in rows}) > 1 for slot in open_slots)
        # Before anything has been accepted there is always something to ask.
        discriminable = (len(rows) > 1 and distinguishable) or len(open_slots) == len(SLOTS)
        return Query(rows, discriminable, bool(wanted))


def load_domain(database: str | Path | None = None, ontology: str | Path | None = None) -> Domain:
    """Load a domain; the same unchanged files give the same object.

    :param database: SQLite file, or None for the shipped venues
    :param ontology: JSON file, or None for the shipped ontology
    :raises ValueError: if a file cannot be read or does not hold what it should; the message names the file
        and what is wrong with it
    """
    database_path = SHIPPED_DATABASE if database is None else Path(database)
    ontology_path = SHIPPED_ONTOLOGY if ontology is None else Path(ontology)
    return _load_domain(
        str(database_path),
        _stamp("database", database_path),
        str(ontology_path),
        _stamp("ontology", ontology_path),
    )


def _stamp(key: str, path: Path) -> tuple[int, int]:
    """What changes when a file does, so that an edited file is not served from the cache."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise ValueError(f"{key}={path}: cannot be read ({_reason(error)})") from error
    return status.st_mtime_ns, status.st_size


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(
        error
    ).__name__


@lru_cache(maxsize=8)
def _load_domain(
    database: str, database_stamp: tuple[int, int], ontology: str, ontology_stamp: tuple[int, int]
) -> Domain:
    content = read_ontology(Path(ontology))
    informable = {slot: tuple(values) for slot, values in content["informable"].items()}
    requestable = tuple(content["requestable"])
    venues = read_database(Path(database), requestable)
    for slot in (*SLOTS, "name"):
        known = frozenset(informable[slot])
        for venue in venues:
            if venue[slot] not in known:
                raise ValueError(
                    f"database={database}: {slot} {venue[slot]!r} of venue {venue['name']!r} is not among "
                    f"the values of informable.{slot} in ontology={ontology}"
                )
    return Domain(
        content["type"],
        requestable,
        tuple(content["discourseAct"]),
        tuple(content["method"]),
        informable,
        venues,
    )


class _Ontology(dict):  # type: ignore[type-arg]
    """A checked ontology file; a dict, since the keys are the file's."""


def read_ontology(path: Path) -> _Ontology:
    """Read and check an ontology file.

    :param path: JSON file
    :return: its content, all values in lower case
    :raises ValueError: naming the file and what is wrong
    """

    def fail(problem: str) -> ValueError:
        return ValueError(f"ontology={path}: {problem}")

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise fail(f"cannot be read ({_reason(error)})") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise fail(f"is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise fail(f"must hold one JSON object, not {type(content).__name__}")
    missing = [key for key in _KEYS if key not in content]
    if missing:
        raise fail(f"lacks the key{'s' * (len(missing) > 1)} {', '.join(missing)}")
    if not isinstance(content["type"], str) or not content["type"]:
        raise fail(f"key type must be a non-empty string, not {content['type']!r}")
    lists = {key: content[key] for key in ("requestable", "discourseAct", "method", "system_requestable")}
    if not isinstance(content["informable"], dict):
        raise fail(
            f"key informable must be an object slot -> values, not {type(content['informable']).__name__}"
        )
    lists.update({f"informable.{slot}": values for slot, values in content["informable"].items()})
    for key, values in lists.items():
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise fail(f"key {key} must be a list of non-empty strings")
        if len({value.lower() for value in values}) != len(values):
            raise fail(f"key {key} names a value twice")
    problem = _ontology_problem(lists, set(content["informable"]))
    if problem:
        raise fail(problem)
    checked = _Ontology(content)
    checked["informable"] = {
        slot: [value.lower() for value in values] for slot, values in content["informable"].items()
    }
    return checked


def _ontology_problem(lists: Mapping[str, list[str]], informable: set[str]) -> str | None:
    """What keeps a well-formed ontology from being one for this task, or None."""
    if informable != {*SLOTS, "name"}:
        slots = ", ".join(sorted(informable))
        return f"key informable must have the slots area, food, name, pricerange, not {slots}"
    if sorted(lists["system_requestable"]) != sorted(SLOTS):
        slots = ", ".join(lists["system_requestable"])
        return f"key system_requestable must list area, food, pricerange, not {slots}"
    for key, allowed in (("method", METHODS), ("discourseAct", DISCOURSE_ACTS)):
        if sorted(lists[key]) != sorted(allowed):
            return f"key {key} must list {', '.join(allowed)}, not {', '.join(lists[key])}"
    lacking = sorted(informable - set(lists["requestable"]))
    if lacking:
        return f"key requestable must contain every informable slot, but lacks {', '.join(lacking)}"
    for slot in (*SLOTS, "name"):
        values = [value.lower() for value in lists[f"informable.{slot}"]]
        if len(values) < 2:
            return f"key informable.{slot} must list at least 2 values, not {len(values)}"
        reserved = {DONTCARE, "**none**", "none"} & set(values)
        if reserved:
            word = sorted(reserved)[0]
            return f"key informable.{slot} must not contain {word!r}, which has a meaning of its own"
    return None


def read_database(path: Path, requestable: Sequence[str]) -> list[dict[str, str]]:
    """Read and check the venues.

    The table is the only one that has a column for every requestable slot, whatever its name.

    :param path: SQLite file
    :param requestable: the slots that every venue must have
    :return: one mapping slot -> value per row, in file order; area, food, pricerange and name in lower case
    :raises ValueError: naming the file and what is wrong
    """

    def fail(problem: str) -> ValueError:
        return ValueError(f"database={path}: {problem}")

    if not path.is_file():
        raise fail("is not a file")
    try:
        # mode=ro: opening must never create or change a user's file
        connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
        try:
            table = _find_table(connection, requestable)
            if table.startswith("!"):
                raise fail(table[1:])
            columns = ", ".join(f'"{slot}"' for slot in requestable)
            rows = connection.execute(f'SELECT {columns} FROM "{table}"').fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise fail(f"cannot be read as SQLite ({error})") from error
    if len(rows) < 2:
        raise fail(f"table {table} must hold at least 2 venues, not {len(rows)}")
    venues = []
    names: set[str] = set()
    for number, row in enumerate(rows, start=1):
        venue = {}
        for slot, value in zip(requestable, row, strict=True):
            if value is None and slot not in (*SLOTS, "name"):
                value = NOT_AVAILABLE
            if not isinstance(value, str):
                raise fail(f"row {number}, column {slot}: expected text, found {value!r}")
            venue[slot] = value.lower() if slot in (*SLOTS, "name") else value
        if venue["name"] in names:
            raise fail(f"row {number}: a second venue named {venue['name']!r}")
        names.add(venue["name"])
        venues.append(venue)
    return venues


def _find_table(connection: sqlite3.Connection, requestable: Sequence[str]) -> str:
    """The name of the venue table, or ``!`` and what is wrong."""
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    lacking = {}
    for table in tables:
        columns = {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')}
        lacking[table] = [slot for slot in requestable if slot not in columns]
    matching = [table for table, missing in lacking.items() if not missing]
    if len(matching) == 1:
        return str(matching[0])
    if matching:
        return f"!more than one table has all the columns: {', '.join(matching)}"
    if len(tables) == 1:
        columns_lacking = ", ".join(lacking[tables[0]])
        return f"!table {tables[0]} lacks the column{'s' * (len(lacking[tables[0]]) > 1)} {columns_lacking}"
    return f"!no table has the columns {', '.join(requestable)} (tables: {', '.join(tables) or 'none'})"
