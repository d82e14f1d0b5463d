"""Rows bound to a loss: the clipped sums of their gradients.

- `linear`: what all models share, and linear models
- `linear_layouts`: linear models by columns, and by matrix products
- `one_hot`: linear models of one-hot rows
- `network`: dense networks
- `duplicate_rows`: models of rows that repeat
"""
