"""Reference policies: the controllers that environments provide, and chance."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.config.fields import required
from rlexp.registry import ACTION_KINDS, OBSERVATION_KINDS, AlgoSpec

_CONTROLLER = "rlexp.algos.controllers.controllers:Controller"
_RANDOM = "rlexp.algos.controllers.controllers:RandomPolicy"


@dataclass
class ControllerConfig:
    """A policy that learns nothing."""

    name: str = required()


def _reference(
    name: str, target: str, summary: str, controller: str | None = None, masked: bool = False
) -> AlgoSpec:
    return AlgoSpec(
        name,
        target,
        f"{summary}; nothing is learned",
        actions=ACTION_KINDS,
        observations=OBSERVATION_KINDS,
        controller=controller,
        masked_target=target if masked else None,
        trains=False,
        config=ControllerConfig,
    )


SPECS = (
    _reference(
        "handcrafted", _CONTROLLER, "The environment's own rule-based policy", "handcrafted", masked=True
    ),
    _reference("builtin", _CONTROLLER, "The plant's own controllers (datacenter)", "builtin"),
    _reference("constant", _CONTROLLER, "The same setpoints all year (datacenter)", "constant"),
    _reference("pi_fan", _CONTROLLER, "Coldest supply air, PI control of the fans (datacenter)", "pi_fan"),
    _reference(
        "schedule_aware",
        _CONTROLLER,
        "The same with the server load known in advance: the most that memory can gain (datacenter)",
        "schedule_aware",
    ),
    _reference("random", _RANDOM, "Uniform over the enabled actions", masked=True),
)
