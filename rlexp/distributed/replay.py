"""The learner's end of a replay that lies in other processes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlexp.buffers.sequence_builder import Sequences, join
from rlexp.buffers.sequence_store import MixedSequences, SequenceSample, tensors
from rlexp.distributed.engine import Dead, Engine, Handle, Missing, Ref
from rlexp.distributed.shard import Batch, Standing

Array = npt.NDArray[Any]
_NOTHING = Standing(0, 0.0, np.inf, 1.0)
_PATIENCE = (
    5.0  # seconds after which an answer counts as overdue: nothing more is asked of that shard until it comes
)
_MOST_ADDED = 64  # messages to a shard that may be on their way


class Source(NamedTuple):
    """Where a batch came from."""

    shard: int | None
    """None: demonstrations only."""
    life: int
    """Which of the processes that have been this shard."""


class DrawnAfar(NamedTuple):
    """A batch and what it takes to report its priorities."""

    sample: SequenceSample
    source: Source
    agent_keys: Array
    demonstration_keys: Array


class _Shard:
    """What the learner knows of one shard."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.life = 0
        self.standing = _NOTHING
        self.draws: dict[Ref, tuple[int, float]] = {}  # how many sequences, and when asked for
        self.adds: dict[Ref, int] = {}  # how many sequences

    def overdue(self, now: float) -> bool:
        return any(now - asked > _PATIENCE for _, asked in self.draws.values())


