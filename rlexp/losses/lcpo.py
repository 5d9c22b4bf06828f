"""Loop-clipping policy optimisation: advantages (Wu & Rasmussen 2021, eqs. 5-15; Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlexp.losses.loops import OUTSIDE

Floats = npt.NDArray[np.floating[Any]]


def loop_advantages(
    rewards: Floats,
    values: Floats,
    after_loop: npt.NDArray[np.int64],
    *,
    termination_loop: bool = False,
    gamma: float = 0.99,
    gae_lambda: float = 0.95,
) -> tuple[Floats, Floats]:
    """Estimate raw advantages and value targets of one episode, or of the part of it that a rollout holds.

    The clean trajectory is what remains when the loops are cut out. Ordinary GAE runs along it, from clean
    transition ``i`` to the next clean one ``k``; a transition in a loop has the same ``k``::

        A_i     = r_i + γ V_k     - V_i + γ λ A_k    clean:   eqs. 5, 7
        A_i^LAE = r_i + γ V_{i+1} - V_i + γ λ A_k    in loop: eq. 11

    Value targets are ``A_i + V_i`` on the clean trajectory (eq. 6) and, in a loop, the target of the state
    after it (eq. 10). A termination loop (definition 2) is cut off too: the clean trajectory ends in the
    state where it was taken, with that state's value, so that the transitions before it do not pay for the
    failure. Its own target is ``r_i``.

    :param rewards: shape ``(T,)``
    :param values: shape ``(T + 1,)``, of the states acted in and of the next one; 0 after a terminal
    :param after_loop: shape ``(T,)``, from :func:`rlexp.losses.loops.find_loops`
    :param termination_loop: whether the last transition ended the episode without success
    :param gamma: discount factor γ
    :param gae_lambda: λ of GAE and LAE
    :return: advantages and value targets, each of shape ``(T,)``
    """
    # Plain floats: this recursion is several times faster on them than on NumPy scalars.
    reward, value, loop_end = rewards.tolist(), values.tolist(), after_loop.tolist()
    n_transitions = len(reward)
    advantages = [0.0] * n_transitions
    targets = [*value]
    clean, clean_advantage = n_transitions, 0.0
    for i in reversed(range(n_transitions)):
        if termination_loop and i == n_transitions - 1:
            advantages[i] = reward[i] - value[i]
            targets[i] = reward[i]
            clean = i
        elif loop_end[i] != OUTSIDE:
            delta = reward[i] + gamma * value[i + 1] - value[i]
            advantages[i] = delta + gamma * gae_lambda * clean_advantage
            targets[i] = targets[loop_end[i]]
        else:
            delta = reward[i] + gamma * value[clean] - value[i]
            advantages[i] = delta + gamma * gae_lambda * clean_advantage
            targets[i] = advantages[i] + value[i]
            clean, clean_advantage = i, advantages[i]
    return np.array(advantages), np.array(targets[:n_transitions])


def clip_thresholds(rewards: Floats, values: Floats, gamma: float = 0.99) -> Floats:
    """Return ``R_i = r_i + (γ - 1) V_i``, what a wasted turn costs (eq. 12).

    :param rewards: any shape
    :param values: of the states acted in, same shape
    :param gamma: discount factor γ
    """
    return rewards + (gamma - 1) * values


def clip_advantages(
    advantages: Floats,
    thresholds: Floats,
    in_loop: npt.NDArray[np.bool_],
    clip_gae: bool = True,
    clip_lae: bool = True,
) -> Floats:
    """Separate useful from useless actions: ``max(R, A)`` outside loops (eq. 13), ``min(R, A)`` inside (eq. 14).

    This comes after the recursion, which stays raw, so that no clipped value spreads to earlier steps.

    :param advantages: raw, any shape
    :param thresholds: ``R``, same shape; -inf where an advantage outside loops must stay as it is
    :param in_loop: same shape; termination loops count as loops
    :param clip_gae: eq. 13 on or off
    :param clip_lae: eq. 14 on or off
    """
    useful = np.maximum(thresholds, advantages) if clip_gae else advantages
    useless = np.minimum(thresholds, advantages) if clip_lae else advantages
    return np.where(in_loop, useless, useful)


def scale_advantages(advantages: Floats, scaling: str) -> Floats:
    """Bring the advantages of one rollout to unit size.

    ``"rms"`` divides by the root mean square. Unlike ``"standard"`` it does not subtract the mean: the
    order that clipping set up (useful above ``R``, useless below) would survive a shift, but the sign would
    not, and in a rollout of mostly useless actions the least bad of them would be reinforced.

    :param advantages: any shape
    :param scaling: ``"rms"``, ``"standard"`` (mean 0, standard deviation 1) or ``"none"``
    :raises ValueError: when the scaling has another name
    """
    if scaling == "rms":
        size = np.sqrt(np.mean(np.square(advantages)))
    elif scaling == "standard":
        advantages = advantages - advantages.mean()
        size = advantages.std()
    elif scaling == "none":
        return advantages
    else:
        raise ValueError(f"advantage_scaling must be rms, standard or none, not {scaling!r}")
    scaled: Floats = advantages / (size + 1e-8)
    return scaled
