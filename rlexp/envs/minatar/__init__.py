"""``env=minatar``: the five MinAtar games (package ``minatar``)."""
