"""Pre-training, the same for every algorithm: in rounds, so that a run can be saved and stopped in between."""

from __future__ import annotations

from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

ROUND = 50  # updates between two rollout boundaries


def pretrain(
    total: int, done: Callable[[], int], update: Callable[[int], None], callback: BaseCallback | None
) -> None:
    """Do the updates of pre-training that have not been done yet.

    A resumed run continues where its checkpoint was taken, since ``done`` is part of the algorithm's state.

    :param total: updates altogether
    :param done: returns the number of updates so far
    :param update: does a number of updates
    :param callback: called at the rollout boundary before each round; None: the run cannot stop here
    """
    while (so_far := done()) < total:
        if callback is not None:
            callback.on_rollout_start()
        update(min(ROUND, total - so_far))
