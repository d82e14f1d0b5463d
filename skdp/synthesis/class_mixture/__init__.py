"""A mixture of normal rows for each class, from noisy moments."""
