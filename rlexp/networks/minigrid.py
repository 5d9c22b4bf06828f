"""Embeddings of MiniGrid's integer observations."""

from __future__ import annotations

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn


class MiniGridExtractor(BaseFeaturesExtractor):
    """Embeddings of every cell's type, colour and state, a small convolution, and embeddings of the mission's words.

    The three embeddings of a cell are added, as in the bag of words of BabyAI (Hui et al. 2020).

    :param observation_space: a Dict with ``image`` ``(height, width, channels)`` and any number of integer vectors
        (``direction``, ``mission``, ...), each with embeddings of its own
    :param features_dim: units of the output
    :param embedding_dim: size of a cell's embedding
    :param channels: of the convolution, 3×3 with stride 2
    :param word_dim: size of the embeddings of the vectors' entries
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
        """Return features, ``(n, features_dim)``, of observations, each ``(n, ...)``, integers of any dtype."""
        image = observations["image"].long()
        cells = image[..., 0]
        for channel, n_values in enumerate(self._n_values[1:], start=1):
            cells = cells * n_values + image[..., channel]
        parts = [nn.functional.relu(self._convolved(cells)).flatten(1)]
        parts += [self.words[key](observations[key].long()).flatten(1) for key in self._vectors]
        features: th.Tensor = nn.functional.relu(self.output(th.cat(parts, dim=1)))
        return features

    def _convolved(self, cells: th.Tensor) -> th.Tensor:
        """Return the convolution of the embeddings, ``(n, positions, channels)``.

        The contribution of each of the few hundred kinds of cells at each of the nine offsets of the filter is computed
        once; the output at a position is then the sum of nine rows: the same convolution in half the time.

        :param cells: index of each cell in the table of embeddings, ``(n, height, width)``
        """
        weight = self.convolution.weight  # (channels, embedding_dim, 3, 3)
        window, stride = self.convolution.kernel_size[0], self.convolution.stride[0]
        added = (self._table() @ weight.permute(1, 2, 3, 0).flatten(1)).view(-1, weight.shape[0])
        patches = cells.unfold(1, window, stride).unfold(2, window, stride).flatten(3).flatten(0, 2)
        rows = patches * window**2 + th.arange(window**2, device=cells.device)
        sums = nn.functional.embedding_bag(rows, added, mode="sum")
        assert self.convolution.bias is not None
        return (sums + self.convolution.bias).view(len(cells), -1, weight.shape[0])

    def _table(self) -> th.Tensor:
        """Return the embedding of every combination of type, colour and state, ``(n_combinations, embedding_dim)``."""
        table: th.Tensor
        table, *others = self.cells.parameters()
        for weight in others:
            table = (table[:, None, :] + weight[None, :, :]).flatten(0, 1)
        return table
