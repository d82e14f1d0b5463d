"""Closed forms, and the searches and sums that they share.

- `numeric`: arrays of doubles, losses of sampled releases, and searches in one dimension: `bisect`, `Secant`,
  `minimize`
- `dominating`: a dominating pair as weighted losses, and what sampling makes of one
- `gaussian`: the plain Gaussian mechanism in closed form (Balle & Wang 2018, Theorem 8)
- `selection_law`: the number of trials under random stopping: its law, how it is drawn, and what it makes of a chain
  of outputs
"""
