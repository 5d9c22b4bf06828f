"""An algorithm and an environment from outside, as a package of one's own would bring them."""

from rlexp.registry import AlgoSpec, EnvSpec

SLOW_PPO = AlgoSpec(
    "slow_ppo", "bandit_plugin.slow_ppo:SlowPPO", "PPO that counts its updates", ("discrete",), ("vector",)
)
BANDIT = EnvSpec(
    "bandit", "bandit_plugin.bandit:make", "Two arms, one pays", "discrete", "vector", metrics=("arm",)
)
