"""The environments. Importing this package registers them with gymnasium and imports none of them.

``import rlexp`` imports it as soon as gymnasium is there.
"""

from __future__ import annotations

import gymnasium

ENTRY_POINTS = {
    "rlexp/Restaurant-v0": "rlexp.envs.restaurant.task:make",  # the actions that a run's model was trained with
    "rlexp/BlindCliffwalk-v0": "rlexp.envs.blind_cliffwalk.env:make",
    "rlexp/DataCenter-v0": "rlexp.envs.datacenter.env:make",
}

for _id, _entry_point in ENTRY_POINTS.items():
    gymnasium.register(id=_id, entry_point=_entry_point)
