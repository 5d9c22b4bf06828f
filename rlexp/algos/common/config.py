"""Settings that several algorithms share, with Stable-Baselines3's names; nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from omegaconf import MISSING

from rlexp.config.fields import added, automatic, choice, layers, number, required, schedule
from rlexp.errors import UsageError

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045

ACTIVATIONS = ("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU")
"""Classes of ``torch.nn`` that may stand between layers."""


@dataclass
class NetworkConfig:
    """A policy whose networks follow from the observations."""

    name: str = required()
    policy: str = choice("auto", "MlpPolicy", "CnnPolicy", "MultiInputPolicy")
    net_arch: Any = layers(per_network=True, policy=True)
    activation_fn: str = choice(*ACTIVATIONS, policy=True)


def _annealed(settings: Mapping[str, Any]) -> str | None:
    """Name the setting that falls to zero at the end of the budget, None when none does."""
    for key, value in settings.items():
        if key.endswith("_schedule") and value == "linear":
            return f"its {key.removesuffix('_schedule').replace('_', ' ')} falls over the budget (algo.{key})"
    return None


@dataclass
class AnnealedConfig:
    """A learning rate that may fall over the budget."""

    learning_rate_schedule: str = schedule("constant", "linear")


@dataclass
class StateDependentExplorationConfig:
    """Exploration by noise that depends on the state and is drawn anew every so many steps (Raffin et al. 2021)."""

    use_sde: bool = added(False)
    sde_sample_freq: int = added(-1, at_least=-1)
    log_std_init: Optional[float] = added(None, policy=True)


@dataclass
class ActorCriticConfig(NetworkConfig):
    """What the on-policy actor-critics share."""

    ortho_init: bool = required(policy=True)
    learning_rate: float = number(above=0)
    n_steps: int = number(at_least=1)
    gamma: float = number(above=0, at_most=1)
    ent_coef: float = number(at_least=0)
    vf_coef: float = number(at_least=0)
    max_grad_norm: Optional[float] = number(above=0)

    @staticmethod
    def budget_dependence(settings: Mapping[str, Any]) -> str | None:
        """Say what keeps a finished run from being continued as if its budget had been larger; None: nothing."""
        return _annealed(settings)


@dataclass
class ClippedPolicyConfig(ActorCriticConfig):
    """What PPO and its relatives share."""

    n_steps: int = number(at_least=2)
    batch_size: int = number(at_least=2)
    n_epochs: int = number(at_least=1)
    gae_lambda: float = number(at_least=0, at_most=1)
    clip_range: float = number(above=0)
    clip_range_vf: Optional[float] = number(above=0)
    target_kl: Optional[float] = number(above=0)

    @staticmethod
    def check_run(settings: Mapping[str, Any], hardware: Mapping[str, Any]) -> None:
        """Check that a rollout holds a minibatch; Stable-Baselines3 would silently make it smaller.

        :raises UsageError: naming the setting
        """
        rollout = settings["n_steps"] * hardware["n_envs"]
        if settings["batch_size"] > rollout:
            raise UsageError(
                f"batch_size: {settings['batch_size']} given, allowed is at most algo.n_steps x hardware.n_envs = "
                f"{rollout}"
            )


@dataclass
class OffPolicyConfig:
    """What every algorithm with a replay buffer of transitions shares."""

    name: str = required()
    learning_rate: float = number(above=0)
    buffer_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    batch_size: int = number(at_least=1)
    tau: float = number(above=0, at_most=1)
    gamma: float = number(above=0, at_most=1)
    train_freq: int = number(at_least=1)
    gradient_steps: int = number(at_least=-1)


@dataclass
class SoftActorCriticConfig(OffPolicyConfig):
    """What SAC and its relatives share."""

    ent_coef: Any = automatic("auto, auto_0.1, 0.1", at_least=0)
    target_entropy: Any = automatic("auto, -1.0")

    @staticmethod
    def budget_dependence(settings: Mapping[str, Any]) -> str | None:
        """Say what keeps a finished run from being continued as if its budget had been larger; None: nothing."""
        return _annealed(settings)


@dataclass
class ExplorationConfig:
    """Actions at random with a probability that falls linearly."""

    exploration_initial_eps: float = number(at_least=0, at_most=1)
    exploration_final_eps: float = number(at_least=0, at_most=1)
    exploration_fraction: float = number(above=0, at_most=1)

    @staticmethod
    def budget_dependence(settings: Mapping[str, Any]) -> str | None:
        """Say what keeps a finished run from being continued as if its budget had been larger; None: nothing."""
        if settings["exploration_initial_eps"] != settings["exploration_final_eps"]:
            return "its exploration rate falls over a fraction of the budget (algo.exploration_fraction)"
        if settings.get("replay", "uniform") != "uniform":
            return "its importance weights are annealed over the budget (algo.beta)"
        return None


@dataclass
class DemonstrationConfig:
    """Learning from demonstrations."""

    demonstrations: str = MISSING
    demonstration_episodes: Optional[int] = number(at_least=1)


@dataclass
class SequenceConfig(NetworkConfig):
    """A recurrent network trained on sequences; see :class:`rlexp.networks.recurrent.RecurrentNet`."""

    net_arch: Any = layers(policy=True)
    lstm_hidden_size: int = number(at_least=0, policy=True)
    n_lstm_layers: int = number(at_least=1, policy=True)
    head_arch: list[int] = layers()
    previous_action: bool = required()
    previous_reward: bool = required()
    learning_rate: float = number(above=0)
    batch_size: int = number(at_least=1)
    sequence_length: int = number(at_least=1)
    burn_in: int = number(at_least=0)
    sequence_period: Optional[int] = number(at_least=1, formerly="period")
    max_grad_norm: Optional[float] = number(above=0)

    @staticmethod
    def check_together(settings: Mapping[str, Any], n_envs: int) -> None:
        """Check that sequences overlap by their burn-in and leave no step out.

        :raises UsageError: naming the setting
        """
        length, burn_in, period = (settings[key] for key in ("sequence_length", "burn_in", "sequence_period"))
        least = max(1, burn_in)
        if length < least:
            raise UsageError(f"sequence_length: {length} given, must be at least burn_in = {least}")
        if period is not None and not least <= period <= length:
            raise UsageError(
                f"sequence_period: {period} given, must be at least burn_in = {least} and at most sequence_length = "
                f"{length}"
            )


def period_of(settings: Mapping[str, Any]) -> int:
    """Return the steps between the beginnings of two sequences: half their length where nothing else is given."""
    period: int | None = settings["sequence_period"]
    return period or max(1, settings["burn_in"], settings["sequence_length"] // 2)
