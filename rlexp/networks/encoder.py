"""Which features to extract from which observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor

from rlexp.networks.grid import GridExtractor
from rlexp.networks.torso import ConvTorso


def is_grid_view(space: spaces.Space[Any]) -> bool:
    """Return whether observations are MiniGrid's whole numbers: a dictionary with a grid that is no picture."""
    if not isinstance(space, spaces.Dict) or "image" not in space.spaces:
        return False
    whole = all(isinstance(part, spaces.Box) and part.dtype == np.uint8 for part in space.spaces.values())
    image = space["image"]
    vectors = [part for key, part in space.spaces.items() if key != "image"]
    return (
        whole
        and len(image.shape or ()) == 3
        and not is_image_space(image)
        and all(len(part.shape or ()) == 1 for part in vectors)
    )


def extractor_for(space: spaces.Space[Any]) -> type[BaseFeaturesExtractor]:
    """Return the features extractor that fits some observations.

    Vectors are taken as they are, pictures go through the convolutions of :class:`ConvTorso`, MiniGrid's views through
    :class:`GridExtractor`, other dictionaries through Stable-Baselines3's extractor.
    """
    if is_grid_view(space):
        return GridExtractor
    if isinstance(space, spaces.Dict):
        return CombinedExtractor
    picture = isinstance(space, spaces.Box) and len(space.shape) == 3
    return ConvTorso if picture else FlattenExtractor
