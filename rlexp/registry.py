"""Names to classes: known algorithms and environments, and which are compatible.

Specs name classes by strings, so that listing them imports neither torch nor gymnasium. They are found through the
entry-point groups ``rlexp.algos`` and ``rlexp.envs``: a point names an :class:`AlgoSpec` or :class:`EnvSpec`, or a
package of which every sub-package has a ``spec.py`` with ``SPECS``. Packages from outside bring their YAML through
``rlexp.conf`` (naming a package that holds ``algo/`` and ``env/``).
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from rlexp.errors import UsageError, did_you_mean

ACTION_KINDS = ("discrete", "continuous")
OBSERVATION_KINDS = ("vector", "image", "dict")


@dataclass(frozen=True)
class AlgoSpec:
    """What the runner knows about an algorithm before importing it.

    :param name: config choice, ``algo=<name>``
    :param target: ``"module:attribute"`` of the Stable-Baselines3 style class
    :param summary: one line for ``rlexp list``
    :param actions: kinds of action space that it supports
    :param observations: kinds of observation space that it supports
    :param controller: name of an environment's own reference controller that this choice runs; no training
    :param masked_target: class to use instead where the environment masks actions (``env.masks=true``)
    :param trains: False for reference policies that are only evaluated
    :param distributed: whether it can be trained with distributed actors, ``hardware=ray``
    :param config: dataclass of its settings, ``schema/algo/<name>`` for its YAML; None: the YAML names another schema
    :param unsupported: rejected features of Stable-Baselines3: ``"VecNormalize"``, ``"net_arch"`` in ``policy_kwargs``
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
    config: type | None = None


@dataclass(frozen=True)
class EnvSpec:
    """What the runner knows about an environment before building it.

    :param name: config choice, ``env=<name>``
    :param target: ``"module:function"``; called with the keys of the ``env`` config but ``name``, returns the
        environment
    :param summary: one line for ``rlexp list``
    :param actions: kind of action space; None when only the built environment can tell (``env=gym``)
    :param observations: kind of observation space; None when only the built environment can tell
    :param controllers: reference controllers that the environment provides
    :param metrics: keys of the last ``info`` of an episode to be averaged in logs and evaluations
    :param figures: what the end of a run says before the return: keys of an evaluation and how each is formatted,
        ``("power_kw_mean", "{:.1f} kW")``
    :param episode: what an episode is called in messages ("dialogue", "episode", ...)
    :param tracker: ``"module:class"`` of what records more from the infos than the ``metrics``; see
        :class:`rlexp.runs.callbacks.track.Tracker`. None: nothing does
    :param encoder: ``"module:class"`` of the features extractor that reads the environment's observations; None: the
        policy's own
    :param gymnasium_id: id under which a built-in environment is registered with gymnasium; None: not registered
    :param gymnasium_families: how ids begin of other packages' environments that this choice takes as ``env.id``
    :param config: dataclass of its settings, ``schema/env/<name>`` for its YAML; None: the YAML names another schema
    """

    name: str
    target: str
    summary: str
    actions: str | None = None
    observations: str | None = None
    controllers: tuple[str, ...] = ()
    metrics: tuple[str, ...] = field(default=())
    figures: tuple[tuple[str, str], ...] = (("success_rate", "success rate {:.1%}"),)
    episode: str = "episode"
    tracker: str | None = None
    encoder: str | None = None
    gymnasium_id: str | None = None
    gymnasium_families: tuple[str, ...] = ()
    config: type | None = None


_Spec = TypeVar("_Spec", AlgoSpec, EnvSpec)


def _discover(group: str, kind: type[_Spec]) -> dict[str, _Spec]:
    """Return what the entry points of a group name: a spec, or a package of which every sub-package has a ``spec.py``.

    Ours is such a package, found like everybody else's.

    :raises UsageError: when an entry point names something else, or a name is taken
    """
    specs: dict[str, _Spec] = {}
    for point in entry_points(group=group):
        named = point.load()
        for spec in specs_below(named) if isinstance(named, ModuleType) else [named]:
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


def specs_below(package: ModuleType) -> list[Any]:
    """Return the ``SPECS`` of every ``<package>.<name>.spec``, in alphabetical order of the packages."""
    found: list[Any] = []
    for module in pkgutil.iter_modules(package.__path__):
        # Looked for as a file: asking the import system for it would import the package, and with it torch.
        if any((Path(folder) / module.name / "spec.py").is_file() for folder in package.__path__):
            found += importlib.import_module(f"{package.__name__}.{module.name}.spec").SPECS
    return found


@cache
def algos() -> dict[str, AlgoSpec]:
    """Return every known algorithm, those of plug-in packages included.

    Algorithms that learn come first, by name, then reference policies as their specs list them.
    """
    found = _discover("rlexp.algos", AlgoSpec).values()
    learning = sorted((spec for spec in found if spec.trains), key=lambda spec: spec.name)
    return {spec.name: spec for spec in [*learning, *(spec for spec in found if not spec.trains)]}


@cache
def envs() -> dict[str, EnvSpec]:
    """Return every known environment by name, those of plug-in packages included."""
    return _discover("rlexp.envs", EnvSpec)


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


def incompatibility(
    algo: AlgoSpec, env: EnvSpec, actions: str | None, observations: str | None, masked: bool = False
) -> str | None:
    """Return one line that says why an algorithm cannot be trained on an environment; None if it can.

    :param algo: the algorithm
    :param env: the environment
    :param actions: the environment's kind of action space, None if not known yet
    :param observations: the environment's kind of observation space, None if not known yet
    :param masked: whether the environment masks actions
    """
    compatible = compatible_algos(actions, observations, env, masked)
    if algo in compatible:
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
        f"algo={algo.name} is not compatible with env={env.name}: the environment has {found}, {algo.name} needs "
        f"{needs}; compatible algorithms: {', '.join(spec.name for spec in compatible) or 'none'}"
    )


def compatible_algos(
    actions: str | None, observations: str | None, env: EnvSpec, masked: bool = False
) -> list[AlgoSpec]:
    """Return the algorithms that are compatible with an environment.

    :param actions: the environment's kind of action space, None if not known yet
    :param observations: the environment's kind of observation space, None if not known yet
    :param env: the environment
    :param masked: whether the environment masks actions
    """
    return [
        spec
        for spec in algos().values()
        if (actions is None or actions in spec.actions)
        and (observations is None or observations in spec.observations)
        and (spec.controller is None or spec.controller in env.controllers)
        and (not masked or spec.masked_target is not None)
    ]
