"""Rényi divergences: of a composition (`rdp`), of one release (`mechanisms`, `sampled`), and under `selection`."""
