"""Returns of off-policy trajectories: Retrace, off-policy-corrected and plain ones (Munos et al. 2016; ACER).

Everything is time-major, ``(T, B)``: B segments of T steps, each of which may hold the ends of several
episodes.
"""

from __future__ import annotations

import torch as th


@th.no_grad()
def corrected_returns(
    rewards: th.Tensor,
    action_values: th.Tensor,
    state_values: th.Tensor,
    bootstrap_values: th.Tensor,
    cut: th.Tensor,
    coefficients: th.Tensor | None,
    gamma: float,
) -> th.Tensor:
    """Estimate ``Q(x_t, a_t)`` of the present policy from the rest of a segment.

    Backwards (Munos et al. 2016; Wang et al. 2017)::

        Q_t = r_t + γ [c_{t+1} (Q_{t+1} - Q(x_{t+1}, a_{t+1})) + V(x_{t+1})]    inside an episode
        Q_t = r_t + γ B_t                                                       where it is cut

    The coefficients make the estimator: ``min(1, ρ)`` is Retrace, ``min(1, ρ^{1/d})`` its form for
    d-dimensional actions, 1 the off-policy-corrected return (Harutyunyan et al. 2016). None leaves every
    correction out, which is the plain return ``Q_t = r_t + γ Q_{t+1}`` to the end of the segment.

    :param rewards: ``(T, B)``
    :param action_values: ``Q(x_t, a_t)`` at the actions taken, ``(T, B)``
    :param state_values: ``V(x_t)``, ``(T, B)``
    :param bootstrap_values: ``B_t``, read only where cut, ``(T, B)``: 0 after a termination, else the value
        of the state that followed, be it the last one of the segment or the one at a time limit
    :param cut: bool, ``(T, B)``: the recursion does not look past this step; the last step always counts as
        cut
    :param coefficients: ``c_t``, ``(T, B)``, or None
    :param gamma: discount factor γ
    :return: ``(T, B)``, without gradient
    """
    cut = cut.clone()
    cut[-1] = True
    # Everything but one multiplication and one addition per step is done for all steps at once.
    if coefficients is None:
        ahead, slope = th.zeros_like(rewards), th.full_like(rewards, gamma)
    else:
        ahead, slope = th.empty_like(rewards), th.empty_like(rewards)
        th.mul(coefficients[1:], gamma, out=slope[:-1])
        th.addcmul(state_values[1:], coefficients[1:], action_values[1:], value=-1, out=ahead[:-1])
    offset = rewards + gamma * th.where(cut, bootstrap_values, ahead)
    slope.masked_fill_(cut, 0.0)
    returns = [offset[-1]]
    for constant, factor in zip(reversed(offset[:-1].unbind()), reversed(slope[:-1].unbind()), strict=True):
        returns.append(th.addcmul(constant, factor, returns[-1]))
    return th.stack(returns[::-1])


def retrace_coefficients(ratios: th.Tensor, action_dim: int = 1) -> th.Tensor:
    """Return ``min(1, ρ^{1/d})``.

    The cap is 1 whatever the cap ``c`` of the policy gradient's weights is: only then does Retrace converge.
    The root keeps the product of the coefficients from vanishing in many dimensions (Wang et al. 2017).

    :param ratios: ``ρ_t = π(a_t|x_t) / μ(a_t|x_t)``, any shape
    :param action_dim: ``d`` of a continuous action; 1 for a discrete one
    """
    if action_dim > 1:
        ratios = ratios ** (1.0 / action_dim)
    return ratios.clamp(max=1.0)
