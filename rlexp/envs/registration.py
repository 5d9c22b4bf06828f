"""Importing this module gives the built-in environments ids in gymnasium, and imports none of them.

``import rlexp`` imports it as soon as gymnasium is there. Gymnasium 1 no longer loads plug-ins by itself, so that
without that import the module is named in the id: ``gymnasium.make("rlexp:rlexp/Restaurant-v0")``.
"""

from __future__ import annotations

import gymnasium

import rlexp.envs
from rlexp.registry import specs_below

ENTRY_POINTS = {
    spec.gymnasium_id: spec.target for spec in specs_below(rlexp.envs) if spec.gymnasium_id is not None
}

for _id, _target in ENTRY_POINTS.items():
    gymnasium.register(id=_id, entry_point=_target)
