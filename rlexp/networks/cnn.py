"""Convolutions without a dense layer after them, so that each stream of a dueling head can have its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

_MIN_SIZE = 36  # the smallest image that the layers of Mnih et al. 2015 can take


def is_small_image(observation_space: spaces.Space[Any]) -> bool:
    """Return whether observations are images too small for the layers of Mnih et al. 2015, such as MinAtar's."""
    shape = observation_space.shape or ()
    return (
        isinstance(observation_space, spaces.Box)
        and len(shape) == 3
        and observation_space.dtype == np.uint8
        and sorted(shape)[1] < _MIN_SIZE  # the smallest one is the number of channels, first or last
    )


class ConvExtractor(BaseFeaturesExtractor):
    """Convolutions as published for the size of the image.

    Game screens get those of Mnih et al. 2015 (32 of 8×8 with stride 4, 64 of 4×4 with stride 2, 64 of 3×3), small
    images the one of MinAtar (Young & Tian 2019: 16 of 3×3). Stable-Baselines3's ``NatureCNN`` has the same layers
    but always draws the initial weights of a dense layer and an observation, which would change every seeded run.

    :param observation_space: ``(channels, height, width)``
    :param features_dim: units of a dense layer after the convolutions; None: there is none
    """

    def __init__(self, observation_space: spaces.Box, features_dim: int | None = None) -> None:
        channels, height, width = observation_space.shape
        if min(height, width) >= _MIN_SIZE:
            layers: list[nn.Module] = [
                nn.Conv2d(channels, 32, 8, stride=4),
                nn.ReLU(inplace=True),
                nn.Conv2d(32, 64, 4, stride=2),
                nn.ReLU(inplace=True),
                nn.Conv2d(64, 64, 3),
                nn.ReLU(inplace=True),
                nn.Flatten(),
            ]
        else:
            layers = [nn.Conv2d(channels, 16, 3), nn.ReLU(inplace=True), nn.Flatten()]
        convolutions = nn.Sequential(*layers)
        with th.no_grad():
            size = convolutions(th.zeros(1, channels, height, width)).shape[1]
        super().__init__(observation_space, features_dim or size)
        # Channels last saves a quarter of the time for large images, forward and backward, on CPUs and GPUs alike.
        self.memory_format = th.channels_last if min(height, width) >= _MIN_SIZE else th.contiguous_format
        self.convolutions = convolutions.to(memory_format=self.memory_format)  # type: ignore[call-overload]
        self.dense: nn.Module = (
            nn.Identity()
            if features_dim is None
            else nn.Sequential(nn.Linear(size, features_dim), nn.ReLU(inplace=True))
        )

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Return features, ``(n, features_dim)``, of images, ``(n, channels, height, width)``."""
        observations = observations.contiguous(memory_format=self.memory_format)
        features: th.Tensor = self.dense(self.convolutions(observations))
        return features


class MinAtarCNN(BaseFeaturesExtractor):
    """MinAtar's network (Young & Tian 2019): :class:`ConvExtractor` with a dense layer, for actor and critic.

    :param observation_space: ``(channels, height, width)``
    :param features_dim: units of the dense layer
    """

    def __init__(self, observation_space: spaces.Box, features_dim: int = 128) -> None:
        super().__init__(observation_space, features_dim)
        convolutions = ConvExtractor(observation_space)
        self.layers = nn.Sequential(
            convolutions, nn.Linear(convolutions.features_dim, features_dim), nn.ReLU(inplace=True)
        )

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Return features, ``(n, features_dim)``, of images, ``(n, channels, height, width)``."""
        features: th.Tensor = self.layers(observations)
        return features
