"""One gradient of ACER: from segments of trajectories to a loss whose gradient it is.

The policy's part is not a loss in the usual sense. The gradient ``z`` with respect to each sample's statistics φ,
trust region included, is computed directly; ``-zᵀφ`` with ``z`` held constant then passes it to back-propagation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch as th

from rlexp.algos.acer.policies import ACERPolicy
from rlexp.algos.acer.replay import RUNNING, TERMINATED, Segments
from rlexp.losses import acer, distributions, trust_region
from rlexp.losses.distributions import gaussian_log_prob_log_std
from rlexp.losses.retrace import corrected_returns, retrace_coefficients

Info = dict[str, th.Tensor]

PROBABILITY_FLOOR = 1e-7
"""Lower bound of probabilities in gradients, which divide by them."""


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of an update; :class:`~rlexp.algos.acer.acer.ACER` documents them."""

    gamma: float
    ent_coef: float
    vf_coef: float
    importance_weight_clip: float
    trust_region: bool
    trust_region_delta: float
    trust_region_statistics: str
    bias_correction: bool
    retrace: bool
    dueling: bool
    dueling_samples: int


def acer_loss(policy: ACERPolicy, segments: Segments, settings: Settings) -> tuple[th.Tensor, Info]:
    """Return the scalar to differentiate, and what is worth logging (scalars).

    :param policy: its average actor is the centre of the trust region
    :param segments: on-policy or replayed ones
    :param settings: hyper-parameters
    """
    loss = discrete_loss if policy.discrete else continuous_loss
    return loss(policy, segments, settings)


def discrete_loss(policy: ACERPolicy, segments: Segments, settings: Settings) -> tuple[th.Tensor, Info]:
    """ACER for discrete actions, all segments at once; see :func:`acer_loss`."""
    n_transitions = segments.n_transitions
    logits, latent = policy.evaluate_sequence(segments)
    action_values: th.Tensor = policy.value_net(latent)
    actions = segments.actions.flatten()
    index = actions.unsqueeze(-1)
    probabilities = logits[:n_transitions].softmax(dim=-1)
    taken_values = action_values[:n_transitions].gather(-1, index).squeeze(-1)
    with th.no_grad():
        values = (logits.softmax(dim=-1) * action_values).sum(dim=-1)
        floored = probabilities.clamp(min=PROBABILITY_FLOOR)
        behaviour = segments.behaviour.flatten(0, 1).exp().clamp(min=PROBABILITY_FLOOR)
        ratios = floored.gather(-1, index).squeeze(-1) / behaviour.gather(-1, index).squeeze(-1)
        returns = _returns(segments, values, taken_values, retrace_coefficients(ratios), settings)
        gradient = acer.categorical_policy_gradient(
            floored,
            behaviour,
            actions,
            returns,
            action_values[:n_transitions],
            values[:n_transitions],
            cap=settings.importance_weight_clip,
            bias_correction=settings.bias_correction,
            ent_coef=settings.ent_coef,
        )
        by_logits = settings.trust_region_statistics == "logits"
        if by_logits:
            gradient = trust_region.to_logits(gradient, floored)
        info = _weights_info(ratios, settings)
        info["entropy"] = -(floored * floored.log()).sum(dim=-1).mean()
        if settings.trust_region:
            average = policy.evaluate_average(segments).softmax(dim=-1)
            make = trust_region.logits_kl_gradient if by_logits else trust_region.categorical_kl_gradient
            gradient, active = trust_region.project(
                gradient, make(floored, average), settings.trust_region_delta
            )
            info["constraint_active"] = active.float().mean()
            info["kl_to_average"] = distributions.categorical_kl(average, floored).mean()
    statistics = logits[:n_transitions] if by_logits else probabilities
    policy_loss = -(gradient * statistics).sum(dim=-1).mean()
    value_loss = acer.q_loss(taken_values, returns).mean()
    info["value_loss"] = value_loss.detach()
    return policy_loss + settings.vf_coef * value_loss, info


