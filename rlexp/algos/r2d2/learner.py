"""Updates from batches of sequences; knows neither environments nor replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from stable_baselines3.common.utils import polyak_update

from rlexp.algos.r2d2.policies import RecurrentPolicy
from rlexp.buffers.mixed_sequences import SequenceSample, tensors
from rlexp.buffers.sequence_builder import Sequences
from rlexp.losses.huber import huber
from rlexp.losses.sequences import (
    greedy_values,
    l2_penalty,
    large_margin,
    n_step_targets,
    sequence_priorities,
    step_mean,
    valid_steps,
)

Floats = npt.NDArray[np.float32]
Info = dict[str, th.Tensor]


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of an update.

    :param gamma: discount factor
    :param n_steps: of the n-step target
    :param burn_in: time steps before those to learn from
    :param double_q: the online network chooses the action that the target network values
    :param rescale_epsilon: ε of value rescaling; None: values are not rescaled
    :param td_clip: TD errors are clipped to ±td_clip in the gradient; None: not at all
    :param eta: weight of the largest error in a sequence's priority; the mean error has the rest
    :param n_step_coef: weight of the n-step loss
    :param one_step_coef: weight of the one-step loss; if positive, its errors are part of the priorities, too
    :param supervised_coef: weight of the large-margin loss, on demonstrations only
    :param margin: margin of the large-margin loss
    :param l2_coef: weight of the sum of squares of all parameters
    :param max_grad_norm: gradients are clipped to this norm
    :param target_update_interval: updates between two updates of the target network
    :param tau: weight of the online network in an update of the target network; 1: it is replaced
    """

    gamma: float
    n_steps: int
    burn_in: int
    double_q: bool = True
    rescale_epsilon: float | None = 1e-3
    td_clip: float | None = None
    eta: float = 0.9
    n_step_coef: float = 1.0
    one_step_coef: float = 0.0
    supervised_coef: float = 0.0
    margin: float = 0.8
    l2_coef: float = 0.0
    max_grad_norm: float = 40.0
    target_update_interval: int = 400
    tau: float = 1.0


class Learner:
    """Updates the networks of a policy.

    :param policy: online and target network, optimizer
    :param settings: hyper-parameters
    """

    def __init__(self, policy: RecurrentPolicy, settings: Settings) -> None:
        self.policy = policy
        self.settings = settings
        self.updates = 0

    def update(self, batch: SequenceSample) -> tuple[Floats, Info]:
        """Take one optimizer step.

        :param batch: sequences
        :return: new priorities, ``(B,)``, and what to log
        """
        self.policy.set_training_mode(True)
        loss, priorities, info = self.loss(batch)
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = th.nn.utils.clip_grad_norm_(self.policy.q_net.parameters(), self.settings.max_grad_norm)
        self.policy.optimizer.step()
        self.updates += 1
        if self.updates % self.settings.target_update_interval == 0:
            self._update_target()
        return priorities.cpu().numpy(), {**info, "grad_norm": norm.detach()}

    def initial_priorities(self, sequences: Sequences) -> Floats:
        """Return the priorities of new sequences of the agent, as an update would compute them, ``(n,)``.

        :param sequences: n of them
        """
        n = len(sequences)
        burn_in, device = self.settings.burn_in, self.policy.device
        return self.priorities(tensors(sequences, np.ones(n), np.zeros(n, bool), burn_in, device))

    def priorities(self, batch: SequenceSample) -> Floats:
        """Return the priorities that an update would compute, ``(B,)``, without learning.

        :param batch: sequences
        """
        with th.inference_mode():
            return self.loss(batch)[1].cpu().numpy()

    def loss(self, batch: SequenceSample) -> tuple[th.Tensor, th.Tensor, Info]:
        """Return the loss, priorities ``(B,)`` and what to log.

        All terms are computed from one unroll of the online network and one of the target network.

        :param batch: sequences
        """
        settings = self.settings
        values, targets = self._values(batch)
        actions = batch.last_actions[settings.burn_in + 1 :]
        rewards = batch.last_rewards[settings.burn_in + 1 :]
        steps = len(actions)
        valid = valid_steps(steps, batch.lengths)
        # Padding has no actions; any index will do, since it is masked out.
        actions = actions.clamp(max=values.shape[-1] - 1)
        taken = values[:-1].gather(-1, actions.unsqueeze(-1)).squeeze(-1)

        def errors(n_steps: int) -> th.Tensor:
            wanted = n_step_targets(
                rewards, targets, batch.lengths, batch.terminated, n_steps,
                settings.gamma, settings.rescale_epsilon,
            )  # fmt: skip
            return wanted - taken

        def mean(terms: th.Tensor) -> th.Tensor:
            return step_mean(terms, valid, batch.weights)

        td_errors = errors(settings.n_steps)
        sizes = settings.n_step_coef * td_errors.detach().abs()
        parts = {"n_step_loss": (settings.n_step_coef, mean(huber(td_errors, settings.td_clip)))}
        if settings.one_step_coef > 0:
            one_step = errors(1)
            sizes = sizes + settings.one_step_coef * one_step.detach().abs()
            parts["one_step_loss"] = settings.one_step_coef, mean(huber(one_step, settings.td_clip))
        if settings.supervised_coef > 0:
            lead = large_margin(values[:-1], actions, settings.margin) * batch.is_demonstration
            parts["supervised_loss"] = settings.supervised_coef, mean(lead)
        if settings.l2_coef > 0:
            parts["l2"] = settings.l2_coef, l2_penalty(self.policy.q_net.parameters())
        loss = th.stack([weight * part for weight, part in parts.values()]).sum()
        info = {name: part.detach() for name, (_, part) in parts.items()}
        info["loss"] = loss.detach()
        info["td_error"] = step_mean(td_errors.detach().abs(), valid, th.ones_like(batch.weights))
        info["value"] = step_mean(taken.detach(), valid, th.ones_like(batch.weights))
        return loss, sequence_priorities(sizes, valid, settings.eta), info

    def _values(self, batch: SequenceSample) -> tuple[th.Tensor, th.Tensor]:
        """Return the online network's action values, ``(T + 1, B, n_actions)``,
        and the values to bootstrap from, ``(T + 1, B)``.
        """
        policy, burn_in = self.policy, self.settings.burn_in
        assert policy.q_net_target is not None
        inputs: tuple[Any, ...] = (
            batch.observations,
            batch.last_actions,
            batch.last_rewards,
            batch.states,
            batch.has_burn_in,
            burn_in,
        )
        values = policy.q_net.unroll(*inputs)
        with th.no_grad():
            target_values = policy.q_net_target.unroll(*inputs)
            targets = greedy_values(target_values, values if self.settings.double_q else None)
        return values, targets

    def _update_target(self) -> None:
        assert self.policy.q_net_target is not None
        with th.no_grad():
            polyak_update(
                self.policy.q_net.parameters(), self.policy.q_net_target.parameters(), self.settings.tau
            )
