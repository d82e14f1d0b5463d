"""What surrounds a private fit.

- `rows`, `cells`: the checks of a table, its labels and weights
- `public_rules`, `public_steps`, `row_wise`: which steps of a pipeline read no row; `running` runs them, first on rows
  that are `made_up`
- `private_step`, `joint_fit`, `payment`: the protocol of private steps, a fit of several at once, and its charge
- `callers`: whether somebody else's ``fit`` is calling; `releases`: what a state depends on, and how it is published
"""
