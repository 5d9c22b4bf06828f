"""``env=atari``: games of the Arcade Learning Environment (package ``ale-py``)."""
