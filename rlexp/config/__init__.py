"""Configuration of a run: names and types (schema), ranges (check), and the folder that follows from it (paths)."""
