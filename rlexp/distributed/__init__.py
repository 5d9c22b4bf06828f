"""Distributed recurrent replay: actors, replay shards and one learner, each in a separate process (Ape-X, R2D2).

========================  ==========================================================  =================================
module                    what it holds                                               runs in
========================  ==========================================================  =================================
``training``              :class:`Training`: the training loop                        the learner, the driver
``actor_pool``            :class:`ActorPool`: keeps actors busy, replaces dead ones   the learner
``sharded_replay``        :class:`ShardedReplay`: samples batches from the shards     the learner
``update_ratio``          :class:`UpdateRatioLimiter`: updates per environment step   the learner
``worker``                :class:`EnvWorker`: steps environments with a policy copy   every actor
``replay_shard``          :class:`ReplayShard`: a part of the replay buffer           every shard
``engine``                :class:`Engine`: what all of this needs of a cluster        (a protocol)
``on_ray``                :class:`RayEngine`: the same on Ray; only it imports Ray    the learner
``guardian``              ends what Ray leaves behind, however the learner ends       a separate process
========================  ==========================================================  =================================

The learner sends asynchronous requests and never blocks on a single answer: it handles whatever has arrived and goes
on. Sequences travel from an actor straight to a shard; the learner sees only their reference. Horgan et al. 2018
("Distributed Prioritized Experience Replay"), Kapturowski et al. 2019 ("Recurrent Experience Replay in Distributed
Reinforcement Learning").
"""
