"""How models learn: private gradient descent, from a plan over its steps to what is published.

- `plan`: the one place where clip, noise, sampling and accounting meet
- `loop`: optimizers, averages, and the steps
- `solver`: the fit of an estimator by one run, and what all solvers share
- `linear_solver`: how linear models are planned and published
- `network_solver`: how networks are
- `targets`: classes or numbers, and the base classes of classifiers and regressors
- `mean_correction`: counts and means, which are released beside the steps
- `estimator`: the base class, and the bar of progress
- `defaults`: rules in public quantities
- `checkpoint`: a run on disk
- `models`: rows in memory, bound to a loss
- `streamed`: rows that one machine reads block by block
- `dask`: rows on many machines
"""
