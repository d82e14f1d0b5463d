"""Training with DP-SGD, from the plan of a run to the published model.

- `plan`: the plan of a run, which combines clipping, noise, sampling and accounting
- `loop`: optimizers, averages of iterates, and the training loop
- `solver`: the fit of an estimator in one run, and the base class of solvers
- `linear_solver`: solvers of linear models
- `network_solver`: solver of neural networks
- `targets`: classes, labels and regression targets, and the base classes of classifiers and regressors
- `mean_correction`: class counts and means, which are released in addition to the steps
- `estimator`: the base class of estimators, and the progress bar
- `defaults`: default parameters from public quantities
- `checkpoint`: the state of a run on disk
- `models`: rows in memory with a loss
- `streamed`: data that one machine reads in chunks
- `dask`: distributed data
"""
