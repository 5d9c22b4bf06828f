"""The user model's loss and mask against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch as th

from rlexp.losses.tam import useful_actions, user_model_loss


def test_loss_by_hand() -> None:
    predictions = th.zeros(2, 3, 3)
    predictions[0, 1] = th.tensor([2.0, 0.5, -1.0])  # termination logit, reward, similarity logit
    predictions[1, 2] = th.tensor([-3.0, -1.0, 4.0])
    loss = user_model_loss(
        predictions,
        actions=th.tensor([1, 2]),
        terminated=th.tensor([0.0, 1.0]),
        rewards=th.tensor([0.0, 1.0]),
        similar=th.tensor([1.0, 1.0]),
        has_next=th.tensor([1.0, 0.0]),
    )

    def cross_entropy(logit: float, target: int) -> float:
        return math.log1p(math.exp(-logit if target else logit))

    termination = (cross_entropy(2, 0) + cross_entropy(-3, 1)) / 2
    reward = (0.25 + 4.0) / 2
    similarity = cross_entropy(-1, 1)  # the second transition has no next state
    assert loss.item() == pytest.approx(termination + reward + similarity, rel=1e-6)


def test_loss_without_any_next_state() -> None:
    one = th.ones(1)
    assert th.isfinite(user_model_loss(th.zeros(1, 2, 3), th.tensor([0]), one, one, one, th.zeros(1)))


@pytest.mark.parametrize(
    ("prediction", "useful"),
    [
        ((-9.0, -1.0, -9.0), True),
        ((-9.0, 1.0, 9.0), False),  # stays in the same state
        ((9.0, -1.0, -9.0), False),  # ends without success
        ((9.0, 1.0, -9.0), True),  # ends with success
        ((9.0, 0.0, -9.0), False),  # a reward of 0 is not a success
        ((0.3, -1.0, 0.3), True),  # 57 %: below both thresholds
    ],
)
def test_mask(prediction: tuple[float, float, float], useful: bool) -> None:
    predictions = th.tensor([[(-9.0, -1.0, -9.0), prediction]])
    assert useful_actions(predictions, 0.6, 0.6).tolist() == [[True, useful]]


def test_thresholds_are_separate() -> None:
    predictions = th.tensor([[(-9.0, -1.0, -9.0), (0.3, -1.0, -9.0), (-9.0, -1.0, 0.3)]])
    assert useful_actions(predictions, 0.5, 0.6).tolist() == [[True, False, True]]
    assert useful_actions(predictions, 0.6, 0.5).tolist() == [[True, True, False]]


def test_never_blocks_everything() -> None:
    predictions = th.tensor([[(9.0, -1.0, -9.0), (-9.0, -1.0, 9.0)], [(9.0, -1.0, -9.0), (-9.0, -1.0, -9.0)]])
    assert useful_actions(predictions, 0.5, 0.5).tolist() == [[True, True], [False, True]]
