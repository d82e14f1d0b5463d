"""What comes in: parameters, cells, tables, sources of rows, targets and weights, each looked at in one place.

A refusal names the parameter and the remedy, never a private value.

- `parameters`: public parameters, bounds of columns among them
- `numbers`: cells, which of them are numbers, and refusals that show none
- `rows`: arrays and frames of rows, labels and classes, and what is public of rows
- `table`: columns of any type, as numbers, days, keys or truth values
- `sources`: rows that are not in memory
- `groups`: the privacy unit, a row or all rows of one label
- `weights`: weights of rows and of classes
- `targets`: targets of regressors, between public bounds
- `leaks`: what a fit reads without accounting for it
- `notices`: results that noise outweighs
"""
