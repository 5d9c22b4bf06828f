"""``rlexp demos env=... expert=bot|RUN episodes=...``: record whole episodes of somebody who can into one file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp import record, registry
from rlexp.commands import compose as composing
from rlexp.commands.arguments import Parser
from rlexp.commands.evaluate import load_config, load_trained
from rlexp.commands.preflight import check_task
from rlexp.config import paths
from rlexp.config.task import task_options
from rlexp.errors import UsageError, did_you_mean
from rlexp.imports import allow_current_folder

FOLDER = "demonstrations"
_BOT = "handcrafted"
_SIDE_BY_SIDE = 16  # copies of the task
_QUIET_SECONDS = 15.0
_USAGE = "rlexp demos env=unlock_pickup expert=bot episodes=100"


@dataclass(frozen=True)
class Options:
    """What can be told, beside the task."""

    expert: str
    episodes: int = 100
    seed: int = 0
    deterministic: bool = True
    force: bool = False
    output: str | None = None
    output_dir: str = "outputs"


_KINDS: dict[str, type] = {"episodes": int, "seed": int, "deterministic": bool, "force": bool}
_WORDS = tuple(Options.__dataclass_fields__)


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    keys = ", ".join(f"{name}=" for name in _WORDS)
    parsed = Parser(
        "demos",
        "Record whole episodes of a task's own bot or of a trained run into one file.",
        f"  {_USAGE}\n  rlexp demos expert=RUN episodes=100 deterministic=false output=mine.npz",
    )
    parsed.add_argument("words", nargs="*", metavar="key=value", help=f"env=, env.*, {keys}")
    return parsed


def main(argv: list[str]) -> int:
    """Record and write one file."""
    options, task_words = _parse(parser().parse(argv).words)
    bot = options.expert == "bot"
    cfg = _task_of_bot(task_words) if bot else _task_of_run(options, task_words)
    path = _path(options, cfg, task_words)
    if path.exists() and not options.force:
        raise UsageError(f"output: {path} is there already; force=true replaces it")
    _check_writable(path)
    try:
        line = _record(options, cfg, path, argv)
    except KeyboardInterrupt:
        print("stopped at once; nothing was written", file=sys.stderr)
        return 130
    print(f"{line}\n{path}")
    return 0


# ------------------------------------------------------------------------------------------------------------- words


def _parse(argv: list[str]) -> tuple[Options, list[str]]:
    given: dict[str, Any] = {}
    task_words = []
    for word in argv:
        key, equals, text = word.partition("=")
        if key.lstrip("+").split(".")[0].split("/")[0] == "env" and equals:
            task_words.append(word)
        elif key not in _WORDS or not equals:
            raise UsageError(
                f"{key}: not an option of demos; env.* and {', '.join(_WORDS)} are{did_you_mean(key, _WORDS)}"
            )
        else:
            given[key] = _value(key, text)
    if not given.get("expert"):
        raise UsageError(f"expert: not given; bot, or the folder of a trained run, e.g. {_USAGE}")
    options = Options(**given)
    for key, least in (("episodes", 1), ("seed", 0)):
        if getattr(options, key) < least:
            raise UsageError(f"{key}: {getattr(options, key)} given, must be at least {least}")
    return options, task_words


def _value(key: str, text: str) -> Any:
    kind = _KINDS.get(key, str)
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{key}: '{text}' given, allowed are true, false")
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError as error:
        raise UsageError(f"{key}: '{text}' given, a whole number is needed") from error


def _composed(task_words: list[str]) -> DictConfig:
    cfg = composing.compose(["algo=random", "total_timesteps=1", *task_words])
    check_task(cfg)
    return cfg


def _task_of_bot(task_words: list[str]) -> DictConfig:
    if not any(word.startswith("env=") for word in task_words):
        raise UsageError(f"env: not given; name the task, e.g. {_USAGE}")
    cfg = _composed(task_words)
    env = registry.load(registry.env(cfg.env.name).target)(**task_options(cfg))
    controllers = tuple(getattr(env.unwrapped, "controllers", ()))
    env.close()
    if _BOT not in controllers:
        raise UsageError(
            f"expert: bot given, {paths.env_label(cfg)} brings none; the folder of a trained run is needed"
        )
    return cfg


def _task_of_run(options: Options, task_words: list[str]) -> DictConfig:
    folder = Path(options.expert)
    if not folder.is_dir():
        raise UsageError(f"expert: '{options.expert}' given; bot, or the folder of a trained run, is needed")
    record.read_record(folder)
    cfg = load_config(folder)
    allow_current_folder(task_words)
    if registry.algo(cfg.algo.name).controller is not None:
        raise UsageError(
            f"expert: the run of {cfg.algo.name} has no policy of its own; expert=bot records the same"
        )
    if task_words:
        task = _composed(task_words)
        if paths.env_label(task) != paths.env_label(cfg):
            raise UsageError(
                f"env: {paths.env_label(task)} given, the expert was trained on {paths.env_label(cfg)}"
            )
        cfg.env = task.env
    cfg.seed = 0  # of weights that are replaced
    return cfg


def _path(options: Options, cfg: DictConfig, task_words: list[str]) -> Path:
    if options.output is not None:
        path = Path(options.output)
        if path.suffix != ".npz":
            raise UsageError(f"output: '{options.output}' given, the name must end in .npz")
        return path
    choices = [word.partition("=")[2] for word in task_words if word.startswith("env=")]
    named = any(word.startswith(("env.id=", "env.game=")) for word in task_words)
    task = choices[0] if choices and not named else paths.env_label(cfg)
    expert = "bot" if options.expert == "bot" else str(cfg.algo.name)
    return Path(options.output_dir) / FOLDER / f"{task}-{expert}-{options.episodes}.npz"


def _check_writable(path: Path) -> None:
    parent = path.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise UsageError(f"output: {parent} is not a folder")


# --------------------------------------------------------------------------------------------------------- recording


def _record(options: Options, cfg: DictConfig, path: Path, argv: list[str]) -> str:
    from rlexp import recording
    from rlexp.buffers import demonstrations as demos
    from rlexp.factories import is_masked, make_task

    expert: dict[str, Any]
    model = None
    if options.expert == "bot":
        choose = recording.by_controller(_BOT)
        expert = {"kind": "bot"}
    else:
        folder = Path(options.expert)
        model = load_trained(cfg, folder)
        choose = recording.by_model(model, options.deterministic, is_masked(cfg))
        expert = {
            "kind": "run",
            "algo": str(cfg.algo.name),
            "run": "/".join(folder.resolve().parts[-4:]),
            "deterministic": options.deterministic,
        }
    envs = [make_task(cfg, index=index) for index in range(min(_SIDE_BY_SIDE, options.episodes))]
    seeds = recording.episode_seeds(options.seed, options.episodes)
    episodes, infos = recording.record(envs, choose, seeds, options.seed, _progress(options.episodes), model)
    provenance = {
        "task": paths.env_label(cfg),
        "env": OmegaConf.to_container(cfg.env, resolve=True),
        "expert": expert,
        "command": " ".join(["rlexp demos", *(word for word in argv if not word.startswith("force="))]),
        "seed": options.seed,
        "episode_seeds": [str(seed) for seed in seeds],  # JSON readers may round numbers of that size
        "versions": record.versions(),
        **_outcome(episodes, infos),
    }
    found = demos.Demonstrations(tuple(episodes), envs[0].observation_space, envs[0].action_space, provenance)
    for env in envs:
        env.close()
    demos.write(path, found)
    return summary(provenance)


def _outcome(episodes: list[Any], infos: list[dict[str, Any]]) -> dict[str, Any]:
    import numpy as np

    returns = [float(episode.rewards.sum(dtype=np.float64)) for episode in episodes]
    outcome = {
        "episodes": len(episodes),
        "steps": sum(len(episode) for episode in episodes),
        "return_mean": float(np.mean(returns)),
        "return_std": float(np.std(returns)),
        "return_min": min(returns),
    }
    successes = [float(info["is_success"]) for info in infos if "is_success" in info]
    if successes:
        outcome["success_rate"] = float(np.mean(successes))
    return outcome


def summary(provenance: dict[str, Any]) -> str:
    """Return what was recorded in words."""
    success = f", success {provenance['success_rate']:.1%}" if "success_rate" in provenance else ""
    return (
        f"{provenance['episodes']} episodes, {provenance['steps']:,} steps, "
        f"return {provenance['return_mean']:.2f} ± {provenance['return_std']:.2f}{success}"
    )


def _progress(total: int) -> Callable[[int, int], None]:
    shown_at = time.monotonic()
    terminal = sys.stdout.isatty()

    def show(episodes: int, steps: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if not terminal and now - shown_at >= _QUIET_SECONDS:
            shown_at = now
            print(f"{episodes}/{total} episodes, {steps:,} steps", flush=True)
        elif terminal and (episodes == total or now - shown_at >= 0.25):
            shown_at = now
            end = "\n" if episodes == total else ""
            print(f"\r{episodes}/{total} episodes, {steps:,} steps", end=end, flush=True)

    return show
