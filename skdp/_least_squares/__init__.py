"""Private least squares: the solver of noisy normal equations, and its estimators."""
