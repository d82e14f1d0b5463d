"""Tables that are measured again, of rows of a fitted model: how far another fit would have been from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.marginals.contingency_tables import ColumnSet, Interaction
from skdp.synthesis.marginals.denoising import TargetTables, targets_of
from skdp.synthesis.marginals.noisy_tables import LevelRows, Measurement, ModelTerms, iterations
from skdp.synthesis.marginals.product_mixture import Mixture, fit_mixture

LEAST_ITERATIONS = 1000
"""Of the fit to tables, since one that ends early shrinks what they tell."""


class Redrawing(NamedTuple):
    """How the rows of a fit were measured, and what was released of them.

    Attributes
    ----------
    measurement : Measurement
    terms : ModelTerms
    noisy : mapping of tuple of int to Interaction
    buys_label_shares : bool
        Whether labels of samples are drawn by the shares that a fit finds.

    Notes
    -----
    **Guarantees.** It holds public numbers and what was released, and nothing else: all that it does is
    post-processing.

    It is a parametric bootstrap: as many rows as the fit had are drawn from a model, and are measured as they were,
    with noise of the same size. So what is found is as far from the model as the model is from the truth, by sampling
    and noise together, if the model holds. Tables are not shrunk: where noise hides an interaction, shrinking takes it
    off in each of them, and the spread with it.
    """

    measurement: Measurement
    terms: ModelTerms
    noisy: Mapping[ColumnSet, Interaction]
    buys_label_shares: bool

    def model_of(self, noisy: Mapping[ColumnSet, Interaction], rng: np.random.Generator) -> Mixture:
        """Return a model of noisy tables, which are not shrunk: as if they had no noise."""
        terms, how = self.terms, self.measurement
        exact = {columns: each._replace(deviation=0.0) for columns, each in noisy.items()}
        by_rule = iterations(how.n / how.noise_of_rows, terms.with_triples) if terms.n_iter is None else terms.n_iter
        targets = targets_of(terms.levels, exact, terms.exclusions)
        return fit_mixture(terms.levels, targets, terms.n_components, max(by_rule, LEAST_ITERATIONS), rng)

    def measure_again(self, components: Any, prevalences: np.ndarray | None, rng: np.random.Generator) -> TargetTables:
        """Return noisy tables of rows that are drawn from a model.

        Parameters
        ----------
        components : ndarray of shape (n_components, sum of levels)
            Of the model.
        prevalences : ndarray of shape (n_classes,) or None
            Of the classes among these rows; None without labels.
        rng : numpy.random.Generator
        """
        n = round(self.measurement.n)
        labels = None if prevalences is None else rng.choice(len(prevalences), n, p=prevalences)
        rows = Mixture(tuple(self.terms.levels), components).draw(n, rng, self.terms.exclusions, labels)
        codes = LevelRows([np.ascontiguousarray(column) for column in rows.T])
        # A model that selects no pairs is of no use here.
        terms = self.terms if self.measurement.n_rounds else self.terms._replace(n_iter=1)
        return self.measurement.measure(codes, terms, SecretStream(rng.bytes(32)))[0]
