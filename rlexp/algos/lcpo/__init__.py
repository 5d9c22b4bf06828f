"""Loop-clipping policy optimisation."""

from rlexp.algos.lcpo.lcpo import LCPO, MaskableLCPO

__all__ = ["LCPO", "MaskableLCPO"]
