"""Returns of off-policy trajectories, against loops, hand cases and exact expectations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch as th

from rlexp.losses.retrace import corrected_returns, retrace_coefficients


def draw(shape: tuple[int, int], seed: int) -> dict[str, th.Tensor]:
    generator = th.Generator().manual_seed(seed)
    names = ("rewards", "action_values", "state_values", "bootstrap_values")
    case = {name: th.randn(shape, generator=generator, dtype=th.float64) for name in names}
    case["ratios"] = th.randn(shape, generator=generator, dtype=th.float64).exp()
    case["cut"] = th.rand(shape, generator=generator) < 0.2
    return case


def by_definition(case: dict[str, th.Tensor], gamma: float, t: int, b: int, corrected: bool) -> float:
    """Sum of temporal differences (Munos et al. 2016, eq. 3), not the recursion."""
    n_steps = len(case["rewards"])
    total = case["action_values"][t, b].item() if corrected else 0.0
    trace, discount = 1.0, 1.0
    for s in range(t, n_steps):
        last = s == n_steps - 1 or bool(case["cut"][s, b])
        if s > t:
            trace *= min(1.0, case["ratios"][s, b].item()) if corrected else 1.0
        after = case["bootstrap_values"][s, b].item() if last else case["state_values"][s + 1, b].item()
        if corrected:
            delta = case["rewards"][s, b].item() + gamma * after - case["action_values"][s, b].item()
            total += discount * trace * delta
        else:
            total += discount * (case["rewards"][s, b].item() + (gamma * after if last else 0.0))
        discount *= gamma
        if last:
            break
    return total


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_against_the_definition(seed: int, corrected: bool) -> None:
    case = draw((7, 5), seed)
    ratios = case.pop("ratios")
    found = corrected_returns(
        **case, coefficients=retrace_coefficients(ratios) if corrected else None, gamma=0.9
    )
    case["ratios"] = ratios
    expected = [[by_definition(case, 0.9, t, b, corrected) for b in range(5)] for t in range(7)]
    th.testing.assert_close(found, th.tensor(expected, dtype=th.float64))


def column(*values: float) -> th.Tensor:
    return th.tensor(values, dtype=th.float64).unsqueeze(-1)


HAND = {
    "rewards": column(1, 2, 3),
    "action_values": column(10, 20, 30),
    "state_values": column(11, 22, 33),
    "bootstrap_values": column(100, 100, 40),
}


def test_by_hand() -> None:
    coefficients = retrace_coefficients(column(9, 0.5, 2))
    found = corrected_returns(**HAND, cut=column(0, 0, 0).bool(), coefficients=coefficients, gamma=0.5)
    third = 3 + 0.5 * 40
    second = 2 + 0.5 * (1 * (third - 30) + 33)
    first = 1 + 0.5 * (0.5 * (second - 20) + 22)
    assert found.flatten().tolist() == [first, second, third]


def test_time_limit_bootstraps_and_termination_does_not() -> None:
    at_limit = corrected_returns(
        **HAND, cut=column(0, 1, 0).bool(), coefficients=column(1, 1, 1), gamma=0.5
    ).flatten()
    assert at_limit[1] == 2 + 0.5 * 100
    terminal = {**HAND, "bootstrap_values": column(100, 0, 40)}
    ended = corrected_returns(**terminal, cut=column(0, 1, 0).bool(), coefficients=column(1, 1, 1), gamma=0.5)
    assert ended[1] == 2
    assert ended[0] == 1 + 0.5 * (ended[1] - 20 + 22), "the step before sees the end, not the next episode"


def test_on_policy_with_consistent_values_is_the_return() -> None:
    # ρ = 1 and Q(x, a) = V(x): the corrections cancel, and what is left is the plain discounted return.
    case = draw((6, 3), 0)
    case["action_values"] = case["state_values"]
    ratios = th.ones_like(case.pop("ratios"))
    plain = corrected_returns(**case, coefficients=None, gamma=0.9)
    th.testing.assert_close(
        corrected_returns(**case, coefficients=retrace_coefficients(ratios), gamma=0.9), plain
    )


def test_zero_coefficients_look_one_step_ahead() -> None:
    case = draw((4, 2), 1)
    case["cut"][:] = False
    ratios = th.zeros_like(case.pop("ratios"))
    found = corrected_returns(**case, coefficients=retrace_coefficients(ratios), gamma=0.9)
    th.testing.assert_close(found[:-1], case["rewards"][:-1] + 0.9 * case["state_values"][1:])


@pytest.mark.parametrize("opc", [False, True])
def test_true_values_are_the_fixed_point(opc: bool) -> None:
    """E_μ[Q^ret(x, a)] = Q^π(x, a) for any behaviour, all trajectories of a small environment enumerated."""
    rng = np.random.default_rng(3)
    transition = rng.dirichlet(np.ones(2), size=(2, 2))  # (state, action, next state)
    reward = rng.normal(size=(2, 2))
    policy, behaviour = rng.dirichlet(np.ones(2), size=2), rng.dirichlet(np.ones(2), size=2)
    gamma = 0.8
    chain = np.einsum("sa,sap->sp", policy, transition)
    value = np.linalg.solve(np.eye(2) - gamma * chain, (policy * reward).sum(axis=1))
    q = reward + gamma * transition @ value
    for state, action in itertools.product(range(2), range(2)):
        expected = 0.0
        for s1, a1, s2, a2, s3 in itertools.product(range(2), repeat=5):
            probability = transition[state, action, s1] * behaviour[s1, a1]
            probability *= transition[s1, a1, s2] * behaviour[s2, a2] * transition[s2, a2, s3]
            states, actions = [state, s1, s2], [action, a1, a2]
            ratios = column(*(policy[states, actions] / behaviour[states, actions]))
            found = corrected_returns(
                column(*reward[states, actions]),
                column(*q[states, actions]),
                column(*value[states]),
                column(0, 0, value[s3]),
                column(0, 0, 0).bool(),
                th.ones_like(ratios) if opc else retrace_coefficients(ratios),
                gamma,
            )
            expected += probability * found[0].item()
        assert expected == pytest.approx(q[state, action])


def test_coefficients() -> None:
    ratios = th.tensor([0.25, 1.0, 16.0])
    assert retrace_coefficients(ratios).tolist() == [0.25, 1.0, 1.0]
    assert retrace_coefficients(ratios, action_dim=2).tolist() == [0.5, 1.0, 1.0]


def test_no_gradient_flows() -> None:
    case = draw((3, 2), 0)
    ratios = case.pop("ratios").requires_grad_()
    assert not corrected_returns(**case, coefficients=retrace_coefficients(ratios), gamma=0.9).requires_grad


def test_nothing_given_is_changed() -> None:
    case = draw((3, 2), 0)
    coefficients = retrace_coefficients(case.pop("ratios"))
    before = {name: value.clone() for name, value in case.items()}
    corrected_returns(**case, coefficients=coefficients, gamma=0.9)
    assert all(th.equal(before[name], value) for name, value in case.items())
