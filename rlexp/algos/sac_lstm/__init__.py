"""Soft actor-critic with LSTMs."""

from rlexp.algos.sac_lstm.sac_lstm import SACLSTM

__all__ = ["SACLSTM"]
