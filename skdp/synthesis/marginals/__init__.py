"""Synthetic tables from noisy marginals.

- `column_levels`: a column as levels, and how numbers lie within bins.
- `contingency_tables`: counts by sets of columns as one vector, and its sensitivity.
- `denoising`: tables of probabilities from noisy interactions.
- `noisy_columns`: what is public of a table, and estimates of what the schema leaves out.
- `noisy_tables`: what is measured, and with which part of the budget.
- `product_mixture`: a mixture of products of categoricals, fitted and drawn from.
- `sampled_tables`: synthetic rows and tables, and estimates on several of them.
- `synthesizer`: `synthesize` and `DPMarginalSynthesizer`.
- `table_form`: levels as a table of the library and types of the private one.
"""
