"""Which features extractor reads which observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor

from rlexp.networks.cnn import ConvExtractor
from rlexp.networks.minigrid import MiniGridExtractor


def is_minigrid_space(space: spaces.Space[Any]) -> bool:
    """Return whether observations are MiniGrid's whole numbers: a Dict with a grid that is not an image."""
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
    """Return the features extractor for some observations.

    Vectors are used as they are, images go through the convolutions of :class:`ConvExtractor`, MiniGrid's views through
    :class:`MiniGridExtractor`, other Dict observations through Stable-Baselines3's extractor.

    :param space: observation space of the environment
    """
    if is_minigrid_space(space):
        return MiniGridExtractor
    if isinstance(space, spaces.Dict):
        return CombinedExtractor
    is_image = isinstance(space, spaces.Box) and len(space.shape) == 3
    return ConvExtractor if is_image else FlattenExtractor
