"""The Cambridge restaurant dialogue task: find a venue for a simulated user over a noisy channel.

An independent implementation of the CamRestaurants task of PyDial (Ultes et al. 2017) with the settings of
its benchmark (Casanueva et al. 2017, arXiv:1711.11023): an agenda-based user (Schatzmann et al. 2007), a
channel with DSTC 2 statistics, the focus belief tracker (Henderson et al. 2014), and 16 summary actions.
One room per file::

    acts  domain  goals                       what is said, known and wanted
    user  user_check  user_goal_change        the simulated user; user_state and user_parameters hold what it is
    channel  confusion                        the channel
    understanding  tracker  layout            the belief state and the vector that shows it
    summary  system_acts  handcrafted         the system's actions, masks, and a policy written by hand
    success  env  transcript  checks          the task as a gymnasium environment; factory wraps it for runs
    data                                      the shipped, invented venues

How close all this comes to the reference is measured in :mod:`rlexp.studies.dialogue_fidelity`.
"""
