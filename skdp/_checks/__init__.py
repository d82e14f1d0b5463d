"""Validation of input: parameters, cells, tables, data sources, targets and weights.

An error message contains the parameter and the remedy, never a private value.

- `parameters`: public parameters, including bounds of columns
- `frames`: data frames of every library, through narwhals
- `numbers`: cells: which of them are numbers, and error messages without their values
- `rows`: arrays and data frames of rows, labels and classes, and public facts about rows
- `table`: columns of any type, as numbers, days, keys or boolean values
- `sources`: data that are not in memory
- `groups`: the privacy unit, a row or all rows of one group
- `weights`: sample weights and class weights
- `targets`: regression targets between public bounds
- `leaks`: records of data that a fit read outside the privacy guarantee
- `notices`: quality diagnostics (warnings)
"""
