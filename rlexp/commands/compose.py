"""Composing configs with Hydra: the one place that knows the search path, the schemas and our resolver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hydra import version
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from rlexp import registry
from rlexp.config import paths
from rlexp.config.check import check, check_interpolations
from rlexp.config.schema import SCHEMAS
from rlexp.errors import UsageError

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra

CONFIG_NAME = "config"


def _register() -> None:
    store = ConfigStore.instance()
    for path, schema in SCHEMAS.items():
        group, _, name = path.rpartition("/")
        store.store(group=group, name=name, node=schema, provider="rlexp")
    # Importing this module is enough for launcher workers, which resolve the folder of their job themselves.
    OmegaConf.register_new_resolver(
        "rlexp_run_dir", lambda *, _root_: str(paths.run_dir(_root_)), replace=True
    )


_register()


@contextmanager
def hydra_app(config_dirs: Iterable[str] = ()) -> Iterator[Hydra]:
    """Give a Hydra instance that finds our configs, those of plug-in packages and those of extra folders.

    :param config_dirs: folders from ``--config-dir``, looked into first
    :raises UsageError: when such a folder does not exist
    """
    from hydra._internal.hydra import Hydra
    from hydra.core.global_hydra import GlobalHydra

    search_path = create_config_search_path(str(paths.conf_dir()))
    assert isinstance(search_path, ConfigSearchPathImpl)
    for folder in config_dirs:
        if not Path(folder).is_dir():
            raise UsageError(f"--config-dir: no such folder: {folder}")
        search_path.prepend("command-line", f"file://{Path(folder).absolute()}")
    for package in registry.config_packages():
        # Structured configs must stay the last source.
        search_path.prepend("rlexp-plugin", f"pkg://{package}", SearchPathQuery(provider="schema"))
    version.setbase("1.3")
    GlobalHydra.instance().clear()
    hydra = Hydra.create_main_hydra2("rlexp", search_path)
    try:
        yield hydra
    finally:
        GlobalHydra.instance().clear()


def compose_with(hydra: Hydra, overrides: Sequence[str]) -> DictConfig:
    """Compose one run's config, Hydra's own node included, without checking it."""
    from hydra.types import RunMode

    cfg: DictConfig = hydra.compose_config(
        config_name=CONFIG_NAME, overrides=list(overrides), run_mode=RunMode.RUN, with_log_configuration=False
    )
    return cfg


def compose(overrides: Sequence[str], config_dirs: Iterable[str] = ()) -> DictConfig:
    """Compose and check one run's config from what a person would type.

    :raises UsageError: in one line, when the words cannot be run
    """
    from rlexp.commands.diagnose import check_choices, explain

    with hydra_app(config_dirs) as hydra:
        try:
            cfg = compose_with(hydra, overrides)
        except Exception as error:
            raise explain(error, hydra, overrides) from error
        check_choices(hydra, overrides)
    return checked(cfg)


def checked(cfg: DictConfig) -> DictConfig:
    """Check a composed config in every way that needs nothing to be built.

    :return: the run's config, without Hydra's own node
    :raises UsageError: in one line
    """
    cfg = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    check_interpolations(cfg)
    check(cfg)
    algo, env = registry.algo(cfg.algo.name), registry.env(cfg.env.name)
    refusal = registry.misfit(algo, env, env.actions, env.observations, bool(cfg.env.get("masks", False)))
    if refusal:
        raise UsageError(refusal)
    return cfg
