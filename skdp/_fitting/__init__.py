"""Checks and publication around a private fit.

- `rows`, `cells`: checks of a table, its labels and weights
- `public_rules`, `public_steps`, `row_wise`: steps of a pipeline that read no row; `running` runs them, first on rows
  that are `made_up`
- `private_step`, `joint_fit`, `payment`: the protocol of private steps, a fit of several at once, and its charge
- `compositions`, `findings`, `totals`: what other meta-estimators read, and what their fits cost together
- `stack`, `callers`: fits that are called by other estimators; `releases`: what a state depends on, and its publication
"""
