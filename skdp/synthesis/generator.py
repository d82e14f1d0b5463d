"""Base class of private generators: a fit to rows and optional labels, and samples at no additional privacy cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._checks.leaks import report_classes_read
from skdp._checks.parameters import check_count, read_real, show
from skdp._checks.rows import check_classes, check_labels, classes_of, encode_labels
from skdp._checks.weights import WeightReader
from skdp._dpsgd.models.network import split_tables
from skdp.accounting import DpEvent, GaussianDpEvent
from skdp.base.estimator import BudgetedEstimator
from skdp.base.fit import Fit, begin
from skdp.mechanisms.streams import SecretStream

MARK = 4.0
"""Value of a label among the inputs, in its column; 0 is in all others. With 1 it had no effect
(docs/synthetic_data.md).
"""


def start_tables(tables: list[np.ndarray], stream: SecretStream) -> None:
    """Fill tables of zeros with normal weights of variance 2 / inputs (He et al. 2015)."""
    for table in tables:
        weights = table[:-1]
        weights[:] = stream.normal(weights.size).reshape(weights.shape) * math.sqrt(2.0 / len(weights))


def with_labels(values: np.ndarray, codes: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Return values, a column for each class, `MARK` in that of the row's, and a column of ones."""
    n, d = values.shape
    joined = np.zeros((n, d + n_classes + 1), values.dtype)
    joined[:, :d] = values
    if codes is not None:
        joined[np.arange(n), d + codes] = MARK
    joined[:, -1] = 1.0
    return joined


