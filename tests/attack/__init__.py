"""Attacks on the whole program: odd command lines, damaged files, faulty environments, signals; ``make attack``."""
