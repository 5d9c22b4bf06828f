"""From config words to an algorithm: the only place that knows which words belong to the policy."""

from __future__ import annotations

import math
from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import VecEnv

from rlexp.networks.torso import GridNet, is_grid
from rlexp.registry import AlgoSpec, load

# Words that Stable-Baselines3 takes inside ``policy_kwargs``.
_POLICY_WORDS = (
    "net_arch",
    "activation_fn",
    "ortho_init",
    "lstm_hidden_size",
    "n_lstm_layers",
    "shared_lstm",
    "enable_critic_lstm",
    "log_std_init",
    "learn_std",
    "actor_units",
    "critic_units",
    "lstm_units",
    "shared_critic_lstm",
    "z1_dim",
    "z2_dim",
    "model_arch",
    "model_activation",
    "separate_std",
    "actor_kind",
    "actor_history",
    "pad",
    "critic_kind",
    "critic_input",
    "model_learning_rate",
)


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

    :param spec: which one
    :param options: the ``algo`` config as plain containers; handed over as copies, since SB3 changes what it is given
    :param env: what it will be trained on
    :param masked: whether the task masks actions, so that the class that reads masks is needed
    :param encoder: ``"module:class"`` of the features extractor that reads the task's observations; None: the
        policy's own
    """
    words = {key: value for key, value in options.items() if key != "name"}
    policy_kwargs = {key: words.pop(key) for key in _POLICY_WORDS if key in words}
    if "activation_fn" in policy_kwargs:
        policy_kwargs["activation_fn"] = getattr(th.nn, policy_kwargs["activation_fn"])
    if "max_grad_norm" in words and words["max_grad_norm"] is None:
        words["max_grad_norm"] = math.inf  # SB3 always clips; at infinity it changes nothing
    if "policy" in words:
        wrapped = not hasattr(load(spec.target), "policy_for")
        words["policy"] = _policy_name(words["policy"], env.observation_space, spec)
        if wrapped and words["policy"].startswith("Cnn") and is_grid(env.observation_space):
            policy_kwargs["features_extractor_class"] = GridNet  # Stable-Baselines3's own layers do not fit
        if encoder is not None:
            policy_kwargs["features_extractor_class"] = load(encoder)
    else:
        words["policy"] = "MlpPolicy"
    if policy_kwargs:
        words["policy_kwargs"] = policy_kwargs
    target = spec.masked_target if masked and spec.masked_target is not None else spec.target
    return load(target)(env=env, seed=seed, device=device, **words)


def _policy_name(given: str, observation_space: spaces.Space[Any], spec: AlgoSpec) -> str:
    if given != "auto":
        return given
    chooses = getattr(load(spec.target), "policy_for", None)  # an algorithm may know better
    if chooses is not None:
        return str(chooses(observation_space))
    lstm = "Lstm" if spec.name == "recurrent_ppo" else ""
    if isinstance(observation_space, spaces.Dict):
        return f"MultiInput{lstm}Policy"
    picture = is_image_space(observation_space) or is_grid(observation_space)
    return f"Cnn{lstm}Policy" if picture else f"Mlp{lstm}Policy"
