"""Recurrent replay over many processes: actors that act, shards that remember, one learner.

The learner (:mod:`~rlexp.distributed.training`) is the process that a person starts. It asks for everything and never
waits for any one: it takes in whatever has arrived and goes on. Only :mod:`~rlexp.distributed.on_ray` knows Ray.
"""
