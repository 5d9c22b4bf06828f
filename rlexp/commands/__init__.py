"""One small file per verb; each has ``main(argv) -> exit code``."""
