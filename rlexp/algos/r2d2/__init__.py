"""Recurrent replay: R2D2, and the parts that R2D3 and behaviour cloning share with it."""
