"""Hydra: the search path, the schemas, our resolvers, and every use of what Hydra keeps internal."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import version
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.config_store import ConfigStore
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from rlexp import registry
from rlexp.config import paths
from rlexp.config.intervals import interval
from rlexp.config.schema import schemas
from rlexp.config.shipped import conf_dir
from rlexp.errors import UsageError, first_line

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra
    from hydra.plugins.launcher import Launcher

CONFIG_NAME = "config"

TaskFunction = Callable[[DictConfig], None]  # trains one run


def _register() -> None:
    store = ConfigStore.instance()
    for path, schema in schemas().items():
        group, _, name = path.rpartition("/")
        store.store(group=group, name=name, node=schema, provider="rlexp")
    # Importing this module is enough for launcher workers, which resolve the folder of their job themselves.
    OmegaConf.register_new_resolver(
        "rlexp_run_dir", lambda *, _root_: str(paths.run_dir(_root_)), replace=True
    )
    OmegaConf.register_new_resolver("rlexp_interval", interval, replace=True)


_register()


@contextmanager
def hydra_app(config_dirs: Iterable[str] = ()) -> Iterator[HydraApp]:
    """Open Hydra with our configs, those of plug-in packages and those of extra folders.

    :param config_dirs: folders from ``--config-dir``, which take precedence
    :raises UsageError: when such a folder does not exist
    """
    from hydra._internal.hydra import Hydra
    from hydra.core.global_hydra import GlobalHydra

    search_path = create_config_search_path(str(conf_dir()))
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
    try:
        yield HydraApp(Hydra.create_main_hydra2("rlexp", search_path))
    finally:
        GlobalHydra.instance().clear()


def parse(text: str) -> Override:
    """Parse one override, ``key=value``.

    :raises UsageError: when it is not an override
    """
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException as error:
        reason = first_line(error)
        raise UsageError(
            f"{text}: cannot be read ({reason}); write key=value, quoted where the shell needs it"
        ) from error


def origin() -> dict[str, Any]:
    """Return the overrides and choices behind the job that is running now."""
    from hydra.core.hydra_config import HydraConfig

    hydra = HydraConfig.get()
    choices = {
        str(group): option
        for group, option in hydra.runtime.choices.items()
        if not str(group).startswith("hydra/")
    }
    return {"overrides": list(hydra.overrides.task), "choices": choices}


def sweep_dir() -> Path:
    """Return the folder of the multirun to which the job belongs that is running now."""
    from hydra.core.hydra_config import HydraConfig

    return Path(HydraConfig.get().sweep.dir)


class HydraApp:
    """Hydra's application around the configs of rlexp; see :func:`hydra_app`."""

    def __init__(self, hydra: Hydra) -> None:
        self._hydra = hydra
        self._loader: Any = hydra.config_loader  # its interface hides the repository of what has been read

    def compose(self, overrides: Sequence[str], multirun: bool = False) -> DictConfig:
        """Compose one run's config, Hydra's own node included, without checking it.

        :param multirun: compose what Hydra's launchers read
        """
        from hydra.types import RunMode

        cfg: DictConfig = self._hydra.compose_config(
            config_name=CONFIG_NAME,
            overrides=list(overrides),
            run_mode=RunMode.MULTIRUN if multirun else RunMode.RUN,
            with_log_configuration=False,
        )
        return cfg

    def is_group(self, name: str) -> bool:
        """Return whether this is a config group, as ``algo`` and ``env/benchmark`` are."""
        return not name.startswith("schema") and any(
            source.is_group(name) for source in self._loader.get_sources()
        )

    def options(self, group: str) -> list[str]:
        """Return the options of a config group."""
        options = self._loader.repository.get_group_options(group, ObjectType.CONFIG)
        return sorted(option for option in options if not option.startswith("_"))

    def groups(self, group: str) -> list[str]:
        """Return the groups in a config group."""
        return sorted(self._loader.repository.get_group_options(group, ObjectType.GROUP))

    def parse(self, text: str) -> Override:
        """Parse one override whose values can be enumerated, ``algo=glob(r2*)`` included.

        :raises UsageError: when it is not an override
        """
        override = parse(text)
        override.config_loader = self._loader
        return override

    def print_config(self, cfg: DictConfig, part: str, package: str | None, resolve: bool) -> None:
        """Print a composed config as YAML.

        :param part: ``"job"``, ``"hydra"`` or ``"all"``
        :param package: key of the node to be printed, e.g. ``"algo"``; None: all of it
        :param resolve: replace interpolations by their values
        """
        from hydra.core.hydra_config import HydraConfig

        HydraConfig.instance().set_config(cfg)  # which `${hydra:...}` refers to
        OmegaConf.set_readonly(cfg.hydra, None)
        shown: Any = self._hydra.get_sanitized_cfg(cfg, part)
        if package not in (None, "_global_"):
            print(f"# @package {package}")
            shown = OmegaConf.select(shown, str(package))
        if not OmegaConf.is_config(shown):
            print(shown)
            return
        if resolve:
            OmegaConf.resolve(shown)
        print(OmegaConf.to_yaml(shown), end="")

    def print_info(self, kind: str, overrides: Sequence[str]) -> None:
        """Print what Hydra knows: ``"defaults"``, ``"searchpath"``, ..."""
        self._hydra.show_info(kind, CONFIG_NAME, list(overrides))

    def print_help(self, parser: ArgumentParser, args: Any) -> None:
        """Print Hydra's own help.

        :param parser: of the command
        :param args: what it has parsed, without overrides
        """
        self._hydra.hydra_help(CONFIG_NAME, parser, args)

    def complete(self, request: str) -> None:
        """Install or remove tab completion, or answer a query of the shell: ``"install=bash"``."""
        self._hydra.shell_completion(CONFIG_NAME, [request])

    def run(self, overrides: Sequence[str], task: TaskFunction) -> None:
        """Run one job in this process."""
        self._hydra.run(CONFIG_NAME, task, [*overrides, "hydra.mode=RUN"], with_log_configuration=False)

    def launcher(self, cfg: DictConfig, task: TaskFunction) -> Launcher:
        """Return the launcher that a config names.

        :param cfg: composed for a multirun
        :param task: called for every run, in whatever process the launcher starts
        """
        from hydra._internal.callbacks import Callbacks
        from hydra.core.plugins import Plugins
        from hydra.types import HydraContext

        context = HydraContext(config_loader=self._loader, callbacks=Callbacks(cfg))
        return Plugins.instance().instantiate_launcher(hydra_context=context, task_function=task, config=cfg)
