"""Whether a config can be built: only the classes know which values they take together."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rlexp.config import compose as composing
from rlexp.config.hydra_app import HydraApp
from rlexp.errors import UsageError, first_line


def check_build(app: HydraApp, overrides: Sequence[str], cfg: DictConfig) -> None:
    """Build the algorithm once, on the CPU and with no more memory than the machine has.

    :param overrides: of the command line
    :param cfg: what they compose to
    :raises UsageError: naming the override without which it can be built
    """
    try:
        _build(cfg)
    except Exception as error:  # algorithms and environments of any origin raise whatever they like
        culprits = (override for override in reversed(overrides) if _builds_without(app, overrides, override))
        subject = next(culprits, f"algo={cfg.algo.name}")
        raise UsageError(f"{subject}: cannot be built: {_reason(error)}") from error


def _builds_without(app: HydraApp, overrides: Sequence[str], override: str) -> bool:
    try:
        others = [other for other in overrides if other is not override]
        _build(composing.checked(app.compose(others)))
    except Exception:  # see above; what is wrong with this one is not the question
        return False
    return True


def _build(cfg: DictConfig) -> None:
    from rlexp.runs.factories import make_model, make_training_env

    one = cfg.copy()
    one.hardware.n_envs, one.hardware.vec_env, one.hardware.device = 1, "dummy", "cpu"
    env = make_training_env(one)
    try:
        env.num_envs = cfg.hardware.n_envs  # sizes of buffers follow it; the spaces are those of the one
        with _memory_limited():
            make_model(one, env)
            _check_batch(cfg, env.observation_space)
    finally:
        env.close()


def _check_batch(cfg: DictConfig, observation_space: Any) -> None:
    """Check that the transitions of one update fit into memory; training would only fail at its first update.

    :raises MemoryError: when they do not
    """
    from gymnasium.spaces import flatdim

    sizes = [size for key, size in cfg.algo.items() if str(key).endswith("batch_size") and size is not None]
    transitions = max(sizes, default=0) * cfg.algo.get("sequence_length", 1)
    needed = transitions * 2 * flatdim(observation_space) * 4  # float32, before and after the step
    if needed > _total_memory():
        raise MemoryError(f"an update on {transitions:,} transitions takes {needed / 2**30:,.0f} GiB")


def _reason(error: Exception) -> str:
    text = first_line(error)
    if isinstance(error, MemoryError) or "allocate memory" in text or "Unable to allocate" in text:
        return f"it needs more memory than this machine's {_total_memory() / 2**30:.0f} GiB ({text})"
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"


def _total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextlib.contextmanager
def _memory_limited() -> Iterator[None]:
    """Let an allocation beyond the machine's memory fail instead of letting the kernel end some process later."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        bounds = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min([used + _total_memory(), *bounds]), hard))
    except OSError:  # not Linux: nothing to measure by
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
