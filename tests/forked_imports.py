"""What takes long to import and changes nothing by being imported."""

import hydra._internal.hydra  # noqa: F401
import matplotlib.figure  # noqa: F401
import sb3_contrib  # noqa: F401
import scipy.stats  # noqa: F401
import stable_baselines3  # noqa: F401
import torch
import torch._dynamo
import wandb  # noqa: F401

torch.set_num_threads(1)
