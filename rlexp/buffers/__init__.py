"""Replay buffers, and the priority structures below them (without torch).

===========================  =================================================  =========================
class                        stores and samples                                 used by
===========================  =================================================  =========================
``NStepReplay``              transitions in a ring, sampled uniformly; n-step   DQN, ``replay=uniform``
                             returns are formed when they are sampled
``PrioritizedReplayBuffer``  the same, sampled by priority: proportional or     DQN, ``replay=proportional``
                             rank-based (Schaul et al. 2016)                    or ``rank``
``DemonstrationReplay``      the same, followed by demonstrations that are      DQfD
                             never overwritten; one distribution over both
``SequenceReplay``           transitions in a ring; sequences are cut out of    SAC-LSTM, SLAC
                             episodes when they are sampled
``PrioritizedSequences``     sequences of fixed length, cut when collected,     R2D2, R2D3, shards of
                             stored with recurrent state and priority           ``rlexp.distributed``
===========================  =================================================  =========================

``MixedSequences`` combines two ``PrioritizedSequences``, the agent's own and demonstrations, in every batch (R2D3).

ACER's trajectory replay, with the behaviour policy of every step, is in :mod:`rlexp.algos.acer`; on-policy rollouts are
Stable-Baselines3's. Below these: ``sequence_builder`` cuts sequences while they are collected, ``frame_store`` stores
stacked frames once, ``priorities`` turns priorities into probabilities on ``sum_tree`` or ``rank_heap``, ``chunked_io``
saves large arrays in chunks, ``jit`` compiles the inner loops with numba, and ``item_checks`` checks what they do not.
"""