@dataclass(frozen=True)
class GeneratorNetwork:
    """A network from Gaussian noise and a label to a row in [-1, 1], with ReLU and a final hyperbolic tangent.

    Each row is a function of its own noise and label alone: there is no batch normalization.

    Parameters
    ----------
    n_latent : int
        Number of noise values for a row.
    n_classes : int
        0 without labels.
    hidden : tuple of int
        Widths of the hidden layers.
    n_features : int
    """

    n_latent: int
    n_classes: int
    hidden: tuple[int, ...]
    n_features: int

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.n_latent + self.n_classes, *self.hidden, self.n_features)

    def rows(self, theta: np.ndarray, latent: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Make rows, of shape (m, n_features), of noise of shape (m, n_latent) and the numbers of their labels."""
        return self._layers(theta, latent, codes)[-1]

    def gradient(
        self,
        theta: np.ndarray,
        latent: np.ndarray,
        codes: np.ndarray | None,
        derivative: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """Derivative of a sum over rows by the parameters, of shape (p,).

        Parameters
        ----------
        theta : ndarray of shape (p,)
        latent : ndarray of shape (m, n_latent)
        codes : ndarray of shape (m,) or None
        derivative : callable
            Takes rows, and returns the derivative of the sum by them.
        """
        outputs = self._layers(theta, latent, codes)
        tables, gradient = split_tables(theta, self.widths), np.empty_like(theta)
        parts = split_tables(gradient, self.widths)
        delta = derivative(outputs[-1]) * (1.0 - outputs[-1] * outputs[-1])
        for k in range(len(tables) - 1, -1, -1):
            np.matmul(outputs[k].T, delta, out=parts[k])
            if k:
                delta = (delta @ tables[k][:-1].T) * (outputs[k][:, :-1] > 0)
        return gradient

    def _layers(self, theta: np.ndarray, latent: np.ndarray, codes: np.ndarray | None) -> list[np.ndarray]:
        """Inputs of the layers, with a 1 at the end of each row, and the output of the last."""
        tables = split_tables(theta, self.widths)
        outputs = [with_labels(latent, codes, self.n_classes)]
        for table in tables[:-1]:
            values = np.ones((len(latent), table.shape[1] + 1), theta.dtype)
            np.matmul(outputs[-1], table, out=values[:, :-1])
            np.maximum(values, 0, out=values)
            outputs.append(values)
        made = outputs[-1] @ tables[-1]
        outputs.append(np.tanh(made, out=made))
        return outputs


ClassesAndCodes = tuple[np.ndarray, np.ndarray]
"""The classes, and the number of the class of each row."""


class PrivateGenerator(BudgetedEstimator):
    """Base class of private generators.

    Subclasses have the parameters of `BudgetedEstimator`, ``classes``, ``class_prevalences`` and ``weight_bound``. They
    implement `_read_parameters`, `_event_at`, `_read_rows`, `_learn` and `_draw`. With labels, `_learn` stores
    `_chosen_shares` as ``class_prevalences_``.

    Notes
    -----
    **Guarantees.**

    - ``sample`` is a function of the fitted state and of its own `random_state`, so any number of calls has no
      additional privacy cost. The noise of the fit does not depend on that `random_state`.
    - Labels of samples are drawn uniformly, by public prevalences, or by the noisy counts of the fit; never by exact
      counts. Later changes of the parameters do not change them.
    """

    classes: Any
    class_prevalences: Any
    weight_bound: Any
    classes_: np.ndarray
    class_prevalences_: np.ndarray
    _fitted_with_labels: bool
    """Published with all else that was learned; an interrupt may leave `classes_` of an earlier fit behind."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the generator.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,) or None, default=None
            Private labels. If set, ``sample`` returns labels too.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, clipped to `weight_bound` and divided by it. The contribution of a row is
            multiplied by the result; a row of weight 0 is a zeroed-out record. Samples are unweighted draws from the
            weighted distribution.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or a household, or the name of a column of `X`, which
            is then not a feature. If set, the guarantee is for all rows of one group, otherwise for one row.

        Returns
        -------
        self : object
            Fitted generator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. No budget was consumed.
        BudgetExceededError
            The budget of the accountant does not permit the fit. No budget was consumed.
        """
        fit = begin(self, X, groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        model._check_label_parameters()
        model._read_parameters(fit.n_features)
        fit.plan(model._event_at(fit.n_features))

        rows = fit.read_rows(type(model)._read_rows)
        labels = fit.read(model._read_labels, y, fit.n_rows, fit.n)
        weights = fit.read(weight_reader.read, sample_weight, fit.n_rows)
        fit.charge()

        has_weights = sample_weight is not None or fit.units is not None
        fit.learn(model._learn, fit, rows, labels, weights if has_weights else None)
        return fit.publish(n_samples_=fit.n, weight_bound_=weight_reader.bound)

    def sample(self, n_samples: int, random_state: Any = None) -> Any:
        """Draw synthetic rows at no additional privacy cost.

        Parameters
        ----------
        n_samples : int
            Number of rows, 0 or more.
        random_state : int, RandomState instance, Generator instance or None, default=None
            Source of the draws. It is independent of the noise of the fit, and can be published.

        Returns
        -------
        X : ndarray or frame of shape (n_samples, n_features)
            Synthetic rows.
        y : ndarray of shape (n_samples,)
            Their labels. Returned only if the generator was fitted with labels.
        """
        check_is_fitted(self)
        n = check_count("n_samples", n_samples, at_least=0, constraint="a nonnegative integer")
        rng = generator_of(random_state)
        if not self._fitted_with_labels:
            return self._draw(n, None, rng)[0]
        X, codes = self._draw(n, rng.choice(len(self.classes_), n, p=self.class_prevalences_), rng)
        return X, self.classes_[codes]

    def sample_blocks(self, n_samples: int, block_size: int = 100_000, random_state: Any = None) -> Iterator[Any]:
        """Draw synthetic rows in chunks, for samples that do not fit in memory, at no additional privacy cost.

        Parameters
        ----------
        n_samples : int
            Total number of rows.
        block_size : int, default=100_000
            Largest number of rows of a chunk.
        random_state : int, RandomState instance, Generator instance or None, default=None
            Source of the draws, as for ``sample``.

        Returns
        -------
        blocks : iterator
            Results as those of ``sample``.
        """
        check_is_fitted(self)
        n = check_count("n_samples", n_samples, at_least=0, constraint="a nonnegative integer")
        step = check_count("block_size", block_size, constraint="a positive integer")
        rng = generator_of(random_state)
        return (self.sample(min(step, n - start), rng) for start in range(0, n, step))

    # --- definitions of a subclass ---

    def _read_parameters(self, n_features: int | None) -> None:
        """Check parameters for a table with this number of columns."""
        raise NotImplementedError(f"{type(self).__name__} must implement _read_parameters.")

    def _event_at(self, n_features: int | None) -> Callable[[float], DpEvent]:
        """Return the event of a fit as a function of its noise multiplier."""
        return GaussianDpEvent

    def _read_rows(self, X: Any, *, reset: bool) -> Any:
        """Return checked rows."""
        raise NotImplementedError(f"{type(self).__name__} must implement _read_rows.")

    def _learn(self, fit: Fit, rows: Any, labels: ClassesAndCodes | None, weights: Any) -> None:
        """Fit to rows, with weights in [0, 1], or None if each row has weight 1."""
        raise NotImplementedError(f"{type(self).__name__} must implement _learn.")

    def _draw(self, n: int, labels: np.ndarray | None, rng: np.random.Generator) -> tuple[Any, np.ndarray | None]:
        """Return n rows in the form of those of the fit, and the positions of their labels, which are `labels`."""
        raise NotImplementedError(f"{type(self).__name__} must implement _draw.")

    # --- labels ---

    def _check_label_parameters(self) -> None:
        """Check `classes` and `class_prevalences` against the labels."""
        classes = None if self.classes is None else check_classes("classes", self.classes)
        if not isinstance(self.class_prevalences, str):
            shares = _read_shares(self.class_prevalences)
            if classes is None or len(shares) != len(classes):
                raise ValueError(
                    f"`class_prevalences` must have one entry per class, in ascending order, got {len(shares)}."
                )
        elif self.class_prevalences not in ("estimate", "uniform"):
            raise ValueError(
                f"`class_prevalences` must be 'estimate', 'uniform' or a list of public prevalences, got "
                f"{show(self.class_prevalences)}."
            )

    def _read_labels(self, y: Any, n_samples: int, n_public: int) -> ClassesAndCodes | None:
        """Return the classes and the class of each row, None without labels."""
        if n_public < 2:  # not in `_read_rows`, which follows the charge after a private step
            what = self._units_in_words()
            name = "sample" if what == "rows" else "group"
            raise ValueError(f"X has {n_public} {name}(s), but a synthesizer requires at least 2 {what}.")
        self._fitted_with_labels = y is not None
        if y is None:
            return None
        if self.classes is not None:
            classes = check_classes("classes", self.classes)
            return classes, encode_labels(check_labels(y, n_samples, classes=classes), classes)
        report_classes_read(self)
        labels = check_labels(y, n_samples)
        classes = classes_of(labels)
        return classes, encode_labels(labels, classes)

    def _estimates_shares(self) -> bool:
        """Whether labels of samples are drawn by noisy class prevalences."""
        return isinstance(self.class_prevalences, str) and self.class_prevalences == "estimate"

    def _chosen_shares(self, estimated: np.ndarray) -> np.ndarray:
        """Return the class prevalences of samples; `estimated` are noisy ones, if they are released."""
        n_classes = len(self.classes_)
        if not isinstance(self.class_prevalences, str):
            return _read_shares(self.class_prevalences)
        return np.full(n_classes, 1.0 / n_classes) if self.class_prevalences == "uniform" else estimated


def _read_shares(given: Any) -> np.ndarray:
    """Return public prevalences that sum to one."""
    values = given.tolist() if isinstance(given, np.ndarray) else given
    shares = [read_real(each) for each in values] if isinstance(values, list | tuple) else [None]
    found = np.array([-1.0 if share is None else share for share in shares])
    if not len(found) or not (found >= 0).all() or not 0 < found.sum() < np.inf:
        raise ValueError(
            f"`class_prevalences` must be nonnegative numbers, one per class, not all 0, got {show(given)}."
        )
    return found / found.sum()


def generator_of(random_state: Any) -> np.random.Generator:
    """Return a generator for samples, which are public."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None:
        return np.random.default_rng()
    constraint = "a nonnegative integer, a RandomState, a Generator or None"
    return np.random.default_rng(check_count("random_state", random_state, at_least=0, constraint=constraint))
