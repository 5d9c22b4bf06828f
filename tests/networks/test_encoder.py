"""An environment that says what reads its observations is read by just that, whatever algorithm learns it."""

from __future__ import annotations

import pytest
import torch as th

from rlexp.config.compose import compose
from rlexp.networks.minigrid import MiniGridExtractor
from rlexp.runs.factories import make_model, make_training_env

FEW = {
    "ppo": ("algo.n_steps=8", "algo.batch_size=8"),
    "recurrent_ppo": ("algo.n_steps=8", "algo.batch_size=8"),
    "dqn": ("algo.buffer_size=50",),
    "r2d2": ("algo.buffer_size=200",),
}


@pytest.mark.parametrize("algo", FEW)
def test_minigrid_is_read_by_its_own_extractor(algo: str) -> None:
    cfg = compose([f"algo={algo}", "env=unlock_pickup", "total_timesteps=10", *FEW[algo]])
    env = make_training_env(cfg)
    model = make_model(cfg, env)
    found = [module for module in model.policy.modules() if isinstance(module, MiniGridExtractor)]
    assert found, model.policy
    before = [parameter.detach().clone() for parameter in found[0].parameters()]
    if algo == "ppo":
        model.learn(16)
        changed = [not th.equal(a, b) for a, b in zip(before, found[0].parameters(), strict=True)]
        assert sum(changed) >= len(changed) - 1, "it learns"
    env.close()


def test_other_environments_keep_their_extractor() -> None:
    cfg = compose(["algo=ppo", "env=repeat_previous", "total_timesteps=10"])
    env = make_training_env(cfg)
    assert not any(isinstance(module, MiniGridExtractor) for module in make_model(cfg, env).policy.modules())
    env.close()
