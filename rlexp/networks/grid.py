"""What MiniGrid's whole numbers mean to a network."""

from __future__ import annotations

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn


class GridExtractor(BaseFeaturesExtractor):
    """Learned meanings of every cell's kind, colour and state, a small convolution, and the mission's words.

    The three meanings of a cell are added, as in the bag of words of BabyAI (Hui et al. 2020).

    :param observation_space: a dictionary with ``image`` ``(height, width, channels)``, and any number of vectors of
        whole numbers (``direction``, ``mission``, ...), every vector with meanings of its own
    :param features_dim: units of the output
    :param embedding_dim: units of a cell's meaning
    :param channels: of the convolution, 3×3 by 2
    :param word_dim: units of a number's meaning in the vectors
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        features_dim: int = 128,
        embedding_dim: int = 16,
        channels: int = 32,
        word_dim: int = 8,
    ) -> None:
        super().__init__(observation_space, features_dim)
        image = observation_space["image"]
        assert isinstance(image, spaces.Box) and image.shape is not None
        height, width, _ = image.shape
        self._n_values = [int(high) + 1 for high in image.high.max(axis=(0, 1))]
        self.cells = nn.ModuleList(nn.Embedding(n_values, embedding_dim) for n_values in self._n_values)
        self.convolution = nn.Conv2d(embedding_dim, channels, 3, stride=2)
        self._vectors = sorted(key for key in observation_space.spaces if key != "image")
        self.words = nn.ModuleDict()
        size = channels * ((height - 3) // 2 + 1) * ((width - 3) // 2 + 1)
        for key in self._vectors:
            space = observation_space[key]
            assert isinstance(space, spaces.Box) and space.shape is not None
            self.words[key] = nn.Embedding(int(space.high.max()) + 1, word_dim)
            size += word_dim * space.shape[0]
        self.output = nn.Linear(size, features_dim)

    def forward(self, observations: dict[str, th.Tensor]) -> th.Tensor:
        """Return features, ``(n, features_dim)``, of observations, each ``(n, ...)`` of whole numbers of any type."""
        image = observations["image"].long()
        places = image[..., 0]
        for channel, n_values in enumerate(self._n_values[1:], start=1):
            places = places * n_values + image[..., channel]
        parts = [nn.functional.relu(self._convolved(places)).flatten(1)]
        parts += [self.words[key](observations[key].long()).flatten(1) for key in self._vectors]
        features: th.Tensor = nn.functional.relu(self.output(th.cat(parts, dim=1)))
        return features

    def _convolved(self, places: th.Tensor) -> th.Tensor:
        """Return the convolution of the meanings, ``(n, positions, channels)``.

        What each of the few hundred kinds of cells adds to a channel, at each of the nine places below the filter, is
        worked out once; a position is then the sum of nine rows. It is the same convolution in half the time.

        :param places: of the cells in the table of meanings, ``(n, height, width)``
        """
        weight = self.convolution.weight  # (channels, embedding_dim, 3, 3)
        window, stride = self.convolution.kernel_size[0], self.convolution.stride[0]
        added = (self._meanings() @ weight.permute(1, 2, 3, 0).flatten(1)).view(-1, weight.shape[0])
        patches = places.unfold(1, window, stride).unfold(2, window, stride).flatten(3).flatten(0, 2)
        rows = patches * window**2 + th.arange(window**2, device=places.device)
        sums = nn.functional.embedding_bag(rows, added, mode="sum")
        assert self.convolution.bias is not None
        return (sums + self.convolution.bias).view(len(places), -1, weight.shape[0])

    def _meanings(self) -> th.Tensor:
        """Return the meaning of every combination of kind, colour and state, ``(n_combinations, embedding_dim)``."""
        table: th.Tensor
        table, *others = self.cells.parameters()
        for weight in others:
            table = (table[:, None, :] + weight[None, :, :]).flatten(0, 1)
        return table
