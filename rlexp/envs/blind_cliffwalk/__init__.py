"""Blind Cliffwalk (Schaul et al. 2016, figure 1): success needs n right actions in a row."""
