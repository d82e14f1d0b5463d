"""Privacy events (frozen specifications, named as in dp-accounting) and their composition."""
