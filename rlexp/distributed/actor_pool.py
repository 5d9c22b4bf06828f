"""The learner's end of the actors: keeps each of them busy and replaces those that die."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlexp.distributed.engine import Engine, Handle, ObjectLost, ProcessDied, Ref
from rlexp.distributed.worker import Report

_MAX_PENDING = 2  # requests per actor: one in work, one queued while the result of the first travels
_TIMEOUT_S = (
    5.0  # after which the pending steps of a silent actor no longer count, so that the others continue
)
_MAX_STARTUP_FAILURES = 5  # in a row, of one actor


class ActorResult(NamedTuple):
    """What an actor sent."""

    actor: int
    report: Report
    sequences: Ref
    """Reference to its :class:`~rlexp.distributed.replay_shard.NewSequences`, which stay where they were made."""
    weights_age: int
    """Updates between the weights it acted with and now."""


class _Actor:
    """What the learner knows of one actor."""

    def __init__(self, handle: Handle, generation: int) -> None:
        self.handle = handle
        self.generation = generation
        self.version = -1  # of its weights, in updates; -1: it has none yet
        self.last_result_at = -math.inf
        self.pending: dict[Ref, tuple[Ref, int]] = {}  # report -> its sequences and the version it acts with


class ActorPool:
    """Actors in separate processes.

    :param engine: runs the processes
    :param start: starts an actor, given its number and its generation: how many have died before it
    :param n: actors
    :param steps_per_request: environment steps that one request amounts to
    :param min_sequences: complete sequences that a result should hold
    :param notify: takes a line that says which actor died
    """

    def __init__(
        self,
        engine: Engine,
        start: Callable[[int, int], Handle],
        n: int,
        steps_per_request: int,
        min_sequences: int,
        notify: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._start = start
        self._steps_per_request = steps_per_request
        self._min_sequences = min_sequences
        self._notify = notify
        self._actors = [_Actor(start(number, 0), 0) for number in range(n)]
        self._startup_failures = [0] * n
        self._weights: tuple[int, Ref] | None = None
        self.deaths = 0

    @property
    def handles(self) -> list[Handle]:
        """The present processes."""
        return [actor.handle for actor in self._actors]

    def refs(self) -> list[Ref]:
        """Return the references of all pending requests."""
        return [ref for actor in self._actors for ref in actor.pending]

    def broadcast_weights(self, weights: Any, version: int) -> None:
        """Publish new weights; every actor gets them with its next request.

        :param weights: arrays by parameter name
        :param version: updates that led to them
        """
        self._weights = version, self._engine.put(weights)

    def request_steps(self, allowed: float, epsilons: Callable[[int], npt.NDArray[Any] | float]) -> None:
        """Send requests to the actors, first to those with the fewest pending ones.

        :param allowed: environment steps that may be in flight
        :param epsilons: exploration rates of an actor's environments, given its number
        """
        assert self._weights is not None
        version, weights = self._weights
        since = time.monotonic() - _TIMEOUT_S
        responsive = [actor for actor in self._actors if actor.last_result_at > since]
        allowed -= self._steps_per_request * sum(len(actor.pending) for actor in responsive)
        for depth in range(_MAX_PENDING):
            for number, actor in enumerate(self._actors):
                if len(actor.pending) > depth:
                    continue
                if allowed <= 0:
                    return
                allowed -= self._steps_per_request
                if actor.version != version:
                    self._engine.call(actor.handle, "set_weights", weights)
                    actor.version = version
                report, sequences = self._engine.call_pair(
                    actor.handle, "collect", epsilons(number), self._min_sequences
                )
                actor.pending[report] = sequences, version

    def handle_result(self, ref: Ref, updates: int) -> ActorResult | None:
        """Handle a settled reference; a dead actor is replaced.

        :param ref: of any request; others than the actors' are ignored
        :param updates: done so far
        :return: what the actor sent; None when it died, when its result was lost, or when the reference is none of the
            actors'
        :raises RuntimeError: when an actor keeps dying before its first result
        """
        for number, actor in enumerate(self._actors):
            if ref not in actor.pending:
                continue
            try:
                report = self._engine.get(ref)
            except ProcessDied as error:
                self._replace(number, error)
                return None
            except ObjectLost:
                del actor.pending[ref]
                return None
            sequences, version = actor.pending.pop(ref)
            actor.last_result_at = time.monotonic()
            self._startup_failures[number] = 0
            return ActorResult(number, report, sequences, updates - version)
        return None

    def _replace(self, number: int, error: ProcessDied) -> None:
        self.deaths += 1
        self._startup_failures[number] += 1
        if self._startup_failures[number] >= _MAX_STARTUP_FAILURES:
            raise RuntimeError(
                f"actor {number} died {_MAX_STARTUP_FAILURES} times in a row before it sent anything: {error}"
            )
        old = self._actors[number]
        self._engine.kill(old.handle)
        self._actors[number] = _Actor(self._start(number, old.generation + 1), old.generation + 1)
        self._notify(f"actor {number} died with its unfinished episodes and was replaced ({error})")


def process_seed(seed: int, *key: int) -> int:
    """Return the seed of one process.

    :param seed: of the run
    :param key: kind, number and generation of the process
    """
    return int(np.random.SeedSequence([seed, *key]).generate_state(1)[0])
