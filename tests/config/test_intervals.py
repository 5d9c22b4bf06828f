"""A run whose evaluations nobody has scheduled is evaluated about twenty times."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from rlexp.config.compose import compose

_CARTPOLE = ("algo=ppo", "env=gym", "env.id=CartPole-v1", "tuned=none")
_CARDS = ("algo=dqn", "env=repeat_previous")


@pytest.mark.parametrize(
    ("arguments", "every_episodes", "every_timesteps"),
    [
        ((*_CARTPOLE, "total_timesteps=100000"), None, 5000),
        ((*_CARTPOLE, "total_timesteps=100001"), None, 5001),  # 20 evaluations, not 21
        ((*_CARTPOLE, "total_timesteps=5000"), None, 1000),  # a short run is not spent on evaluations
        ((*_CARDS, "total_episodes=1000"), 50, None),
        ((*_CARDS, "total_episodes=100"), 20, None),
        ((*_CARDS, "total_episodes=100", "evaluation.episodes=0"), 5, None),
        ((*_CARDS, "total_episodes=1000", "total_timesteps=100000"), 50, 5000),
        ((*_CARTPOLE, "total_timesteps=100000", "evaluation.every_timesteps=700"), None, 700),
        ((*_CARTPOLE, "total_timesteps=100000", "evaluation.every_timesteps=null"), None, None),
        (("algo=lcpo", "env=restaurant", "total_timesteps=50000"), 100, None),  # published
        (("algo=sac", "env=datacenter"), None, None),  # published
    ],
)
def test_intervals(
    arguments: tuple[str, ...], every_episodes: int | None, every_timesteps: int | None
) -> None:
    cfg = compose(arguments)
    expected = (every_episodes, every_timesteps)
    assert (cfg.evaluation.every_episodes, cfg.evaluation.every_timesteps) == expected
    OmegaConf.resolve(cfg)  # as `--cfg job --resolve` shows it
    assert (cfg.evaluation.every_episodes, cfg.evaluation.every_timesteps) == expected
