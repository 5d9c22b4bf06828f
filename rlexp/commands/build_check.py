"""Whether what was typed can be built: which values fit together only the classes know that take them."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from rlexp.commands import compose as composing
from rlexp.commands.diagnose import first_line
from rlexp.errors import UsageError

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra


def check_build(hydra: Hydra, overrides: Sequence[str], cfg: DictConfig) -> None:
    """Build the algorithm once, on the CPU and with no more memory than the machine has.

    :param overrides: what was typed
    :param cfg: what they compose to
    :raises UsageError: naming the override without which it can be built
    """
    try:
        _build(cfg)
    except Exception as error:
        culprit = next(
            (word for word in reversed(overrides) if _builds_without(hydra, overrides, word)), None
        )
        subject = culprit if culprit is not None else f"algo={cfg.algo.name}"
        raise UsageError(f"{subject}: cannot be built: {_reason(error)}") from error


def _builds_without(hydra: Hydra, overrides: Sequence[str], word: str) -> bool:
    try:
        others = [other for other in overrides if other is not word]
        _build(composing.checked(composing.compose_with(hydra, others)))
    except Exception:
        return False
    return True


def _build(cfg: DictConfig) -> None:
    from rlexp.factories import make_model, make_training_env

    one = cfg.copy()
    one.hardware.n_envs, one.hardware.vec_env, one.hardware.device = 1, "dummy", "cpu"
    env = make_training_env(one)
    try:
        env.num_envs = cfg.hardware.n_envs  # sizes of buffers follow it; the spaces are those of the one
        with _memory_limited():
            make_model(one, env)
    finally:
        env.close()


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
