"""Where metrics go: Stable-Baselines3 ``KVWriter`` classes for JSONL, Weights & Biases and TensorBoard."""