def continuous_loss(policy: ACERPolicy, segments: Segments, settings: Settings) -> tuple[th.Tensor, Info]:
    """ACER for continuous actions, all segments at once; see :func:`acer_loss`."""
    n_transitions = segments.n_transitions
    means, latent = policy.evaluate_sequence(segments)
    mean, log_std = means[:n_transitions], policy.log_std.expand_as(means[:n_transitions])
    actions = segments.actions.flatten(0, 1)
    with th.no_grad():
        sampled_actions = policy.sample(mean)
        draws = policy.sample(mean, (settings.dueling_samples,))
        old_mean, old_log_std = segments.behaviour.flatten(0, 1).chunk(2, dim=-1)
        ratios, sampled_ratios = (
            th.exp(
                gaussian_log_prob_log_std(a, mean, log_std)
                - gaussian_log_prob_log_std(a, old_mean, old_log_std)
            )
            for a in (actions, sampled_actions)
        )
    values, (taken_values, sampled_values) = policy.dueling_values(
        latent[:n_transitions], th.stack([actions, sampled_actions]), draws, settings.dueling
    )
    with th.no_grad():
        every_value = th.cat([values, policy.value_net(latent[n_transitions:]).squeeze(-1)])
        coefficients = retrace_coefficients(ratios, actions.shape[-1])
        returns = _returns(segments, every_value, taken_values, coefficients, settings)
        corrected = _returns(segments, every_value, taken_values, th.ones_like(ratios), settings)
        gradient = acer.gaussian_policy_gradient(
            mean,
            log_std,
            actions,
            ratios,
            corrected - values,
            sampled_actions,
            sampled_ratios,
            sampled_values - values,
            learn_std=policy.learn_std,
            cap=settings.importance_weight_clip,
            bias_correction=settings.bias_correction,
            ent_coef=settings.ent_coef,
        )
        info = _weights_info(ratios, settings)
        if settings.trust_region:
            average = policy.evaluate_average(segments)
            average_log_std = policy.average_log_std.expand_as(average)
            both = (mean, log_std, average, average_log_std)
            kl_gradient = trust_region.gaussian_kl_gradient(*both, policy.learn_std)
            gradient, active = trust_region.project(gradient, kl_gradient, settings.trust_region_delta)
            info["constraint_active"] = active.float().mean()
            info["kl_to_average"] = distributions.gaussian_kl_log_std(
                average, average_log_std, mean, log_std
            ).mean()
        info["std"] = log_std.exp().mean()
    statistics = th.cat([mean, log_std], dim=-1) if policy.learn_std else mean
    policy_loss = -(gradient * statistics).sum(dim=-1).mean()
    q_loss = acer.q_loss(taken_values, returns).mean()
    v_loss = acer.v_loss(values, taken_values.detach(), returns, ratios).mean()
    info["value_loss"] = q_loss.detach()
    return policy_loss + settings.vf_coef * (q_loss + v_loss), info


def _returns(
    segments: Segments,
    values: th.Tensor,
    taken_values: th.Tensor,
    coefficients: th.Tensor,
    settings: Settings,
) -> th.Tensor:
    """Return the targets of all steps, ``(T * B,)``.

    :param values: of :meth:`Segments.states`
    :param taken_values: ``Q(x_t, a_t)``, ``(T * B,)``
    :param coefficients: of Retrace, ``(T * B,)``
    """
    n_steps, n_segments = shape = segments.rewards.shape
    inside = (n_steps + 1) * n_segments
    state_values = values[:inside].view(n_steps + 1, n_segments)
    bootstrap = th.zeros_like(segments.rewards)
    bootstrap[-1] = state_values[-1]
    bootstrap.masked_fill_(segments.ends == TERMINATED, 0.0)
    bootstrap[segments.truncations[0], segments.truncations[1]] = values[inside:]
    return corrected_returns(
        segments.rewards,
        taken_values.view(shape),
        state_values[:-1],
        bootstrap,
        segments.ends != RUNNING,
        coefficients.view(shape) if settings.retrace else None,
        settings.gamma,
    ).flatten()


def _weights_info(ratios: th.Tensor, settings: Settings) -> Info:
    return {
        "importance_weight": ratios.mean(),
        "truncated": (ratios > settings.importance_weight_clip).float().mean(),
    }
