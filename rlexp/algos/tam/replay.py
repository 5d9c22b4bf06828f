"""What the user model learns from: the latest transitions of the dialogues held so far."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th

Array = npt.NDArray[Any]


class Transitions(NamedTuple):
    """A batch of transitions, every field of shape ``(batch, ...)``."""

    observations: th.Tensor
    actions: th.Tensor
    terminated: th.Tensor
    rewards: th.Tensor
    similar: th.Tensor
    has_next: th.Tensor


class TransitionReplay:
    """A ring of the latest transitions.

    :param size: number of transitions stored
    :param n_inputs: length of an observation vector
    """

    def __init__(self, size: int, n_inputs: int) -> None:
        self.size = size
        self.added = 0
        self.fields: dict[str, Array] = {
            "observations": np.zeros((size, n_inputs), np.float32),
            "actions": np.zeros(size, np.int64),
            **{name: np.zeros(size, np.float32) for name in Transitions._fields[2:]},
        }

    def __len__(self) -> int:
        return min(self.added, self.size)

    def add(self, **transitions: Array) -> None:
        """Add a batch; every field of :class:`Transitions`, first dimension the batch."""
        indices = (self.added + np.arange(len(transitions["actions"]))) % self.size
        for name, values in transitions.items():
            self.fields[name][indices] = values
        self.added += len(indices)

    def sample(self, batch_size: int, device: th.device) -> Transitions:
        """Sample with replacement, from NumPy's global generator as Stable-Baselines3's buffers do."""
        indices = np.random.randint(len(self), size=batch_size)
        return Transitions(*(th.as_tensor(values[indices], device=device) for values in self.fields.values()))

    def state(self) -> dict[str, Any]:
        """Return a copy of the stored transitions, as arrays."""
        kept = {name: values[: len(self)].copy() for name, values in self.fields.items()}
        return {"added": self.added, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a :meth:`state`."""
        self.added = int(state["added"])
        for name, values in self.fields.items():
            values[: len(self)] = state[name]
