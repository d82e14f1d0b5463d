"""Estimators trained by noisy gradient descent: runs, charge, training and publication; classifiers and regressors."""
