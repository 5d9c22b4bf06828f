"""Saving replay on its own, as Stable-Baselines3 does, but without pickle."""

from __future__ import annotations

from io import BufferedIOBase
from pathlib import Path
from typing import Any

from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from rlexp.algos.common import tensor_tree
from rlexp.errors import UsageError


class SavedReplay(OffPolicyAlgorithm):
    """Mixin of off-policy algorithms whose buffer has ``checkpoint_state`` and ``load_checkpoint_state``."""

    replay_buffer: Any

    def save_replay_buffer(self, path: str | Path | BufferedIOBase) -> None:
        """Write the replay buffer: plain arrays in NumPy's ``.npz`` format, whatever the name ends with.

        Demonstrations are left out; they are read from their own file again.

        :param path: of the file
        """
        tensor_tree.write(path, self.replay_buffer.checkpoint_state())

    def load_replay_buffer(self, path: str | Path | BufferedIOBase, truncate_last_traj: bool = True) -> None:
        """Read what :meth:`save_replay_buffer` wrote.

        :param path: of the file
        :param truncate_last_traj: without effect, as in Stable-Baselines3 for every buffer but hindsight replay
        :raises UsageError: when the file is of another kind, or was written with other spaces, settings or
            demonstrations
        """
        state = tensor_tree.read(path)
        try:
            self.replay_buffer.load_checkpoint_state(state)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise UsageError(f"{path}: does not fit this replay buffer ({error})") from error
