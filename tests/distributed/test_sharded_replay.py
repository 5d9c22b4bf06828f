"""Several shards together draw as one large replay would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from rlexp.buffers.mixed_sequences import MixedSequences
from rlexp.buffers.prioritized_sequences import PrioritizedSequences
from rlexp.buffers.sequence_builder import SequenceLayout, Sequences, empty_sequences, take
from rlexp.distributed import sharded_replay
from rlexp.distributed.replay_shard import ReplayShard
from rlexp.distributed.sharded_replay import ShardedReplay, ShardPool
from tests.distributed.one_process import OneProcess, Promise

_LAYOUT = SequenceLayout(0, 4, 4)
_SPACE = spaces.Box(0, 1000, (1,), np.float32)
_ARGUMENTS: tuple[Any, ...] = (_LAYOUT, _SPACE, 2, 0)
_ALPHA, _BETA = 0.9, 0.6


def _numbered(n: int) -> Sequences:
    found = empty_sequences(n, _LAYOUT, _SPACE, 2, 0)
    assert isinstance(found.observations, np.ndarray)
    found.observations[:] = np.arange(n)[:, None, None]
    return found


class _Setup:
    def __init__(self, shards: int, ratio: float = 0.0, prefetch: int = 2, batch_size: int = 64) -> None:
        np.random.seed(0)
        self.engine = OneProcess()
        self.said: list[str] = []
        local = PrioritizedSequences(8, *_ARGUMENTS)
        demonstrations = None
        if ratio:
            demonstrations = PrioritizedSequences(8, *_ARGUMENTS)
            demonstrations.add(_numbered(8))
        device = th.device("cpu")
        self.shards = ShardPool(self.engine, self._start, shards, self.said.append)
        self.replay = ShardedReplay(
            MixedSequences(local, demonstrations, ratio, device), self.shards, batch_size, prefetch, _BETA
        )

    def _start(self, number: int, generation: int) -> Any:
        arguments = (*_ARGUMENTS, "proportional", _ALPHA, _BETA, 0.0)
        return self.engine.start(ReplayShard, 10 * number + generation, 64, *arguments)

    def add(self, sequences: Sequences, priorities: Any) -> None:
        complete = Promise()
        complete.settle((sequences, priorities))
        self.shards.add(complete, len(sequences))
        self.turn()

    def turn(self) -> None:
        for ref in self.engine.wait(self.shards.refs(), 0.0):
            self.replay.handle_result(ref)


def test_two_shards_draw_and_weigh_as_one_replay() -> None:
    setup = _Setup(shards=2)
    priorities = np.array([0.1, 5.0, 0.3, 0.2, 2.0, 0.7, 0.05, 1.0])
    everything = _numbered(8)
    for k in range(8):  # in turns, so that the masses of the two differ
        setup.add(take(everything, np.array([k])), priorities[k : k + 1])
    assert len(setup.shards) == 8
    counts, weights = np.zeros(8), np.zeros(8)
    for _ in range(300):
        while not setup.replay.has_batch:
            setup.replay.request_batches()
            setup.turn()
        drawn = setup.replay.sample(64)
        assert isinstance(drawn.sample.observations, th.Tensor)
        who = drawn.sample.observations[0, :, 0].numpy().astype(int)
        np.add.at(counts, who, 1)
        weights[who] = drawn.sample.weights.numpy()
    masses = priorities**_ALPHA
    expected = masses / masses.sum()
    assert np.abs(counts / counts.sum() - expected).max() < 0.015
    # Two shards of a batch each: nothing but the whole replay's smallest mass can have a weight of 1.
    np.testing.assert_allclose(weights, (masses / masses.min()) ** -_BETA, rtol=1e-5)


def test_priorities_come_back_to_the_sequences_drawn() -> None:
    setup = _Setup(shards=2, batch_size=8)
    for k in range(4):
        setup.add(take(_numbered(4), np.array([k])), np.array([1.0]))
    while not setup.replay.has_batch:
        setup.replay.request_batches()
        setup.turn()
    drawn = setup.replay.sample(8)
    setup.replay.update_priorities(drawn, np.full(8, 9.0))
    assert drawn.source.shard is not None
    process = setup.engine.processes[drawn.source.shard]
    setup.engine.work_off()
    assert process.object._store.max_priority == 9.0
    other = setup.engine.processes[1 - drawn.source.shard]
    assert other.object._store.max_priority == 1.0


def test_a_dead_shard_begins_again_and_says_what_is_lost() -> None:
    setup = _Setup(shards=2, batch_size=8)
    for k in range(6):
        setup.add(take(_numbered(6), np.array([k])), np.array([1.0]))
    for _ in range(3):
        setup.turn()
    while True:
        setup.replay.request_batches()
        setup.turn()
        if setup.replay.has_batch:
            drawn = setup.replay.sample(8)
            if drawn.source.shard == 0:
                break
    setup.engine.kill(setup.engine.processes[0])
    for _ in range(20):
        setup.replay.request_batches()
        setup.turn()
        if setup.shards.deaths:
            break
        while setup.replay.has_batch:
            setup.replay.sample(8)
    assert setup.shards.deaths == 1 and setup.shards.lost == 3 and len(setup.shards) == 3
    assert "shard 0 died" in setup.said[0] and "3 sequences lost" in setup.said[0]
    # Priorities of a batch from the dead one are not reported to its successor, which has other sequences.
    setup.replay.update_priorities(drawn, np.full(8, 9.0))
    setup.engine.work_off()
    assert all(one.object._store.max_priority == 1.0 for one in setup.engine.alive(ReplayShard))


def test_nothing_is_asked_of_a_shard_that_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded_replay, "_TIMEOUT_S", -1.0)  # whoever has not answered at once is overdue
    setup = _Setup(shards=2, batch_size=4)
    for k in range(4):
        setup.add(take(_numbered(4), np.array([k])), np.array([1.0]))
    setup.engine.processes[0].hangs = True
    for _ in range(50):
        setup.replay.request_batches()
        setup.turn()
        if setup.replay.has_batch:
            assert setup.replay.sample(4).source.shard == 1
    assert len(setup.engine.processes[0].queue) <= 1


def test_sequences_that_got_lost_on_their_way_kill_nobody() -> None:
    setup = _Setup(shards=1)
    gone = Promise()
    gone.settle(error=RuntimeError("gone"))
    setup.shards.add(gone, 3)
    setup.turn()
    assert setup.shards.deaths == 0 and setup.shards.lost == 3 and setup.shards.expected_size == 0


def test_demonstrations_stay_with_the_learner() -> None:
    setup = _Setup(shards=1, ratio=0.25, batch_size=32)
    setup.replay.request_batches()
    drawn = setup.replay.sample(32)
    assert drawn.sample.is_demonstration.sum() == 32, "while the agent has none, all are demonstrations"
    setup.add(_numbered(8), np.ones(8))
    ratios = []
    for _ in range(200):
        while not setup.replay.has_batch:
            setup.replay.request_batches()
            setup.turn()
        drawn = setup.replay.sample(32)
        ratios.append(drawn.sample.is_demonstration.mean().item())
        assert len(drawn.agent_keys) + len(drawn.demonstration_keys) == 32
        setup.replay.update_priorities(drawn, np.where(drawn.sample.is_demonstration.numpy() > 0, 7.0, 1.0))
    assert abs(np.mean(ratios[5:]) - 0.25) < 0.03
    assert (
        setup.replay.demonstrations is not None
        and setup.replay.demonstrations.max_priority == pytest.approx(7.0, abs=1e-3)
    )
    assert setup.shards.max_priority == 1.0
