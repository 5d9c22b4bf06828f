"""Steps a second of the data centre: the engine, our model of it, and that alone, side by side in one process."""

from __future__ import annotations

import time

import numpy as np

from rlexp.envs.datacenter.env import DataCenterEnv
from rlexp.studies import datacenter_fidelity

_DAYS = 60


def _rate(backend: str, controller: str) -> float:
    """Return steps a second of wall-clock time under a reference controller; the engine runs in a second process."""
    env = DataCenterEnv(backend=backend, weather="helsinki", weather_noise=0.0, days=_DAYS)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (_DAYS * 96, 4)).astype(np.float32)
    began = time.perf_counter()
    for action in actions:
        env.step(action if controller == "random" else env.controller_action(controller))
    rate = len(actions) / (time.perf_counter() - began)
    env.close()
    return rate


def main() -> None:
    """Measure and print."""
    for controller in ("pi_fan", "random"):
        engine, surrogate = _rate("engine", controller), _rate("surrogate", controller)
        print(
            f"{controller:8} engine {engine:8,.0f} steps/s   surrogate {surrogate:10,.0f}   "
            f"{surrogate / engine:6.1f} x"
        )
    rates = datacenter_fidelity.speed()
    print(
        f"surrogate, processor time: model {rates['model']:,.0f} steps/s, gymnasium {rates['gymnasium']:,.0f}"
    )


if __name__ == "__main__":
    main()
