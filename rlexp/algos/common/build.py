"""From the settings of a config to an algorithm."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from rlexp.algos.common.config import ActorCriticConfig
from rlexp.config.validate import policy_settings
from rlexp.networks.cnn import MinAtarCNN, is_small_image
from rlexp.registry import AlgoSpec, load


def build(
    spec: AlgoSpec,
    options: dict[str, Any],
    env: VecEnv,
    seed: int,
    device: str,
    masked: bool = False,
    encoder: str | None = None,
) -> Any:
    """Build an algorithm.

    :param spec: of the algorithm
    :param options: the ``algo`` config as plain containers; passed on as copies, since SB3 modifies them
    :param env: to train on
    :param seed: of the algorithm
    :param device: of the networks
    :param masked: whether the environment masks actions, which takes an algorithm that reads masks
    :param encoder: ``"module:class"`` of the features extractor that reads the environment's observations; None: the
        policy's own
    """
    arguments = {key: value for key, value in options.items() if key != "name"}
    of_policy = policy_settings(spec.config or ActorCriticConfig)  # a plug-in's may have no dataclass
    policy_kwargs = {key: arguments.pop(key) for key in of_policy if key in arguments}
    if "activation_fn" in policy_kwargs:
        policy_kwargs["activation_fn"] = getattr(th.nn, policy_kwargs["activation_fn"])
    if "max_grad_norm" in arguments and arguments["max_grad_norm"] is None:
        arguments["max_grad_norm"] = math.inf  # SB3 always clips; at infinity it changes nothing
    _schedule(arguments, spec)
    if not arguments.get("use_sde", True):
        del arguments["use_sde"], arguments["sde_sample_freq"]  # sb3-contrib's MaskablePPO has neither
    if policy_kwargs.get("log_std_init", 0.0) is None:
        del policy_kwargs["log_std_init"]
    target = load(spec.masked_target if masked and spec.masked_target is not None else spec.target)
    if "policy" in arguments:
        if arguments["policy"] == "auto":
            arguments["policy"] = _policy_name(target, env.observation_space)
        has_own_layers = hasattr(target, "policy_for")
        if (
            not has_own_layers
            and arguments["policy"].startswith("Cnn")
            and is_small_image(env.observation_space)
        ):
            # Stable-Baselines3's own layers need larger images.
            policy_kwargs["features_extractor_class"] = MinAtarCNN
        if encoder is not None:
            policy_kwargs["features_extractor_class"] = load(encoder)
    else:
        arguments["policy"] = "MlpPolicy"
    if policy_kwargs:
        arguments["policy_kwargs"] = policy_kwargs
    return target(env=env, seed=seed, device=device, **arguments)


def _schedule(arguments: dict[str, Any], spec: AlgoSpec) -> None:
    """Give settings that fall over the budget as functions of the remaining progress."""
    for key in [
        one.name for one in fields(spec.config or ActorCriticConfig) if "is_schedule" in one.metadata
    ]:
        name = key.removesuffix("_schedule")
        if arguments.pop(key, "constant") == "linear":
            arguments[name] = LinearSchedule(arguments[name], 0.0, 1.0)


def _policy_name(algorithm: type[Any], observation_space: spaces.Space[Any]) -> str:
    """Return the policy for some observations: the algorithm's own choice if it has ``policy_for``."""
    if hasattr(algorithm, "policy_for"):
        return str(algorithm.policy_for(observation_space))
    if isinstance(observation_space, spaces.Dict):
        kind = "MultiInput"
    else:
        image = is_image_space(observation_space) or is_small_image(observation_space)
        kind = "Cnn" if image else "Mlp"
    recurrent = f"{kind}LstmPolicy"
    return recurrent if recurrent in getattr(algorithm, "policy_aliases", ()) else f"{kind}Policy"
