"""An engine in which everything happens in this process, one message at a time, and anybody can be made to die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlexp.distributed.engine import ObjectLost, ProcessDied


class Promise:
    """A value to come."""

    def __init__(self) -> None:
        self.is_settled = False
        self.value: Any = None
        self.error: Exception | None = None

    def settle(self, value: Any = None, error: Exception | None = None) -> None:
        self.is_settled, self.value, self.error = True, value, error


class Process:
    """An object with a queue of messages."""

    def __init__(self, build: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.object = build(*arguments)
        self.arguments = arguments
        self.queue: list[tuple[str, tuple[Any, ...], tuple[Promise, ...]]] = []
        self.dead = self.hangs = False

    def work(self) -> None:
        """Answer what there is, up to the first that takes steps in an environment."""
        while self.queue and not self.hangs:
            if self._answer() == "collect":
                return

    def _answer(self) -> str:
        method, arguments, promises = self.queue.pop(0)
        if any(isinstance(one, Promise) and one.error for one in arguments):
            for promise in promises:
                promise.settle(error=ObjectLost("an argument"))
            return method
        values = [one.value if isinstance(one, Promise) else one for one in arguments]
        found = getattr(self.object, method)(*values)
        for promise, value in zip(promises, found if len(promises) > 1 else (found,), strict=True):
            promise.settle(value)
        return method


class OneProcess:
    """Implements :class:`rlexp.distributed.engine.Engine`."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.calls: list[str] = []
        self.every_turn: Callable[[], None] = lambda: None

    def start(self, build: Callable[..., Any], *arguments: Any) -> Process:
        self.processes.append(Process(build, arguments))
        return self.processes[-1]

    def _send(self, handle: Process, method: str, arguments: tuple[Any, ...], n: int) -> tuple[Promise, ...]:
        promises = tuple(Promise() for _ in range(n))
        self.calls.append(method)
        if handle.dead:
            for promise in promises:
                promise.settle(error=ProcessDied("dead"))
        else:
            handle.queue.append((method, arguments, promises))
        return promises

    def call(self, handle: Process, method: str, *arguments: Any) -> Promise:
        return self._send(handle, method, arguments, 1)[0]

    def call_pair(self, handle: Process, method: str, *arguments: Any) -> tuple[Promise, Promise]:
        first, second = self._send(handle, method, arguments, 2)
        return first, second

    def put(self, value: Any) -> Promise:
        promise = Promise()
        promise.settle({name: array.copy() for name, array in value.items()})
        return promise

    def wait(self, refs: Sequence[Promise], timeout: float) -> list[Promise]:
        self.every_turn()
        for process in self.processes:
            if not process.dead:
                process.work()
        return [ref for ref in refs if ref.is_settled]

    def get(self, ref: Promise) -> Any:
        assert ref.is_settled
        if ref.error is not None:
            raise ref.error
        return ref.value

    def kill(self, handle: Process) -> None:
        handle.dead = True
        for _, _, promises in handle.queue:
            for promise in promises:
                promise.settle(error=ProcessDied("killed"))
        handle.queue.clear()

    def close(self) -> None:
        for process in self.processes:
            self.kill(process)

    def work_off(self) -> None:
        """Answer everything that is asked."""
        while any(one.queue and not one.hangs for one in self.processes):
            self.wait([], 0.0)

    def alive(self, kind: type[Any]) -> list[Process]:
        """Return the living processes of a class."""
        return [one for one in self.processes if isinstance(one.object, kind) and not one.dead]
