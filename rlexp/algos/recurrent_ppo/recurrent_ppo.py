"""sb3-contrib's RecurrentPPO, and with it the network that Stable-Baselines 2 had."""

from __future__ import annotations

from typing import Any, ClassVar

from sb3_contrib import RecurrentPPO as PlainRecurrentPPO
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv

from rlexp.algos.common.base import ValidatedAlgorithm, reject_reset_result
from rlexp.algos.recurrent_ppo.policies import (
    CnnLstmPolicy,
    MlpLstmPolicy,
    MultiInputLstmPolicy,
    SharedLstmPolicy,
)
from rlexp.algos.recurrent_ppo.spec import RecurrentPPOConfig
from rlexp.errors import UsageError


class RecurrentPPO(ValidatedAlgorithm, PlainRecurrentPPO):
    """PPO with an LSTM; identical to sb3-contrib's as long as the arguments below keep their defaults.

    :param policy: ``"MlpLstmPolicy"``, ``"CnnLstmPolicy"`` or ``"MultiInputLstmPolicy"``
    :param env: any
    :param before_lstm: units of layers before the LSTM; ``net_arch`` of the policy comes after it
    :param layer_norm: normalise the LSTM's layers
    :param critic_trains_lstm: let the critic's gradient into the LSTM that it shares with the actor
    :param kwargs: as in sb3-contrib
    :raises UsageError: when one of these is set and the LSTM is not shared, or observations are not vectors
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpLstmPolicy": MlpLstmPolicy,
        "CnnLstmPolicy": CnnLstmPolicy,
        "MultiInputLstmPolicy": MultiInputLstmPolicy,
    }

    config = RecurrentPPOConfig

    def __init__(
        self,
        policy: Any,
        env: GymEnv | str,
        *args: Any,
        before_lstm: list[int] | None = None,
        layer_norm: bool = False,
        critic_trains_lstm: bool = False,
        **kwargs: Any,
    ) -> None:
        if before_lstm or layer_norm or critic_trains_lstm:
            policy_kwargs = dict(kwargs.get("policy_kwargs") or {})
            if policy != "MlpLstmPolicy":
                raise UsageError(
                    f"policy: '{policy}' given, before_lstm, layer_norm and critic_trains_lstm need MlpLstmPolicy"
                )
            if not policy_kwargs.pop("shared_lstm", False) or policy_kwargs.pop("enable_critic_lstm", False):
                raise UsageError(
                    "shared_lstm, enable_critic_lstm: before_lstm, layer_norm and critic_trains_lstm are of an LSTM "
                    "that actor and critic share; set shared_lstm=true enable_critic_lstm=false"
                )
            if layer_norm and policy_kwargs.get("n_lstm_layers", 1) != 1:
                raise UsageError(
                    f"n_lstm_layers: {policy_kwargs['n_lstm_layers']} given, layer_norm supports 1 only"
                )
            own = {"before_lstm": list(before_lstm or []), "layer_norm": layer_norm}
            kwargs["policy_kwargs"] = {**policy_kwargs, **own, "critic_trains_lstm": critic_trains_lstm}
            policy = SharedLstmPolicy
        super().__init__(policy, env, *args, **kwargs)

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> Any:
        """Act; see :meth:`sb3_contrib.RecurrentPPO.predict`."""
        reject_reset_result(observation)
        return super().predict(observation, *args, **kwargs)
