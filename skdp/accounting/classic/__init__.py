"""Older accounting: the `moments` accountant and `composition` theorems."""
