"""Many runs: which must exist, how they are executed, how far they are."""
