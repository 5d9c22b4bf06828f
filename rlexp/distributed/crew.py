"""The learner's end of the actors: keeps every one of them busy, and puts another in the place of one that died."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlexp.distributed.engine import Dead, Engine, Handle, Missing, Ref
from rlexp.distributed.worker import Report

_AHEAD = 2  # requests that an actor has, so that it goes on while its answer travels
_PATIENCE = (
    5.0  # seconds after which nobody reckons with what an actor was asked for, so that it holds up no other
)
_MOST_STILLBORN = 5  # actors in one place that may die in a row before having done anything


class Delivery(NamedTuple):
    """What an actor sent."""

    actor: int
    report: Report
    complete: Ref
    """Reference to its sequences, which lie where they were made."""
    age: int
    """Updates between the weights it acted with and now."""


class _Member:
    """What the learner knows of one actor."""

    def __init__(self, handle: Handle, life: int) -> None:
        self.handle = handle
        self.life = life
        self.version = -1  # of its weights, as updates; it has none to begin with
        self.heard_at = -math.inf
        self.asked: dict[Ref, tuple[Ref, int]] = {}  # what will come beside it, and the version it acts with


class Crew:
    """Actors in processes of their own.

    :param engine: runs the processes
    :param start: starts an actor, given its number and how many have been it before
    :param n: actors
    :param steps_asked: steps that one request amounts to
    :param least: complete sequences that an answer should hold
    :param say: told in a line who died
    """

    def __init__(
        self,
        engine: Engine,
        start: Callable[[int, int], Handle],
        n: int,
        steps_asked: int,
        least: int,
        say: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._start = start
        self._steps_asked = steps_asked
        self._least = least
        self._say = say
        self._members = [_Member(start(number, 0), 0) for number in range(n)]
        self._stillborn = [0] * n
        self._weights: tuple[int, Ref] | None = None
        self.deaths = 0

    @property
    def handles(self) -> list[Handle]:
        """The processes as they are now."""
        return [member.handle for member in self._members]

    def refs(self) -> list[Ref]:
        """Return everything that was asked for and has not come."""
        return [ref for member in self._members for ref in member.asked]

    def spread(self, weights: Any, version: int) -> None:
        """Lay down weights for the actors; each gets them with its next request.

        :param version: updates that led to them
        """
        self._weights = version, self._engine.put(weights)

    def ask(self, room: float, epsilons: Callable[[int], npt.NDArray[Any] | float]) -> None:
        """Give actors something to do, those that have least first.

        :param room: steps that may be under way
        :param epsilons: exploration rates of an actor's tasks
        """
        assert self._weights is not None
        version, weights = self._weights
        since = time.monotonic() - _PATIENCE
        lively = [member for member in self._members if member.heard_at > since]
        room -= self._steps_asked * sum(len(member.asked) for member in lively)
        for depth in range(_AHEAD):
            for number, member in enumerate(self._members):
                if len(member.asked) > depth:
                    continue
                if room <= 0:
                    return
                room -= self._steps_asked
                if member.version != version:
                    self._engine.call(member.handle, "take_weights", weights)
                    member.version = version
                report, complete = self._engine.call_for_two(
                    member.handle, "collect", epsilons(number), self._least
                )
                member.asked[report] = complete, version

    def take_in(self, ref: Ref, updates: int) -> Delivery | None:
        """Take in an answer, if it is one of an actor's and still of interest.

        :param updates: done so far
        :return: what it sent; None also when it died, and another has begun in its place
        :raises RuntimeError: when actors keep dying before they do anything
        """
        for number, member in enumerate(self._members):
            if ref not in member.asked:
                continue
            try:
                report = self._engine.get(ref)
            except Dead as error:
                self._replace(number, error)
                return None
            except Missing:
                del member.asked[ref]
                return None
            complete, version = member.asked.pop(ref)
            member.heard_at = time.monotonic()
            self._stillborn[number] = 0
            return Delivery(number, report, complete, updates - version)
        return None

    def _replace(self, number: int, error: Dead) -> None:
        self.deaths += 1
        self._stillborn[number] += 1
        if self._stillborn[number] >= _MOST_STILLBORN:
            raise RuntimeError(
                f"actor {number} died {_MOST_STILLBORN} times in a row before it did anything: {error}"
            )
        old = self._members[number]
        self._engine.kill(old.handle)
        self._members[number] = _Member(self._start(number, old.life + 1), old.life + 1)
        self._say(f"actor {number} died and its episode with it; another begins in its place ({error})")


def seed_of(seed: int, *place: int) -> int:
    """Return a seed that is one process's own: of this run, kind, number and life."""
    return int(np.random.SeedSequence([seed, *place]).generate_state(1)[0])
