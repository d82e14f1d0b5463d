"""Rényi divergences of a composition (`rdp`) and of one release (`mechanisms`)."""
