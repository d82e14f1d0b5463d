"""Older accounting: the `moments` accountant, `composition` theorems, and the central limit (`gdp`)."""
