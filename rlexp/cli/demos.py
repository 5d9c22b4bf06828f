"""``rlexp demos env=... expert=bot|RUN episodes=...``: record whole episodes of somebody who can."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp import registry
from rlexp.cli import catalogue
from rlexp.cli.arguments import Parser, truth, whole
from rlexp.config import compose as composing
from rlexp.config import paths
from rlexp.config.env_arguments import env_arguments
from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.runs.loading import load_config, load_trained
from rlexp.runs.preflight import check_env, check_writable
from rlexp.system import terminal
from rlexp.system.imports import allow_current_folder

_BOT = "handcrafted"
_ENVIRONMENTS = 16  # that are played in lockstep
_EXAMPLE = "rlexp demos env=unlock_pickup expert=bot episodes=100"


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "demos",
        "expert=bot|RUN [key=value ...]",
        "Record whole episodes of an environment's own bot or of a trained run: in one small file, or as a Minari\n"
        "dataset. algo.demonstrations takes either, and the Minari datasets of other people.",
        f"  {_EXAMPLE}\n  rlexp demos expert=RUN episodes=100 deterministic=false output=mine.npz\n"
        "  rlexp demos expert=RUN episodes=100 output=datasets/mine-v0",
    )
    parsed.add_setting("expert", "the environment's bot, or the folder of a trained run", value="bot|RUN")
    parsed.add_setting("episodes", "how many", type=whole(1), default=100)
    parsed.add_setting("seed", "of the episodes and of sampled actions", type=whole(0), default=0)
    parsed.add_setting(
        "deterministic", "whether a trained policy takes its best action or samples", type=truth, default=True
    )
    parsed.add_setting("force", "replace demonstrations that are there", type=truth, default=False)
    parsed.add_setting(
        "output",
        "a file, or the folder of a Minari dataset (default: a file named after environment, expert and number)",
        value="FILE.npz|FOLDER",
    )
    parsed.add_setting("output_dir", "the file goes into its demonstrations/", default="outputs")
    parsed.add_overrides("the environment (default: that of the run)", "env")
    return parsed


def main(argv: list[str]) -> int:
    """Record and write demonstrations."""
    args = parser().parse(argv)
    from rlexp.demonstrations import storage

    if not args.expert:
        raise UsageError(f"expert: not given; bot, or the folder of a trained run, e.g. {_EXAMPLE}")
    cfg = _bot_config(args.overrides) if args.expert == "bot" else _run_config(args.expert, args.overrides)
    path = _path(args, cfg)
    if "\0" in path.name:
        raise UsageError("output: a path cannot hold a NUL character")
    storage.check_target(path, args.force)
    check_writable(path.parent, "output")
    try:
        line = _record(args, cfg, path, argv)
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return 130
    print(f"{line}\n{path}")
    return 0


def _composed(overrides: list[str]) -> DictConfig:
    cfg = composing.compose(["algo=random", "total_timesteps=1", *overrides])
    check_env(cfg)
    return cfg


def _bot_config(overrides: list[str]) -> DictConfig:
    if not any(override.startswith("env=") for override in overrides):
        raise UsageError(f"env: not given; choose an environment, e.g. {_EXAMPLE}")
    cfg = _composed(overrides)
    env = registry.load(registry.env(cfg.env.name).target)(**env_arguments(cfg))
    controllers = tuple(getattr(env.unwrapped, "controllers", ()))
    env.close()
    if _BOT not in controllers:
        raise UsageError(
            f"expert: bot given, {paths.env_label(cfg)} provides none; set it to the folder of a trained run"
        )
    return cfg


def _run_config(expert: str, overrides: list[str]) -> DictConfig:
    folder = Path(expert)
    if not folder.is_dir():
        raise UsageError(f"expert: '{expert}' given, must be bot or the folder of a trained run")
    run_folder.read_record(folder)
    cfg = load_config(folder)
    allow_current_folder(overrides)
    if registry.algo(cfg.algo.name).controller is not None:
        raise UsageError(
            f"expert: the run of {cfg.algo.name} has no trained policy; expert=bot records the same"
        )
    if overrides:
        own = _composed(overrides)
        if paths.env_label(own) != paths.env_label(cfg):
            raise UsageError(
                f"env: {paths.env_label(own)} given, the expert was trained on {paths.env_label(cfg)}"
            )
        cfg.env = own.env
    cfg.seed = 0  # of weights that are replaced
    return cfg


def _path(args: argparse.Namespace, cfg: DictConfig) -> Path:
    if args.output is not None:
        return Path(args.output)
    choices = [override.partition("=")[2] for override in args.overrides if override.startswith("env=")]
    named = any(override.startswith(("env.id=", "env.game=")) for override in args.overrides)
    task = paths.slug(choices[0]) if choices and not named else paths.env_label(cfg)
    expert = "bot" if args.expert == "bot" else str(cfg.algo.name)
    return catalogue.demonstrations_dir(args.output_dir) / f"{task}-{expert}-{args.episodes}.npz"


# --------------------------------------------------------------------------------------------------------- recording


def _record(args: argparse.Namespace, cfg: DictConfig, path: Path, argv: list[str]) -> str:
    from rlexp.demonstrations import collect, storage
    from rlexp.demonstrations.dataset import Demonstrations
    from rlexp.runs.factories import is_masked, make_env

    expert: dict[str, Any]
    model = None
    if args.expert == "bot":
        choose = collect.by_controller(_BOT)
        expert = {"kind": "bot"}
    else:
        folder = Path(args.expert)
        model = load_trained(cfg, folder)
        choose = collect.by_model(model, args.deterministic, is_masked(cfg))
        expert = {
            "kind": "run",
            "algo": str(cfg.algo.name),
            "run": "/".join(folder.resolve().parts[-4:]),
            "deterministic": args.deterministic,
        }
    envs = [make_env(cfg, index=index) for index in range(min(_ENVIRONMENTS, args.episodes))]
    seeds = collect.episode_seeds(args.seed, args.episodes)
    done = (0, "")
    with terminal.progress(terminal.console(width=None), "episodes", args.episodes, lambda: done) as changed:

        def show(episodes: int, steps: int) -> None:
            nonlocal done
            done = (episodes, f"{steps:,} steps")
            changed()

        episodes, infos = collect.record(envs, choose, seeds, args.seed, show, model)
    provenance = {
        "task": paths.env_label(cfg),
        "env": OmegaConf.to_container(cfg.env, resolve=True),
        "expert": expert,
        "command": " ".join(
            ["rlexp demos", *(argument for argument in argv if not argument.startswith("force="))]
        ),
        "seed": args.seed,
        "episode_seeds": [str(seed) for seed in seeds],  # JSON readers may round numbers of that size
        "versions": run_folder.versions(),
        **_outcome(episodes, infos),
    }
    spaces = (envs[0].observation_space, envs[0].action_space)
    found = Demonstrations(tuple(episodes), *spaces, provenance, env_spec=collect.env_spec(envs[0]))
    for env in envs:
        env.close()
    storage.write(path, found)
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
    """Return the outcome as one line."""
    success = f", success {provenance['success_rate']:.1%}" if "success_rate" in provenance else ""
    return (
        f"{provenance['episodes']} episodes, {provenance['steps']:,} steps, "
        f"return {provenance['return_mean']:.2f} ± {provenance['return_std']:.2f}{success}"
    )
