"""One run, from its config to what it leaves in its folder."""
