"""Classic control with half of the state hidden: what is left must be remembered or inferred."""
