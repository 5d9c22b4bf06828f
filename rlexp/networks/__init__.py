"""Networks shared by several algorithms.

``cnn``, ``minigrid`` and ``encoder`` read observations; ``recurrent``, ``two_branch``, ``layer_norm_lstm`` and
``unroll`` are recurrent; ``dueling`` is a head; ``latent`` is SLAC's model; ``policies`` is the base of actor-critic
policies.
"""
