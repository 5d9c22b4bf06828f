"""Two-zone data-centre cooling: 15-minute steps through a year, server load and time of day hidden.

The case study of Biemann et al. 2021 (doi 10.1145/3486611.3488730) on the two-zone building of Moriyama et al. 2018
(arXiv:1808.10427). One room per file::

    packages  fetch                   what comes from outside, and how it is had
    weather  building_model           years of weather; the building, and what is changed in it
    engine_process  engine            the EnergyPlus engine in a separate process, stepped over two pipes
    psychrometrics  plant  constants  the surrogate's physics, compiled, and its identified constants
    surrogate                         the same year without the engine
    task                              rewards, scalings, bounds, calendar
    controllers                       reference controllers
    env  months                       the task as a gymnasium environment; what of every month is recorded

How the constants were found and how close all this comes to the reference: :mod:`rlexp.studies`.
"""
