"""The learner's end of a replay buffer in other processes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlexp.buffers.mixed_sequences import MixedSequences, SequenceSample, tensors
from rlexp.buffers.sequence_builder import Sequences, join
from rlexp.distributed.engine import Engine, Handle, ObjectLost, ProcessDied, Ref
from rlexp.distributed.replay_shard import Batch, ShardStats

Array = npt.NDArray[Any]
_EMPTY = ShardStats(size=0, priority_mass=0.0, min_priority_mass=np.inf, max_priority=1.0)
_TIMEOUT_S = 5.0  # after which a shard counts as overdue: it gets no further requests until it answers
_MAX_PENDING_ADDS = 64  # messages in flight to one shard


class Source(NamedTuple):
    """Where a batch came from."""

    shard: int | None
    """None: demonstrations only."""
    generation: int
    """Of the shard's process: how many have died before it."""


class RemoteSample(NamedTuple):
    """A batch and what it takes to send its priorities back."""

    sample: SequenceSample
    source: Source
    agent_keys: Array
    demonstration_keys: Array


class _Shard:
    """What the learner knows of one shard."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.generation = 0
        self.stats = _EMPTY
        self.samples: dict[Ref, float] = {}  # pending -> when it was requested
        self.adds: dict[Ref, int] = {}  # pending -> number of sequences

    def overdue(self, now: float) -> bool:
        return any(now - requested > _TIMEOUT_S for requested in self.samples.values())


class ShardPool:
    """The shards that hold the agent's own sequences.

    :param engine: runs the processes
    :param start: starts a shard, given its number and its generation: how many have died before it
    :param n: shards
    :param notify: takes a line that says what was lost
    """

    def __init__(
        self, engine: Engine, start: Callable[[int, int], Handle], n: int, notify: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._start = start
        self._notify = notify
        self._shards = [_Shard(start(number, 0)) for number in range(n)]
        self._next = 0
        self.deaths = 0
        self.lost = 0
        self.added = 0

    def __len__(self) -> int:
        return sum(shard.stats.size for shard in self._shards)

    @property
    def expected_size(self) -> int:
        """Sequences stored or in flight."""
        return len(self) + sum(sum(shard.adds.values()) for shard in self._shards)

    @property
    def max_priority(self) -> float:
        """The largest priority so far, in any shard."""
        return max(shard.stats.max_priority for shard in self._shards)

    @property
    def handles(self) -> list[Handle]:
        """The present processes."""
        return [shard.handle for shard in self._shards]

    def refs(self) -> list[Ref]:
        """Return the references of all pending requests."""
        return [ref for shard in self._shards for ref in (*shard.samples, *shard.adds)]

    def in_flight(self, now: float) -> int:
        """Return how many batches have been requested, without those of overdue shards.

        :param now: ``time.monotonic()``
        """
        return sum(len(shard.samples) for shard in self._shards if not shard.overdue(now))

    def add(self, sequences: Ref, n: int) -> None:
        """Send new sequences to the shards in turn; the data never pass through this process.

        :param sequences: reference to :class:`~rlexp.distributed.replay_shard.NewSequences`
        :param n: how many they are
        """
        now = time.monotonic()
        turn = self._shards[self._next :] + self._shards[: self._next]
        self._next = (self._next + 1) % len(self._shards)
        free = [shard for shard in turn if len(shard.adds) < _MAX_PENDING_ADDS and not shard.overdue(now)]
        shard = free[0] if free else turn[0]
        shard.adds[self._engine.call(shard.handle, "add", sequences)] = n
        self.added += n

    def request_batch(self, n: int) -> bool:
        """Request sequences from one shard, drawn by priority mass.

        :param n: how many sequences
        :return: whether a shard could be asked
        """
        now = time.monotonic()
        ready = [shard for shard in self._shards if shard.stats.size and not shard.overdue(now)]
        if not ready:
            return False
        masses = np.array([shard.stats.priority_mass for shard in ready])
        shard = ready[int(np.random.choice(len(ready), p=masses / masses.sum()))]
        shard.samples[self._engine.call(shard.handle, "sample", n)] = now
        return True

    def handle_result(self, ref: Ref) -> tuple[Source, Batch] | None:
        """Handle a settled reference; a dead shard is replaced by an empty one.

        :param ref: of any request; others than the shards' are ignored
        :return: the batch, if it was requested with this reference
        """
        for number, shard in enumerate(self._shards):
            if ref not in shard.samples and ref not in shard.adds:
                continue
            try:
                answer = self._engine.get(ref)
            except ProcessDied as error:
                self._replace(number, error)
                return None
            except ObjectLost:
                shard.samples.pop(ref, None)
                self.lost += shard.adds.pop(ref, 0)
                return None
            shard.adds.pop(ref, None)
            if shard.samples.pop(ref, None) is None:
                shard.stats = answer
                return None
            shard.stats = answer.stats
            return Source(number, shard.generation), answer
        return None

    def _replace(self, number: int, error: ProcessDied) -> None:
        old = self._shards[number]
        lost = old.stats.size + sum(old.adds.values())
        self.deaths += 1
        self.lost += lost
        self._engine.kill(old.handle)
        self._shards[number] = _Shard(self._start(number, old.generation + 1))
        self._shards[number].generation = old.generation + 1
        self._notify(
            f"replay shard {number} died and was replaced by an empty one: {lost:,} sequences lost ({error})"
        )

    def min_priority_mass(self) -> float:
        """Return the smallest ``priority ** alpha`` of a stored sequence, in any shard."""
        return min(shard.stats.min_priority_mass for shard in self._shards)

    def update_priorities(self, source: Source, keys: Array, priorities: Array) -> None:
        """Send new priorities to the shard that a batch came from, unless it was replaced since.

        :param source: of the batch
        :param keys: of its sequences, ``(n,)``
        :param priorities: ``(n,)``
        """
        assert source.shard is not None
        shard = self._shards[source.shard]
        if shard.generation == source.generation:
            self._engine.call(shard.handle, "update_priorities", keys, priorities)


class ShardedReplay:
    """Replaces a :class:`~rlexp.buffers.mixed_sequences.MixedSequences` whose agent sequences are in shards.

    The agent's part of a batch comes from one shard, which is drawn by its priority mass: every sequence is as likely
    as in one large replay buffer. Importance weights are rescaled to the largest one of all shards. Demonstrations stay
    with the learner.

    :param local: provides demonstrations, their ratio and the counters
    :param agent: shards with the agent's own sequences
    :param batch_size: of the prefetched batches
    :param prefetch: batches requested ahead
    :param beta: exponent of the importance weights
    """

    def __init__(
        self, local: MixedSequences, agent: ShardPool, batch_size: int, prefetch: int, beta: float
    ) -> None:
        self.agent = agent
        self.demonstrations = local.demonstrations
        self.demonstration_ratio = local.demonstration_ratio
        self.agent_draws, self.demonstration_draws = local.agent_draws, local.demonstration_draws
        self._local = local
        self._batch_size = batch_size
        self._prefetch = prefetch
        self._beta = beta
        self._ready: deque[tuple[Source, Batch | None]] = deque()

    @property
    def has_batch(self) -> bool:
        """Whether a batch has arrived."""
        return bool(self._ready)

    def request_batches(self) -> None:
        """Request batches until ``prefetch`` of them are here or in flight."""
        now = time.monotonic()
        while len(self._ready) + self.agent.in_flight(now) < self._prefetch:
            n = self._batch_size - int(
                (np.random.random_sample(self._batch_size) < self.demonstration_ratio).sum()
            )
            if self.demonstrations is not None and (n == 0 or len(self.agent) == 0):
                self._ready.append((Source(None, 0), None))
            elif not self.agent.request_batch(n):
                return

    def handle_result(self, ref: Ref) -> None:
        """Handle a settled reference; others than the shards' are ignored."""
        found = self.agent.handle_result(ref)
        if found is not None:
            self._ready.append(found)

    def sample(self, batch_size: int, demonstration_ratio: float | None = None) -> RemoteSample:
        """Return the next batch, the agent's sequences first, then demonstrations.

        :param batch_size: the one that the batches were requested with
        :param demonstration_ratio: 1 for demonstrations alone; else None
        :raises IndexError: when no batch has arrived
        """
        source, batch = (Source(None, 0), None) if demonstration_ratio == 1 else self._ready.popleft()
        parts: list[Sequences] = []
        agent_keys, weights = np.zeros(0, np.int64), np.zeros(0)
        if batch is not None:
            parts.append(_writable(batch.sequences))
            agent_keys = batch.keys
            weights = batch.weights
            if batch.stats.min_priority_mass > 0:
                weights = (
                    weights
                    * min(1.0, self.agent.min_priority_mass() / batch.stats.min_priority_mass) ** self._beta
                )
        demonstration_keys = np.zeros(0, np.int64)
        n_demonstrations = batch_size - len(agent_keys)
        if n_demonstrations:
            assert self.demonstrations is not None
            demonstration_keys, others = self.demonstrations.draw(n_demonstrations)
            parts.append(self.demonstrations.take(demonstration_keys))
            weights = np.concatenate([weights, others])
        self.agent_draws += len(agent_keys)
        self.demonstration_draws += n_demonstrations
        is_demonstration = np.arange(batch_size) >= len(agent_keys)
        burn_in, device = self._local.agent.layout.burn_in, self._local.device
        sample = tensors(join(parts), weights, is_demonstration, burn_in, device)
        return RemoteSample(sample, source, agent_keys, demonstration_keys)

    def update_priorities(self, drawn: RemoteSample, priorities: Array) -> None:
        """Send the new priorities of a batch to the buffers that its sequences came from.

        :param drawn: the batch
        :param priorities: ``(B,)``
        """
        n = len(drawn.agent_keys)
        if n:
            self.agent.update_priorities(drawn.source, drawn.agent_keys, priorities[:n])
        if self.demonstrations is not None:
            self.demonstrations.update_priorities(drawn.demonstration_keys, priorities[n:])

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the state of the local buffer; the agent's sequences are not part of it."""
        self.copy_counters_back()
        return self._local.checkpoint_state()

    def copy_counters_back(self) -> None:
        """Write the counters of sampled sequences to the local buffer."""
        self._local.agent_draws, self._local.demonstration_draws = self.agent_draws, self.demonstration_draws


def _writable(sequences: Sequences) -> Sequences:
    """Copy the small arrays, which become tensors without a copy: shared memory is read-only."""
    return Sequences(
        sequences.observations,
        sequences.last_actions,
        sequences.last_rewards,
        sequences.lengths.copy(),
        sequences.terminated.copy(),
        sequences.has_burn_in.copy(),
        sequences.states.copy(),
    )
