import itertools
import json
import sqlite3
from pathlib import Path

areas, kinds, prices = ["harbour", "old town"], ["modern art", "trains", "fossils"], ["free", "expensive"]
venues = [
    (f"museum {number}", *constraints, f"0555 {number:03}")
    for number, constraints in enumerate(itertools.product(areas, kinds, prices), start=1)
]
ontology = {
    "type": "museum",
    "informable": {
        "area": areas,
        "food": kinds,
        "pricerange": prices,
        "name": [venue[0] for venue in venues],
    },
    "system_requestable": ["area", "food", "pricerange"],
    "requestable": ["name", "area", "food", "pricerange", "phone"],
    "method": ["none", "byconstraints", "byname", "finished", "byalternatives", "restart"],
    "discourseAct": ["ack", "hello", "none", "repeat", "silence", "thankyou"],
}
Path("museums.json").write_text(json.dumps(ontology, indent=2), encoding="utf-8")
Path("museums.db").unlink(missing_ok=True)
with sqlite3.connect("museums.db") as connection:
    connection.execute("CREATE TABLE museums (name TEXT, area TEXT, food TEXT, pricerange TEXT, phone TEXT)")
    connection.executemany("INSERT INTO museums VALUES (?, ?, ?, ?, ?)", venues)
