"""What distributed training needs of whatever runs processes and carries messages between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Handle = Any
"""An object in a separate process."""
Ref = Any
"""A future: a value that may not exist yet, on any machine."""


class ProcessDied(Exception):
    """The process that should have answered is gone."""


class ObjectLost(Exception):
    """A value, or one that it was computed from, is gone, although its process may be alive."""


class Engine(Protocol):
    """Starts objects in separate processes and calls their methods asynchronously; only :meth:`get` blocks."""

    def start(self, build: Callable[..., Any], *arguments: Any) -> Handle:
        """Start ``build(*arguments)`` in a new process.

        :param build: a class that the other process can import
        """

    def call(self, handle: Handle, method: str, *arguments: Any) -> Ref:
        """Call a method; calls of one handle are executed in order.

        :param arguments: references among them are replaced by their values
        """

    def call_pair(self, handle: Handle, method: str, *arguments: Any) -> tuple[Ref, Ref]:
        """Call a method that returns two values, each with its own reference.

        One of them can be read here while the other is passed on without being copied.

        :param arguments: references among them are replaced by their values
        """

    def put(self, value: Any) -> Ref:
        """Store a value once for all processes that get its reference."""

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        """Return those that are settled: their value is there or will never be.

        :param timeout: seconds to wait for the first of them
        """

    def get(self, ref: Ref) -> Any:
        """Return a value; its arrays may be read-only.

        :raises ProcessDied: when its process is gone
        :raises ObjectLost: when the value is gone
        :raises Exception: whatever the method raised
        """

    def kill(self, handle: Handle) -> None:
        """End an object's process; its pending calls are lost."""

    def close(self) -> None:
        """End everything that was started."""


@dataclass(frozen=True)
class Options:
    """How training is distributed.

    :param actors: actor processes
    :param replay_shards: replay processes
    :param prefetch: batches requested ahead of the learner
    :param weights_every: updates between two broadcasts of the weights
    :param update_ratio: ``"serial"``: as many updates per step as without actors; ``"free"``: neither side waits
    :param per_actor_epsilon: every environment has its own constant exploration rate (Horgan et al. 2018)
    :param send_every: complete sequences per message; a dying actor loses at most as many
    """

    actors: int = 2
    replay_shards: int = 1
    prefetch: int = 2
    weights_every: int = 10
    update_ratio: str = "serial"
    per_actor_epsilon: bool = True
    send_every: int = 1
