"""Stable-Baselines3's DQN policies with a dueling head, and convolutions for any image size."""

from __future__ import annotations

from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import CombinedExtractor
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork

from rlexp.algos.common.optimizers import fused_adam
from rlexp.networks.cnn import ConvExtractor
from rlexp.networks.dueling import DuelingHead


class DirectQNetwork(QNetwork):
    """Stable-Baselines3's ``QNetwork``, which looks at the space once and not in every forward pass."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        space = self.observation_space
        self._is_box = isinstance(space, spaces.Box)
        self._scaled = self.normalize_images and self._is_box and is_image_space(space)

    def forward(self, obs: PyTorchObs) -> th.Tensor:
        """Return action values, ``(n, n_actions)``, of observations, ``(n, ...)``."""
        if self._is_box and isinstance(obs, th.Tensor):
            numbers = obs.to(th.float32, copy=self._scaled)
            if self._scaled:
                numbers.div_(255.0)  # in place: a second batch of images costs more than the division
            values: th.Tensor = self.q_net(self.features_extractor(numbers))
            return values
        return super().forward(obs)


class DuelingQNetwork(DirectQNetwork):
    """Action values from a state value and advantages; arguments as in Stable-Baselines3's ``QNetwork``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.q_net = DuelingHead(  # type: ignore[assignment]
            self.features_dim, int(self.action_space.n), self.net_arch, self.activation_fn
        )


class MlpPolicy(DQNPolicy):
    """Vector observations.

    :param dueling: see :class:`~rlexp.networks.dueling.DuelingHead`
    :param kwargs: as in Stable-Baselines3's ``DQNPolicy``
    """

    def __init__(self, *args: Any, dueling: bool = False, **kwargs: Any) -> None:
        self.dueling = dueling
        kwargs["optimizer_kwargs"] = fused_adam(
            kwargs.get("optimizer_class", th.optim.Adam), kwargs.get("optimizer_kwargs")
        )
        super().__init__(*args, **kwargs)

    def make_q_net(self) -> QNetwork:
        """Build one network."""
        kind = DuelingQNetwork if self.dueling else DirectQNetwork
        return kind(**self._update_features_extractor(self.net_args, features_extractor=None)).to(self.device)

    def set_training_mode(self, mode: bool) -> None:
        """Switch modes; the base class walks through every module even when nothing changes."""
        if mode != self.q_net.training:
            super().set_training_mode(mode)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "dueling": self.dueling}


class CnnPolicy(MlpPolicy):
    """Images, from grids of 10×10 to game screens; ``net_arch`` are the hidden layers after the convolutions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"features_extractor_class": ConvExtractor, **kwargs})


class MultiInputPolicy(MlpPolicy):
    """Observations in a dictionary."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"features_extractor_class": CombinedExtractor, **kwargs})
