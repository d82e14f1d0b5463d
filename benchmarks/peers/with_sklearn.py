"""scikit-learn, without privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.limits import Taken, lots_beforehand
from peers.registry import contestant
from peers.tasks import Task


@contestant("scikit-learn partial_fit", "lots", role="plain")
def partial_fit(task: Task, X: Any, y: Any) -> Any:
    """`MLPClassifier` with plain SGD, on lots gathered beforehand; without hidden units, logistic regression."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(
        task.widths[1:-1], solver="sgd", alpha=0.0, batch_size=task.lot, learning_rate_init=0.1, momentum=0.0,
        shuffle=False,
    )  # fmt: skip
    classes, take = np.arange(task.n_classes), Taken(lots_beforehand(task, X, y))
    return lambda: model.partial_fit(*take(), classes=classes)


@contestant("scikit-learn PCA", "pca", role="limit")
def pca(task: Task, X: Any, y: Any) -> Any:
    """By the eigenvectors of the covariance."""
    from sklearn.decomposition import PCA

    return lambda: PCA(task.widths[1], svd_solver="covariance_eigh").fit(X)


@contestant("scikit-learn LogisticRegression", "fit", role="plain")
def logistic_regression(task: Task, X: Any, y: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return lambda: LogisticRegression().fit(X, y)