class Shards:
    """The agent's own sequences, wherever they are.

    :param engine: runs the processes
    :param start: starts a shard, given its number and how many have been it before
    :param n: shards
    :param say: told in a line what was lost
    """

    def __init__(
        self, engine: Engine, start: Callable[[int, int], Handle], n: int, say: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._start = start
        self._say = say
        self._all = [_Shard(start(number, 0)) for number in range(n)]
        self._next = 0
        self.deaths = 0
        self.lost = 0
        self.added = 0

    def __len__(self) -> int:
        return sum(shard.standing.held for shard in self._all)

    @property
    def expected(self) -> int:
        """How many there are and will be when everything that is on its way has arrived."""
        return len(self) + sum(sum(shard.adds.values()) for shard in self._all)

    @property
    def max_priority(self) -> float:
        """The largest priority so far."""
        return max(shard.standing.max_priority for shard in self._all)

    @property
    def handles(self) -> list[Handle]:
        """The processes as they are now."""
        return [shard.handle for shard in self._all]

    def refs(self) -> list[Ref]:
        """Return everything that was asked for and has not come."""
        return [ref for shard in self._all for ref in (*shard.draws, *shard.adds)]

    def on_their_way(self, now: float) -> int:
        """Return how many batches were asked for, those left out that are overdue."""
        return sum(len(shard.draws) for shard in self._all if not shard.overdue(now))

    def add(self, complete: Ref, sequences: int) -> None:
        """Send new sequences to the shards in turn; the data never come here.

        :param complete: reference to a :class:`~rlexp.distributed.shard.Complete`
        :param sequences: how many
        """
        now = time.monotonic()
        turn = self._all[self._next :] + self._all[: self._next]
        self._next = (self._next + 1) % len(self._all)
        free = [shard for shard in turn if len(shard.adds) < _MOST_ADDED and not shard.overdue(now)]
        shard = free[0] if free else turn[0]
        shard.adds[self._engine.call(shard.handle, "add", complete)] = sequences
        self.added += sequences

    def ask(self, n: int) -> bool:
        """Ask a shard for some sequences, more often those in which more can be learned.

        :return: whether there was one to ask
        """
        now = time.monotonic()
        able = [shard for shard in self._all if shard.standing.held and not shard.overdue(now)]
        if not able:
            return False
        masses = np.array([shard.standing.mass for shard in able])
        shard = able[int(np.random.choice(len(able), p=masses / masses.sum()))]
        shard.draws[self._engine.call(shard.handle, "draw", n)] = (n, now)
        return True

    def take_in(self, ref: Ref) -> tuple[Source, Batch] | None:
        """Take in an answer, if it is one of a shard's and still of interest; a dead shard begins anew, empty.

        :return: a batch, if that was the answer
        """
        for number, shard in enumerate(self._all):
            if ref not in shard.draws and ref not in shard.adds:
                continue
            try:
                answer = self._engine.get(ref)
            except Dead as error:
                self._replace(number, error)
                return None
            except Missing:
                shard.draws.pop(ref, None)
                self.lost += shard.adds.pop(ref, 0)
                return None
            shard.adds.pop(ref, None)
            if shard.draws.pop(ref, None) is None:
                shard.standing = answer
                return None
            shard.standing = answer.standing
            return Source(number, shard.life), answer
        return None

    def _replace(self, number: int, error: Dead) -> None:
        old = self._all[number]
        lost = old.standing.held + sum(old.adds.values())
        self.deaths += 1
        self.lost += lost
        self._engine.kill(old.handle)
        self._all[number] = _Shard(self._start(number, old.life + 1))
        self._all[number].life = old.life + 1
        self._say(f"replay shard {number} died and begins anew, empty: {lost:,} sequences lost ({error})")

    def least(self) -> float:
        """Return the mass of the least likely sequence anywhere."""
        return min(shard.standing.least for shard in self._all)

    def update_priorities(self, source: Source, keys: Array, priorities: Array) -> None:
        """Send priorities to where a batch came from, unless that process is gone; nobody waits for it."""
        assert source.shard is not None
        shard = self._all[source.shard]
        if shard.life == source.life:
            self._engine.call(shard.handle, "update_priorities", keys, priorities)


class ShardedReplay:
    """Stands in for a :class:`MixedSequences` while the agent's sequences are elsewhere.

    A batch's share of the agent's own comes from one shard, drawn by how much its sequences weigh together, so that a
    sequence is as likely as in one large replay; its weights are made relative to the largest one anywhere.
    Demonstrations stay here.

    :param local: whose demonstrations, share and counters these are
    :param agent: the agent's own
    :param batch_size: of the batches asked for beforehand
    :param prefetch: batches asked for beforehand
    :param beta: how much importance weights correct
    """

    def __init__(
        self, local: MixedSequences, agent: Shards, batch_size: int, prefetch: int, beta: float
    ) -> None:
        self.agent = agent
        self.demonstrations = local.demonstrations
        self.share = local.share
        self.agent_draws, self.demonstration_draws = local.agent_draws, local.demonstration_draws
        self._local = local
        self._batch_size = batch_size
        self._prefetch = prefetch
        self._beta = beta
        self._ready: deque[tuple[Source, Batch | None]] = deque()

    @property
    def is_ready(self) -> bool:
        """Whether there is a batch at hand."""
        return bool(self._ready)

    def ask(self) -> None:
        """Ask for batches until enough are at hand or on their way."""
        now = time.monotonic()
        while len(self._ready) + self.agent.on_their_way(now) < self._prefetch:
            n = self._batch_size - int((np.random.random_sample(self._batch_size) < self.share).sum())
            if self.demonstrations is not None and (n == 0 or len(self.agent) == 0):
                self._ready.append((Source(None, 0), None))
            elif not self.agent.ask(n):
                return

    def take_in(self, ref: Ref) -> None:
        """Take in an answer, if it is one of a shard's."""
        found = self.agent.take_in(ref)
        if found is not None:
            self._ready.append(found)

    def sample(self, batch_size: int, share: float | None = None) -> DrawnAfar:
        """Return the batch at hand, the agent's sequences first, then demonstrations.

        :param batch_size: as promised
        :param share: 1 for demonstrations alone; else None
        :raises IndexError: when none is at hand
        """
        source, batch = (Source(None, 0), None) if share == 1 else self._ready.popleft()
        parts: list[Sequences] = []
        agent_keys, weights = np.zeros(0, np.int64), np.zeros(0)
        if batch is not None:
            parts.append(_writable(batch.sequences))
            agent_keys = batch.keys
            weights = batch.weights
            if batch.standing.least > 0:
                weights = weights * min(1.0, self.agent.least() / batch.standing.least) ** self._beta
        demonstration_keys = np.zeros(0, np.int64)
        demonstrated = batch_size - len(agent_keys)
        if demonstrated:
            assert self.demonstrations is not None
            demonstration_keys, others = self.demonstrations.draw(demonstrated)
            parts.append(self.demonstrations.take(demonstration_keys))
            weights = np.concatenate([weights, others])
        self.agent_draws += len(agent_keys)
        self.demonstration_draws += demonstrated
        is_demonstration = np.arange(batch_size) >= len(agent_keys)
        burn_in, device = self._local.agent.window.burn_in, self._local.device
        sample = tensors(join(parts), weights, is_demonstration, burn_in, device)
        return DrawnAfar(sample, source, agent_keys, demonstration_keys)

    def update_priorities(self, drawn: DrawnAfar, priorities: Array) -> None:
        """Report the priorities of a batch, ``(B,)``, each buffer its own."""
        n = len(drawn.agent_keys)
        if n:
            self.agent.update_priorities(drawn.source, drawn.agent_keys, priorities[:n])
        if self.demonstrations is not None:
            self.demonstrations.update_priorities(drawn.demonstration_keys, priorities[n:])

    def checkpoint_state(self) -> dict[str, Any]:
        """Return what a replay without the agent's own sequences would: those stay behind."""
        self.hand_back()
        return self._local.checkpoint_state()

    def hand_back(self) -> None:
        """Let the local replay know how often was drawn."""
        self._local.agent_draws, self._local.demonstration_draws = self.agent_draws, self.demonstration_draws


def _writable(sequences: Sequences) -> Sequences:
    """Copy the small arrays, which become tensors as they are: what lies in shared memory cannot be written to."""
    return Sequences(
        sequences.observations,
        sequences.last_actions,
        sequences.last_rewards,
        sequences.lengths.copy(),
        sequences.terminated.copy(),
        sequences.burnt.copy(),
        sequences.states.copy(),
    )
