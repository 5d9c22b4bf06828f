"""Install the wheel without extras in an empty environment, outside the repository, and use it there.

``make wheel-check``: builds the wheel, counts the packages and megabytes that ``pip install rlexp`` brings, trains PPO
on CartPole with them, and asks for everything that needs an extra: the answer must be the line to type, exit
code 2, and nothing on disk. Downloads about 200 MB, so it is no part of ``make test``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_TOP = Path(__file__).resolve().parent.parent.parent
_TRAIN = ("algo=ppo", "env=gym", "env.id=CartPole-v1", "total_timesteps=2000")
_NEEDS = {
    ("env=pong",): "atari",
    ("env=minatar",): "minatar",
    ("env=unlock_pickup",): "minigrid",
    ("env=gym", "env.id=LunarLander-v3"): "box2d",
    ("env=gym", "env.id=Ant-v5"): "mujoco",
    ("env=gym", "env.id=MiniGrid-Empty-5x5-v0"): "minigrid",
    ("env=datacenter",): "energy",
    ("env=restaurant", "algo=r2d2", "hardware=ray"): "ray",
    ("env=restaurant", "logger.tensorboard=true"): "tensorboard",
}


def main() -> int:
    """Build, install, count and use; exit code 1 when anything of it fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, default=_TOP, help="checkout to build (default: this one)")
    parser.add_argument("--count-only", action="store_true", help="install and count, do not use it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rlexp-wheel-") as name:
        folder = Path(name)
        wheel = _build(args.source, folder)
        python = _install(wheel, folder / "environment")
        packages, megabytes = _count(python)
        print(f"pip install rlexp: {packages} packages, {megabytes} MB")
        if args.count_only:
            return 0
        failures = [*_train(python, folder / "work"), *_missing_extras(python, folder / "nothing")]
    for failure in failures:
        print(f"FAILED  {failure}")
    return 1 if failures else 0


def _build(source: Path, folder: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    subprocess.run([*pip, "--wheel-dir", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("rlexp-*.whl")
    return wheel


def _install(wheel: Path, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir")
    subprocess.run([*pip, "-c", str(_TOP / "constraints.txt"), str(wheel)], check=True, env=_environment())
    return python


def _count(python: Path) -> tuple[int, int]:
    """Return the number of packages, and their size in MB, pip left out."""
    pip = [str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    listed = json.loads(subprocess.run(pip, check=True, capture_output=True, text=True).stdout)
    packages = [package for package in listed if package["name"] not in ("pip", "setuptools")]
    (site,) = (python.parent.parent / "lib").glob("python3*/site-packages")
    sizes = [
        path.stat().st_size
        for path in site.rglob("*")
        if path.is_file() and path.relative_to(site).parts[0].partition("-")[0] not in ("pip", "setuptools")
    ]
    return len(packages), round(sum(sizes) / 1e6)


def _train(python: Path, folder: Path) -> list[str]:
    done = _rlexp(python, folder, *_TRAIN, "logger=none")
    print(done.stdout.strip())
    models = list(folder.glob("outputs/runs/*/*/*/seed=0/model.zip"))
    return [] if done.returncode == 0 and len(models) == 1 else [f"training: {done.stderr.strip()}"]


def _missing_extras(python: Path, folder: Path) -> list[str]:
    failures = []
    dataset = folder.with_name(
        "dataset"
    )  # of which only what it says of itself is there: what reads it is missing
    (dataset / "data").mkdir(parents=True)
    (dataset / "data" / "metadata.json").write_text("{}")
    demonstrations = ("algo=bc", "env=gym", "env.id=CartPole-v1", f"algo.demonstrations={dataset}")
    for arguments, extra in {**_NEEDS, demonstrations: "demos"}.items():
        done = _rlexp(python, folder, "algo=random", *arguments, "total_timesteps=100", "logger=none")
        line = done.stderr.strip()
        print(line)
        if done.returncode != 2 or f"pip install 'rlexp[{extra}]'" not in line or "\n" in line:
            failures.append(f"{' '.join(arguments)}: exit code {done.returncode}, {line}")
    if any(folder.iterdir()):
        failures.append(f"left behind: {[path.name for path in folder.iterdir()]}")
    return failures


def _rlexp(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    command = [str(python.parent / "rlexp"), *arguments]
    return subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True)


def _environment() -> dict[str, str]:
    """Return the environment without what leads back to the checkout."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")} | {
        "COLUMNS": "200",
        "PYTHONWARNINGS": "ignore",
    }


if __name__ == "__main__":
    sys.exit(main())
