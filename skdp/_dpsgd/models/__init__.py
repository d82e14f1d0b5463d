"""Rows bound to a loss: the clipped sums of their gradients."""
