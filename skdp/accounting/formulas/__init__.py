"""Closed forms and shared numerical methods.

- `numeric`: arrays of doubles, losses of sampled releases, and one-dimensional searches: `bisect`, `Secant`, `minimize`
- `dominating`: dominating pairs as weighted losses, and their subsampling
- `gaussian`: the Gaussian mechanism in closed form (Balle & Wang 2018, Theorem 8)
- `selection_law`: distribution of the number of trials under random stopping, and its sampling
"""
