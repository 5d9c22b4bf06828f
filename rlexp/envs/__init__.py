"""The tasks. Importing this package registers them with gymnasium and imports none of them."""

from __future__ import annotations

import gymnasium

gymnasium.register(id="rlexp/Restaurant-v0", entry_point="rlexp.envs.restaurant.env:RestaurantEnv")
gymnasium.register(
    id="rlexp/BlindCliffwalk-v0", entry_point="rlexp.envs.blind_cliffwalk.env:BlindCliffwalkEnv"
)
gymnasium.register(id="rlexp/DataCenter-v0", entry_point="rlexp.envs.datacenter.env:DataCenterEnv")
