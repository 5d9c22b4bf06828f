"""What is asked of whatever runs processes and carries messages between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Handle = Any
"""An object in a process of its own."""
Ref = Any
"""A value that may not be there yet, and may lie anywhere."""


class Dead(Exception):
    """An answer that will never come, since who was asked is gone."""


class Missing(Exception):
    """A value that is gone, or that depended on one, while who made it may well be there."""


class Engine(Protocol):
    """Starts objects in processes of their own and calls their methods; nothing but ``get`` ever waits."""

    def start(self, build: Callable[..., Any], *arguments: Any) -> Handle:
        """Begin to start ``build(*arguments)``, a class that the other process can import."""

    def call(self, handle: Handle, method: str, *arguments: Any) -> Ref:
        """Call a method. Calls of one handle are answered in their order; references among the arguments arrive as
        their values.
        """

    def call_for_two(self, handle: Handle, method: str, *arguments: Any) -> tuple[Ref, Ref]:
        """Call a method that returns two values, so that the one can be read here while the other moves on."""

    def put(self, value: Any) -> Ref:
        """Lay a value down once for all who are told of it."""

    def settled(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        """Return those that are there or will never be, waiting for the first at most ``timeout`` seconds."""

    def get(self, ref: Ref) -> Any:
        """Return a settled value; arrays may be read-only.

        :raises Dead: when it will never come
        :raises Missing: when it is gone
        :raises Exception: whatever the method raised
        """

    def kill(self, handle: Handle) -> None:
        """End an object's process; what it was asked is lost."""

    def close(self) -> None:
        """End everything that was started."""


@dataclass(frozen=True)
class Options:
    """How learning is spread.

    :param actors: processes that act
    :param replay_shards: processes that remember
    :param prefetch: batches asked for before they are needed
    :param weights_every: updates between two weights that actors get
    :param pace: ``"serial"``: as many updates per step as without actors; ``"free"``: everybody as fast as they can
    :param ladder: each task explores at a constant rate of its own
    :param send_every: complete sequences in an actor's message; a dying actor takes at most so many along
    """

    actors: int = 2
    replay_shards: int = 1
    prefetch: int = 2
    weights_every: int = 10
    pace: str = "serial"
    ladder: bool = True
    send_every: int = 1
