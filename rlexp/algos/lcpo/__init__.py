"""Loop-clipping policy optimisation."""
