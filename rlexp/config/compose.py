"""From overrides to the checked config of one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omegaconf import DictConfig, OmegaConf

from rlexp import registry
from rlexp.config.check import check, check_interpolations
from rlexp.config.diagnose import check_added, check_choices, explain
from rlexp.config.hydra_app import HydraApp, hydra_app
from rlexp.config.natural import translate
from rlexp.errors import UsageError


def compose(overrides: Sequence[str], config_dirs: Iterable[str] = ()) -> DictConfig:
    """Compose and check one run's config.

    :param overrides: as on the command line
    :param config_dirs: folders of further configs
    :raises UsageError: in one line, when they do not make a run
    """
    with hydra_app(config_dirs) as app:
        return checked(explained(app, translate(app, overrides)))


def explained(app: HydraApp, overrides: Sequence[str]) -> DictConfig:
    """Compose one run's config, Hydra's own node included.

    :raises UsageError: naming the override that cannot be composed
    """
    if (added := check_added(app, overrides)) is not None:
        raise added
    try:
        cfg = app.compose(overrides)
    except Exception as error:  # Hydra, OmegaConf and resolvers raise whatever they like
        raise explain(error, app, overrides) from error
    check_choices(app, overrides)
    return cfg


def checked(cfg: DictConfig) -> DictConfig:
    """Check a composed config in every way that needs nothing to be built.

    :return: the run's config, without Hydra's own node
    :raises UsageError: in one line
    """
    cfg = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    check_interpolations(cfg)
    check(cfg)
    algo, env = registry.algo(cfg.algo.name), registry.env(cfg.env.name)
    problem = registry.incompatibility(
        algo, env, env.actions, env.observations, bool(cfg.env.get("masks", False))
    )
    if problem:
        raise UsageError(problem)
    return cfg
