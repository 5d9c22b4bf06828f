"""What a run can be told: names and types (schema), ranges (check) and the folder that the words lead to (paths)."""
