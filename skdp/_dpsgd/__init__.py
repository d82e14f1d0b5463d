"""How models learn: private gradient descent, from a plan over its steps to what is published.

- `plan`: the one place where clip, noise, sampling and accounting meet; `loop`: optimizers, averages, and the steps
- `solver`: the fit of an estimator by one run; `linear_solver`, `network_solver`: how a kind of model is planned
- `targets`: classes or numbers; `mean_correction`: releases beside the steps; `estimator`: the base class, progress
- `defaults`: rules in public quantities; `checkpoint`: a run on disk
- `models`: rows bound to a loss, in memory; `streamed`, `dask`: rows that are not
"""
