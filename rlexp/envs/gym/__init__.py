"""``env=gym``: any environment registered with gymnasium."""
