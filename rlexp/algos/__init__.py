"""One package for each algorithm, with its spec and settings in ``spec.py``; what several share is in ``common``.

An algorithm that extends another imports it: R2D3 and behaviour cloning R2D2, DQfD DQN; and the settings of TAM and of
recurrent PPO extend those of PPO.
"""
