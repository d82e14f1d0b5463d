"""Noisy tables of pairs and triples of columns, a mixture that agrees with them, and rows from it."""
