"""The grid extractor against a plain sum of look-ups, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces

from rlexp.networks.minigrid import MiniGridExtractor

SPACE = spaces.Dict(
    {
        "image": spaces.Box(0, np.broadcast_to(np.uint8([10, 5, 3]), (7, 7, 3)), dtype=np.uint8),
        "direction": spaces.Box(0, 3, (1,), np.uint8),
        "mission": spaces.Box(0, 56, (5,), np.uint8),
    }
)


def _batch(n: int) -> dict[str, Any]:
    SPACE.seed(0)
    rows = [SPACE.sample() for _ in range(n)]
    return {key: th.as_tensor(np.stack([row[key] for row in rows])) for key in SPACE.spaces}


def test_one_look_up_is_the_sum_of_three() -> None:
    extractor = MiniGridExtractor(SPACE, features_dim=12)
    batch = _batch(6)
    image = batch["image"].long()
    cells = sum(embedding(image[..., k]) for k, embedding in enumerate(extractor.cells))
    image = extractor.convolution(cells.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)  # type: ignore[union-attr]
    words = [extractor.words[key](batch[key].long()).flatten(1) for key in ("direction", "mission")]
    expected = th.relu(extractor.output(th.cat([th.relu(image).flatten(1), *words], dim=1)))
    found = extractor(batch)
    assert found.shape == (6, 12) and extractor.features_dim == 12
    th.testing.assert_close(found, expected)
    th.testing.assert_close(found, extractor({key: part.float() for key, part in batch.items()}))
    found.sum().backward()
    assert all(parameter.grad is not None for parameter in extractor.parameters())


def test_every_number_matters() -> None:
    extractor = MiniGridExtractor(SPACE)
    batch = _batch(1)
    before = extractor(batch)
    for key, place in (("image", (0, 3, 4, 0)), ("image", (0, 1, 1, 1)), ("image", (0, 5, 0, 2)), ("direction", (0, 0)),
                       ("mission", (0, 3))):  # fmt: skip
        other = {name: part.clone() for name, part in batch.items()}
        other[key][place] = (int(other[key][place]) + 1) % 4
        assert not th.equal(extractor(other), before), (key, place)


def test_missions_may_be_missing() -> None:
    space = spaces.Dict({key: part for key, part in SPACE.spaces.items() if key != "mission"})
    batch = {key: part for key, part in _batch(3).items() if key != "mission"}
    assert MiniGridExtractor(space)(batch).shape == (3, 128)
