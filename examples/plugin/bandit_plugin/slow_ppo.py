"""An algorithm from outside."""

from typing import Any

from stable_baselines3 import PPO


class SlowPPO(PPO):
    """PPO with an argument of its own."""

    def __init__(self, *arguments: Any, patience: int = 1, **others: Any) -> None:
        self.patience = patience
        self.updates = 0
        super().__init__(*arguments, **others)

    def train(self) -> None:
        """Count."""
        self.updates += self.patience
        super().train()
        self.logger.record("train/patience", self.updates)

    def checkpoint_state(self) -> dict[str, Any]:
        """Keep the count."""
        return {"updates": self.updates}

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Take the count back."""
        self.updates = state["updates"]
