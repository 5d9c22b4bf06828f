"""One run from start to finish: environment and algorithm meet here, and nowhere else."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import signal
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch as th
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv

from rlexp import registry
from rlexp.config import paths
from rlexp.demonstrations.lockstep import isolated_random_state, stack
from rlexp.errors import describe
from rlexp.runs import checkpoint, normalization
from rlexp.runs import folder as run_folder
from rlexp.runs.callbacks import Budget, Checkpoint, Evaluate, Progress, RestoreNoise, Track, Tracker
from rlexp.runs.clock import Clock
from rlexp.runs.evaluation import Evaluator
from rlexp.runs.factories import make_env, make_evaluator, make_model, make_tracker, make_training_env
from rlexp.runs.loggers.mirrors import Mirror, open_mirrors
from rlexp.runs.loggers.writers import FileSink, RowWriter, Sink
from rlexp.runs.messages import evaluation_changes, quoted, resumed_line
from rlexp.runs.shown_episode import show_episode
from rlexp.runs.weights import initialize
from rlexp.system import stopping

# What a part of the run in another process looks like when the signal has reached that as well, or Ray took it first.
_CUT_OFF = (EOFError, ConnectionError, SystemExit)
_ENDLESS = 2**62  # a step budget that the episode budget always undercuts


class Experiment:
    """Trains one run in its folder, continuing from its newest intact checkpoint.

    :param cfg: complete config
    :param folder: the run folder, already claimed
    :param origin: how the config came about: ``overrides`` and ``choices``
    :param console: where progress is shown
    """

    def __init__(self, cfg: DictConfig, folder: Path, origin: dict[str, Any], console: Console) -> None:
        self.cfg = cfg
        self.folder = folder
        self.console = console
        self._origin = origin
        self._env_spec = registry.env(cfg.env.name)
        self._trained_s = 0.0  # in earlier attempts
        self._evaluated_s = 0.0  # in this one
        self._env: VecEnv | None = None
        self._evaluator: Evaluator | None = None
        self._tracker: Tracker | None = None
        self._mirrors: list[Mirror] = []
        self._files: dict[str, run_folder.JsonlWriter] = {}  # the run's rows, by file name
        self._record: dict[str, Any] = {}
        self._ending = threading.Lock()  # a second signal ends the record from another thread
        self._saved_step: int | None = None
        self.has_traceback = False  # of a failure of this attempt, in the record
        self.has_begun = (
            False  # everything is built; what fails from now on is the run, not what was asked for
        )

    def run(self) -> dict[str, Any]:
        """Train and evaluate.

        :return: the final evaluation row
        :raises Stopped: after SIGINT or SIGTERM
        """
        with stopping.listening(), stopping.deferred(self._tell_stop, self._stop_at_once):
            self._clock = Clock()
            self._record = self._begin()
            try:
                final = self._train() if registry.algo(self.cfg.algo.name).trains else self._measure()
            except BaseException as error:
                number = stopping.requested()
                if isinstance(error, KeyboardInterrupt) or (number and isinstance(error, _CUT_OFF)):
                    self._end("interrupted", error=f"stopped by {stopping.name(number)}")
                    raise stopping.Stopped(number or signal.SIGINT) from None
                with contextlib.suppress(OSError):  # the disk is full; the error is reported all the same
                    self._end("failed", error=describe(error), traceback=traceback.format_exc())
                    self.has_traceback = True
                if isinstance(error, SystemExit):  # an environment's own; it must not decide our exit code
                    raise RuntimeError(describe(error)) from error
                raise
            self._end("finished", evaluation=final)
        stopping.raise_if_requested()
        return final

    # ------------------------------------------------------------------------------------------------- record

    def _begin(self) -> dict[str, Any]:
        earlier = run_folder.read_record(self.folder) if (self.folder / run_folder.RECORD).exists() else {}
        self._evaluation_changes = evaluation_changes(self.folder, self.cfg)
        config = OmegaConf.to_yaml(OmegaConf.create(paths.resolved(self.cfg)))
        entry = {
            "schema_version": run_folder.SCHEMA_VERSION,
            "status": "running",
            "error": None,
            "seed": self.cfg.seed,
            "algo": self.cfg.algo.name,
            "env": paths.env_label(self.cfg),
            "variant": self.folder.parent.name,
            "config_sha256": hashlib.sha256(config.encode()).hexdigest(),
            "name": self.cfg.name,
            "started": earlier.get("started", run_folder.now()),
            "attempts": earlier.get("attempts", 0) + 1,
            "wandb_id": earlier.get("wandb_id", uuid.uuid4().hex[:12]),
            **{key: earlier[key] for key in ("extended_from", "init_from") if earlier.get(key)},
            **self._origin,
            **run_folder.provenance(),
        }
        run_folder.write_atomically(self.folder / run_folder.CONFIG, config)
        run_folder.write_record(self.folder, entry)
        return entry

    def _end(self, status: str, **facts: Any) -> None:
        with self._ending:
            self._record |= {"status": status, "ended": run_folder.now(), **self._clock.read(), **facts}
            run_folder.write_record(self.folder, self._record)

    # ------------------------------------------------------------------------------------------------ stopping

    def _tell_stop(self, doing: str) -> str:
        """Say what a first signal leads to."""
        resumes = "" if self._saved_step is None else f" and resumes from step {self._saved_step:,}"
        return f"stopping after {doing}; a second signal ends at once{resumes}"

    def _stop_at_once(self, number: int) -> None:
        """End the record of a run whose main thread may never come back."""
        if self._record.get("status") == "running":
            self._end("interrupted", error=f"ended at once by {stopping.name(number)}")

    # ----------------------------------------------------------------------------------------------- reference

    def _measure(self) -> dict[str, Any]:
        """Evaluate a policy that learns nothing."""
        with stopping.immediate():
            env = make_training_env(self.cfg)
            model = make_model(self.cfg, env)
        evaluator = make_evaluator(self.cfg)
        self.has_begun = True
        try:
            row = {"episodes": 0, "timesteps": 0, **evaluator.evaluate(model)}
            self._record["train_s"] = 0.0
            self._tracker = make_tracker(self.cfg)
            if self._tracker is not None:
                self._track_first_episode(model, self._tracker)
                self._record |= self._tracker.record()
            writer = run_folder.JsonlWriter(self.folder / run_folder.EVALUATIONS, keep_bytes=0)
            writer.append(row)
            writer.close()
        finally:
            _close_all(evaluator.close, env.close)
        return row

    def _track_first_episode(self, model: Any, tracker: Tracker) -> None:
        """Play the episode with which training with this seed would begin."""
        env = make_env(self.cfg)
        over = False
        with isolated_random_state(self.cfg.seed):
            observation, _ = env.reset(seed=self.cfg.seed)
            while not over:
                stopping.raise_if_requested()
                action, _ = model.predict(stack([observation], env.observation_space))
                observation, _, terminated, truncated, info = env.step(action[0])
                over = terminated or truncated
                tracker.step(0, info, over)
        env.close()

    # ------------------------------------------------------------------------------------------------ training

    def _train(self) -> dict[str, Any]:
        cfg = self.cfg
        if cfg.hardware.torch_threads is not None:
            th.set_num_threads(cfg.hardware.torch_threads)
        exit_code = 1
        try:
            found = checkpoint.restore_newest(self.folder, self._build, self._restore, self._say)
            saved, continues = found if found is not None else (None, {})
            if saved is not None:
                self._say(resumed_line(self.model.num_timesteps, self._evaluation_changes))
            elif cfg.init_from is not None:
                self._record["init_from"] = initialize(self.model, Path(cfg.init_from), cfg.hardware.device)
            self._open_files(continues)
            with stopping.immediate():
                self._mirrors = open_mirrors(cfg, self.folder, self._record)
            self._learn(saved)
            normalizer = self.model.get_vec_normalize_env()
            if normalizer is not None:
                run_folder.write_atomically(self.folder / normalization.FILE, normalization.dumps(normalizer))
            weights = io.BytesIO()
            self.model.save(weights)
            run_folder.write_atomically(self.folder / "model.zip", weights.getvalue())
            final = self._evaluate.evaluate() if cfg.evaluation.episodes else {}
            self._record |= self._budget.position()
            if self._tracker is not None:
                self._record |= self._tracker.record()
            if cfg.logger.show_episode:
                self._show_episode()
            exit_code = 0
        finally:
            close = functools.partial(self._close_mirror, exit_code)
            _close_all(
                *(functools.partial(close, mirror) for mirror in self._mirrors),
                *(file.close for file in self._files.values()),
                self._close_envs,
            )
        return final

    def _build(self) -> None:
        """Build everything that a checkpoint is restored into, in place of what there was."""
        cfg = self.cfg
        self._close_envs()
        with stopping.immediate():
            self._env = make_training_env(cfg)
            self.model = make_model(cfg, self._env)
        self._evaluator = make_evaluator(cfg)
        self._budget = Budget(
            cfg.total_episodes, self._env_spec.metrics, defines_progress=cfg.total_timesteps is None
        )
        self._evaluate = Evaluate(
            self._evaluator,
            self._budget,
            cfg.evaluation.every_episodes,
            cfg.evaluation.every_timesteps,
            cfg.total_timesteps,
            self._take_evaluation,
        )
        self._tracker = make_tracker(cfg)

    def _close_envs(self) -> None:
        opened = [each.close for each in (self._evaluator, self._env) if each is not None]
        self._evaluator = self._env = None
        _close_all(*opened)

    def _open_files(self, continues: dict[str, run_folder.Extent]) -> None:
        """Open the files of rows where a checkpoint continues them; rows after it are set aside."""
        for name in (
            run_folder.METRICS,
            run_folder.EVALUATIONS,
            *([run_folder.TRACKED] if self._tracker is not None else []),
        ):
            length = continues[name].length if name in continues else 0
            self._files[name] = run_folder.JsonlWriter(self.folder / name, length)

    def _learn(self, saved: dict[str, Any] | None) -> None:
        cfg, model = self.cfg, self.model
        sinks: list[Sink] = [FileSink(self._files[run_folder.METRICS]), *self._mirrors]
        model.set_logger(Logger(folder=None, output_formats=[RowWriter(sinks, self._budget.position)]))
        if saved is not None:
            checkpoint.restore_pending_metrics(model, saved["model"])
            # Whatever was set up since then has no influence on what is drawn from now on.
            checkpoint.restore_random_state(model, saved["model"])
        checkpoints = Checkpoint(self._save, cfg.checkpoint.every_timesteps, cfg.checkpoint.every_minutes)
        progress = Progress(
            self.console, self._budget, self._evaluate, cfg.total_timesteps, self._env_spec.episode
        )

        def tracked(row: dict[str, Any]) -> None:
            self._files[run_folder.TRACKED].append(row)

        callbacks = [
            *([RestoreNoise(saved["model"])] if saved is not None and "sde_noise" in saved["model"] else []),
            self._budget,
            *([Track(self._tracker, self._budget, tracked)] if self._tracker is not None else []),
            *([self._evaluate] if cfg.evaluation.episodes else []),
            progress,
            checkpoints,
        ]
        total = cfg.total_timesteps or _ENDLESS
        self._learning_since = time.perf_counter()
        with contextlib.ExitStack() as closing:
            learner = model if cfg.hardware.ray is None else self._distributed(closing)
            try:
                with stopping.doing(lambda: f"the current rollout, at step {model.num_timesteps:,}"):
                    self.has_begun = True
                    learner.learn(
                        total - model.num_timesteps,
                        callback=CallbackList(callbacks),
                        reset_num_timesteps=saved is None,
                    )
                if learner is model and cfg.total_timesteps and model.num_timesteps >= cfg.total_timesteps:
                    self._save()  # where a larger budget would continue
            finally:
                progress.close()
                self._record["train_s"] = round(self._train_seconds(), 3)
                if learner is not model:
                    self._record["ray"] = learner.summary()

    def _distributed(self, closing: contextlib.ExitStack) -> Any:
        """Return who trains the model with actors and replay in processes of Ray's, which end with ``closing``."""
        from rlexp.distributed.engine import Options
        from rlexp.distributed.on_ray import RayEngine
        from rlexp.distributed.training import Training

        ray = OmegaConf.to_container(self.cfg.hardware.ray)
        assert isinstance(ray, dict)
        options = Options(**{field.name: ray[field.name] for field in dataclasses.fields(Options)})
        processes = options.actors + options.replay_shards
        on_loss = "import sys; from rlexp.runs.folder import end_lost; end_lost(*sys.argv[1:])"
        engine = RayEngine(
            ray["address"],
            processes,
            ray["object_store_mb"],
            on_loss=[sys.executable, "-P", "-c", on_loss, str(self.folder.resolve())],
        )
        closing.callback(engine.close)
        make_envs = functools.partial(make_training_env, self.cfg)
        return Training(self.model, make_envs, options, engine, self._say)

    def _say(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False)

    def _restore(self, saved: dict[str, Any]) -> None:
        with stopping.immediate():
            checkpoint.restore(self.model, saved["model"])
        self._budget.load_state(saved["budget"])
        self._budget.num_timesteps = self._evaluate.num_timesteps = self.model.num_timesteps
        self._evaluate.load_state(saved["evaluate"])
        if self._tracker is not None:
            self._tracker.load_state(saved.get("tracker") or saved["periods"])  # its name in earlier versions
        self._clock.wall_s, self._clock.cpu_s = saved["clock"]["wall_s"], saved["clock"]["cpu_s"]
        self._trained_s = saved["clock"]["train_s"]
        self._saved_step = self.model.num_timesteps

    def _save(self) -> None:
        state = {
            "model": checkpoint.capture(self.model),
            "budget": self._budget.state(),
            "evaluate": self._evaluate.state(),
            "tracker": None if self._tracker is None else self._tracker.state(),
            "clock": {**self._clock.read(), "train_s": self._train_seconds()},
        }
        checkpoint.save(
            self.folder / run_folder.CHECKPOINTS,
            state,
            self.model.num_timesteps,
            self.cfg.checkpoint.keep_last,
            {name: file.extent() for name, file in self._files.items()},
        )
        self._saved_step = self.model.num_timesteps

    def _train_seconds(self) -> float:
        """Return the seconds spent on training alone, evaluations left out, earlier attempts included."""
        here = time.perf_counter() - self._learning_since
        return self._trained_s + here - self._evaluated_s

    def _take_evaluation(self, row: dict[str, Any]) -> None:
        self._evaluated_s += row["wall_s"]
        self._files[run_folder.EVALUATIONS].append(row)
        for mirror in self._mirrors:
            mirror.log_evaluation(row)

    def _show_episode(self) -> None:
        assert self._evaluator is not None
        path = show_episode(self.cfg, self.model, self._evaluator.seed, self.folder)
        for mirror in self._mirrors:
            mirror.log_episode(path)
        self._say(f"an evaluation episode: {quoted(path)}")

    def _close_mirror(self, exit_code: int, mirror: Mirror) -> None:
        mirror.close(self._evaluate.last or {}, exit_code)


def _close_all(*closes: Callable[[], None]) -> None:
    """Close everything, whatever fails; in a ``finally`` the original error stays the one that is reported.

    :raises Exception: the first that closing raised, unless another error is on its way
    """
    underway = sys.exc_info()[1]
    first: Exception | None = None
    for close in closes:
        try:
            close()
        except Exception as error:
            first = first or error
    if first is not None and underway is None:
        raise first
