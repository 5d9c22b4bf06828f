"""Names to classes: which algorithms and environments there are, and which fit which.

Built-in entries are strings, so that listing them imports neither torch nor gymnasium. Packages from outside add
their own through the entry-point groups ``rlexp.algos`` and ``rlexp.envs`` (each naming an :class:`AlgoSpec` or
:class:`EnvSpec`) and bring their YAML through ``rlexp.conf`` (naming a package that holds ``algo/`` and ``env/``).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from rlexp.errors import UsageError, did_you_mean

ACTION_KINDS = ("discrete", "continuous")
OBSERVATION_KINDS = ("vector", "image", "dict")


@dataclass(frozen=True)
class AlgoSpec:
    """What the runner must know of an algorithm before it is imported.

    :param name: config choice, ``algo=<name>``
    :param target: ``"module:attribute"`` of the Stable-Baselines3 style class
    :param summary: one line for ``rlexp list``
    :param actions: kinds of action space it can act in
    :param observations: kinds of observation space it can read
    :param controller: name of an environment's own reference controller that this choice runs; no training
    :param masked_target: class to use instead where the environment masks actions (``env.masks=true``)
    :param trains: False for reference policies that are only measured
    :param distributed: whether actors of its own can act for it elsewhere, ``hardware=ray``
    :param unsupported: what of Stable-Baselines3 it rejects in one line: ``"VecNormalize"``, ``"net_arch"`` in
        ``policy_kwargs``
    """

    name: str
    target: str
    summary: str
    actions: tuple[str, ...]
    observations: tuple[str, ...]
    controller: str | None = None
    masked_target: str | None = None
    trains: bool = True
    distributed: bool = False
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnvSpec:
    """What the runner must know of an environment before it is built.

    :param name: config choice, ``env=<name>``
    :param target: ``"module:function"``; called with the keys of the ``env`` config but ``name``, returns the task
    :param summary: one line for ``rlexp list``
    :param actions: kind of action space; None when only the built task can tell (``env=gym``)
    :param observations: kind of observation space; None when only the built task can tell
    :param controllers: reference controllers that the task brings
    :param metrics: keys of the last ``info`` of an episode to be averaged in logs and evaluations
    :param episode: what an episode is called in messages ("dialogue", "episode", ...)
    :param periods: whether ``info["period"]`` now and then holds the means of a part of the episode (a month of a year)
    :param encoder: ``"module:class"`` of the features extractor that reads the task's observations; None: the
        policy's own
    """

    name: str
    target: str
    summary: str
    actions: str | None = None
    observations: str | None = None
    controllers: tuple[str, ...] = ()
    metrics: tuple[str, ...] = field(default=())
    episode: str = "episode"
    periods: bool = False
    encoder: str | None = None


_ALGOS = (
    AlgoSpec(
        "ppo",
        "stable_baselines3:PPO",
        "Proximal policy optimisation (Stable-Baselines3; sb3-contrib's MaskablePPO where actions are masked)",
        actions=("discrete", "continuous"),
        observations=("vector", "image", "dict"),
        masked_target="sb3_contrib:MaskablePPO",
    ),
    AlgoSpec(
        "a2c",
        "rlexp.algos.a2c:A2C",
        "Advantage actor-critic (Stable-Baselines3)",
        actions=("discrete", "continuous"),
        observations=("vector", "image", "dict"),
    ),
    AlgoSpec(
        "sac",
        "stable_baselines3:SAC",
        "Soft actor-critic (Stable-Baselines3)",
        actions=("continuous",),
        observations=("vector", "image", "dict"),
    ),
    AlgoSpec(
        "recurrent_ppo",
        "rlexp.algos.recurrent_ppo:RecurrentPPO",
        "PPO with an LSTM (sb3-contrib), layer-normalised on request",
        actions=("discrete", "continuous"),
        observations=("vector", "image", "dict"),
    ),
    AlgoSpec(
        "lcpo",
        "rlexp.algos.lcpo:LCPO",
        "Loop-clipping policy optimisation (Wu & Rasmussen 2021)",
        actions=("discrete",),
        observations=("vector",),
        masked_target="rlexp.algos.lcpo:MaskableLCPO",
    ),
    AlgoSpec(
        "tam",
        "rlexp.algos.tam:TAM",
        "PPO with a trainable action mask (Wu, Tseng & Rasmussen 2020)",
        actions=("discrete",),
        observations=("vector",),
    ),
    AlgoSpec(
        "acer",
        "rlexp.algos.acer:ACER",
        "Actor-critic with experience replay (Wang et al. 2017)",
        actions=("discrete", "continuous"),
        observations=("vector", "image"),
        masked_target="rlexp.algos.acer:MaskableACER",
    ),
    AlgoSpec(
        "dqn",
        "rlexp.algos.dqn:DQN",
        "Deep Q-network: double, dueling, n-step; uniform, proportional or rank-based replay",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
    ),
    AlgoSpec(
        "sac_lstm",
        "rlexp.algos.sac_lstm:SACLSTM",
        "Soft actor-critic with LSTMs, for tasks that must be remembered",
        actions=("continuous",),
        observations=("vector",),
        unsupported=("net_arch",),
    ),
    AlgoSpec(
        "dqfd",
        "rlexp.algos.dqfd:DQfD",
        "Deep Q-learning from demonstrations (Hester et al. 2018)",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
    ),
    AlgoSpec(
        "r2d2",
        "rlexp.algos.r2d2:R2D2",
        "Recurrent experience replay: LSTM, stored states, burn-in (Kapturowski et al. 2019)",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
        distributed=True,
        unsupported=("VecNormalize",),
    ),
    AlgoSpec(
        "r2d3",
        "rlexp.algos.r2d3:R2D3",
        "R2D2 with demonstrations in a replay of their own (Paine et al. 2019)",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
        distributed=True,
        unsupported=("VecNormalize",),
    ),
    AlgoSpec(
        "bc",
        "rlexp.algos.bc:BC",
        "Behaviour cloning, with or without a memory",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
    ),
    AlgoSpec(
        "slac",
        "rlexp.algos.slac:SLAC",
        "Stochastic latent actor-critic (Lee et al. 2020)",
        actions=("continuous",),
        observations=("vector",),
    ),
    AlgoSpec(
        "handcrafted",
        "rlexp.algos.controllers:Controller",
        "The task's own rule-based policy; nothing is learned",
        actions=ACTION_KINDS,
        observations=OBSERVATION_KINDS,
        controller="handcrafted",
        masked_target="rlexp.algos.controllers:Controller",
        trains=False,
    ),
    AlgoSpec(
        "builtin",
        "rlexp.algos.controllers:Controller",
        "The plant's own controllers (datacenter); nothing is learned",
        actions=ACTION_KINDS,
        observations=OBSERVATION_KINDS,
        controller="builtin",
        trains=False,
    ),
    AlgoSpec(
        "constant",
        "rlexp.algos.controllers:Controller",
        "The same setpoints all year (datacenter); nothing is learned",
        actions=ACTION_KINDS,
        observations=OBSERVATION_KINDS,
        controller="constant",
        trains=False,
    ),
    AlgoSpec(
        "pi_fan",
        "rlexp.algos.controllers:Controller",
        "Coldest supply air, PI control of the fans (datacenter); nothing is learned",
        actions=ACTION_KINDS,
        observations=OBSERVATION_KINDS,
        controller="pi_fan",
        trains=False,
    ),
    AlgoSpec(
        "schedule_aware",
        "rlexp.algos.controllers:Controller",
        "The same with the server load known beforehand: what memory can gain (datacenter); nothing is learned",
        actions=ACTION_KINDS,
        observations=OBSERVATION_KINDS,
        controller="schedule_aware",
        trains=False,
    ),
    AlgoSpec(
        "random",
        "rlexp.algos.controllers:RandomPolicy",
        "Uniform over the enabled actions; nothing is learned",
        actions=ACTION_KINDS,
        observations=OBSERVATION_KINDS,
        masked_target="rlexp.algos.controllers:RandomPolicy",
        trains=False,
    ),
)

_ENVS = (
    EnvSpec(
        "restaurant",
        "rlexp.envs.restaurant.task:make",
        "Cambridge-restaurants dialogue task (268 state inputs, 16 summary actions)",
        actions="discrete",
        observations="vector",
        controllers=("handcrafted",),
        metrics=("turns", "system_turns", "loops"),
        episode="dialogue",
    ),
    EnvSpec(
        "blind_cliffwalk",
        "rlexp.envs.blind_cliffwalk.env:make",
        "Chain of states with one right action each; reward only at its end",
        actions="discrete",
        observations="vector",
    ),
    EnvSpec(
        "minatar",
        "rlexp.envs.minatar:make",
        "MinAtar, five Atari games on a 10x10 grid: env.game=breakout",
        actions="discrete",
        observations="image",
    ),
    EnvSpec(
        "atari",
        "rlexp.envs.atari:make",
        "Atari games, 84x84x4: env=pong, qbert, space_invaders, or env.id=",
        actions="discrete",
        observations="image",
    ),
    EnvSpec(
        "pendulum_p",
        "rlexp.envs.partial.tasks:pendulum",
        "Pendulum, only the angle seen",
        actions="continuous",
        observations="vector",
    ),
    EnvSpec(
        "pendulum_v",
        "rlexp.envs.partial.tasks:pendulum",
        "Pendulum, only the angular velocity seen",
        actions="continuous",
        observations="vector",
    ),
    EnvSpec(
        "cartpole_p",
        "rlexp.envs.partial.tasks:cartpole",
        "CartPole, only positions seen; continuous force, or env.actions=discrete",
        observations="vector",
    ),
    EnvSpec(
        "cartpole_v",
        "rlexp.envs.partial.tasks:cartpole",
        "CartPole, only velocities seen; continuous force, or env.actions=discrete",
        observations="vector",
    ),
    EnvSpec(
        "minigrid",
        "rlexp.envs.minigrid.env:make",
        "MiniGrid and BabyAI: env=unlock_pickup, blocked_unlock_pickup, key_corridor, unlock_local, memory, or env.id=",
        actions="discrete",
        observations="dict",
        controllers=("handcrafted",),
        encoder="rlexp.networks.grid:GridExtractor",
    ),
    EnvSpec(
        "repeat_previous",
        "rlexp.envs.cards:repeat_previous",
        "Say the suit of the card seen k - 1 steps ago (POPGym's RepeatPrevious)",
        actions="discrete",
        observations="vector",
        metrics=("accuracy",),
    ),
    EnvSpec(
        "autoencode",
        "rlexp.envs.cards:autoencode",
        "See a deck of cards, then say their suits backwards (POPGym's Autoencode)",
        actions="discrete",
        observations="vector",
        metrics=("accuracy",),
    ),
    EnvSpec(
        "datacenter",
        "rlexp.envs.datacenter.env:make",
        "Two-zone data-centre cooling on EnergyPlus, a year an episode; server load hidden",
        actions="continuous",
        observations="vector",
        controllers=("builtin", "constant", "pi_fan", "schedule_aware"),
        metrics=("power_kw", "servers_kw", "comfort", "comfort_west", "comfort_east", "step_reward"),
        episode="year",
        periods=True,
    ),
    EnvSpec("gym", "rlexp.envs.gym:make", "Any registered gymnasium environment: env.id=CartPole-v1"),
)

_Spec = TypeVar("_Spec", AlgoSpec, EnvSpec)


def _with_plugins(group: str, kind: type[_Spec], built_in: tuple[_Spec, ...]) -> dict[str, _Spec]:
    specs = {spec.name: spec for spec in built_in}
    for point in entry_points(group=group):
        spec = point.load()
        if not isinstance(spec, kind):
            raise UsageError(
                f"entry point {group}:{point.name} must name an {kind.__name__}, found {type(spec).__name__}"
            )
        if spec.name in specs:
            raise UsageError(
                f"entry point {group}:{point.name} brings '{spec.name}', a name that is already taken"
            )
        specs[spec.name] = spec
    return specs


@cache
def algos() -> dict[str, AlgoSpec]:
    """Return every known algorithm by name, those of plug-in packages included."""
    return _with_plugins("rlexp.algos", AlgoSpec, _ALGOS)


@cache
def envs() -> dict[str, EnvSpec]:
    """Return every known environment by name, those of plug-in packages included."""
    return _with_plugins("rlexp.envs", EnvSpec, _ENVS)


def config_packages() -> list[str]:
    """Return the packages from outside that hold config groups (entry-point group ``rlexp.conf``)."""
    return [point.value for point in entry_points(group="rlexp.conf")]


def algo(name: str) -> AlgoSpec:
    """:raises UsageError: when no algorithm has this name"""
    return _known("algo", name, algos())


def env(name: str) -> EnvSpec:
    """:raises UsageError: when no environment has this name"""
    return _known("env", name, envs())


def _known(kind: str, name: str, specs: dict[str, _Spec]) -> _Spec:
    if name not in specs:
        raise UsageError(
            f"{kind}.name: no {kind} is called '{name}'; there are {', '.join(specs)}{did_you_mean(name, specs)}"
        )
    return specs[name]


def load(target: str) -> Any:
    """Import ``"module:attribute"``."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def misfit(
    algo: AlgoSpec, env: EnvSpec, actions: str | None, observations: str | None, masked: bool = False
) -> str | None:
    """Say in one line why an algorithm cannot learn a task, naming what would fit; None when it can.

    :param actions: the task's kind of action space, None when not known yet
    :param observations: the task's kind of observation space, None when not known yet
    :param masked: whether the task masks actions from turn to turn
    """
    fits = fitting(actions, observations, env, masked)
    if algo in fits:
        return None
    if algo.controller is not None and algo.controller not in env.controllers:
        found, needs = "no controller of its own of that name", f"'{algo.controller}'"
    elif actions is not None and actions not in algo.actions:
        found, needs = f"{actions} actions", f"{' or '.join(algo.actions)} ones"
    elif observations is not None and observations not in algo.observations:
        found, needs = f"{observations} observations", f"{' or '.join(algo.observations)} ones"
    else:
        found, needs = "action masks (env.masks=true)", "env.masks=false"
    return (
        f"algo={algo.name} does not fit env={env.name}: the task has {found}, {algo.name} needs {needs}; "
        f"algorithms that fit: {', '.join(spec.name for spec in fits) or 'none'}"
    )


def fitting(
    actions: str | None, observations: str | None, env: EnvSpec, masked: bool = False
) -> list[AlgoSpec]:
    """Return the algorithms that fit a task."""
    return [
        spec
        for spec in algos().values()
        if (actions is None or actions in spec.actions)
        and (observations is None or observations in spec.observations)
        and (spec.controller is None or spec.controller in env.controllers)
        and (not masked or spec.masked_target is not None)
    ]
