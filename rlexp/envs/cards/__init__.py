"""Card games that need a memory: POPGym's RepeatPrevious and Autoencode."""
