"""The environments, one package each: ``<name>/spec.py`` says what there is, ``<name>/env.py`` is the environment.

Neither this package nor a spec imports gymnasium; :mod:`rlexp.envs.registration` does.
"""
