"""An algorithm and an environment from outside: what rlexp must know of them before they are imported."""

from rlexp.registry import AlgoSpec, EnvSpec

SLOW_PPO = AlgoSpec(
    "slow_ppo", "bandit_plugin.slow_ppo:SlowPPO", "PPO that counts its updates", ("discrete",), ("vector",)
)
BANDIT = EnvSpec(
    "bandit", "bandit_plugin.bandit:make", "Two arms, one pays", "discrete", "vector", metrics=("arm",)
)
