"""How models learn: private gradient descent, from a plan over its steps to what is published.

- `plan`: the one place where clip, noise, sampling and accounting meet; `loop`: the steps; `optimizers`, `averaging`
- `models`: rows bound to a loss; `solvers`: how a kind of model is planned and published; `outputs`: classes or targets
- `estimator`, `run`: a fit from its parameters on; `defaults`: rules in public quantities; `checkpoint`, `run_lock`: a
  run on disk; `progress`: the bar
- `streamed`, `dask`: rows that are not in memory
"""
