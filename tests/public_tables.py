"""Numeric tables, and the public steps that are run on them."""

import inspect

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp.image import PatchTransformer, ScatteringTransformer

N, D = 40, 4
KNOTS = np.linspace(-2.0, 2.0, 5)[:, None] * np.ones(D)


def numbers(dtype=np.float64, *, positive=False):
    rng = np.random.default_rng(0)
    drawn = np.round(rng.uniform(0.1, 2.0, (N, D)) if positive else rng.normal(0.0, 1.0, (N, D)), 3)
    drawn[:, 1] = 1.0  # a constant column
    drawn[:, 3] = np.where(rng.random(N) < 0.7, 0.0, drawn[:, 3])
    return (drawn * (100 if np.dtype(dtype).kind in "iu" else 1)).astype(dtype)


def with_row(table, row, values):
    changed = table.copy()
    changed[row] = values
    return changed


DENSE = ("array", "fortran", "frame")


class Case:
    """A step, and the tables on which it is replayed."""

    def __init__(self, step, *, kinds=DENSE, dtypes=("float64", "float32", "int64"), positive=False, gaps=False,
                 rounds=False):  # fmt: skip
        self.step, self.kinds, self.dtypes = step, kinds, dtypes
        self.positive, self.gaps = positive, gaps
        self.rounds = rounds  # matrix products: a row's rounding depends on its place among the rows


ALL = (*DENSE, "csr", "csr_array")
NUMERIC = {
    "FunctionTransformer": Case(FunctionTransformer(), kinds=ALL, gaps=True),
    "FunctionTransformer(log)": Case(FunctionTransformer(np.log), gaps=True),
    "FunctionTransformer(log1p, expm1)": Case(
        FunctionTransformer(np.log1p, np.expm1, check_inverse=False, validate=True)
    ),
    "FunctionTransformer(inverse only)": Case(FunctionTransformer(None, lambda X: X.mean(0)), gaps=True),
    "Normalizer": Case(Normalizer(), kinds=ALL),
    "Binarizer": Case(Binarizer(), kinds=ALL),
    "PolynomialFeatures": Case(PolynomialFeatures(), kinds=ALL),
    **{
        f"SplineTransformer({way})": Case(SplineTransformer(knots=KNOTS, extrapolation=way, degree=degree))
        for way, degree in (("constant", 3), ("linear", 1), ("continue", 2), ("periodic", 3))
    },
    "SimpleImputer": Case(
        SimpleImputer(strategy="constant", keep_empty_features=True),
        kinds=ALL, gaps=True, dtypes=("float64", "float32"),
    ),
    "SimpleImputer(whole numbers)": Case(
        SimpleImputer(strategy="constant", fill_value=7, keep_empty_features=True), dtypes=("int64",)
    ),  # sparse ones are rejected before scikit-learn 1.8, by their type
    "SimpleImputer(missing 1, sparse)": Case(
        SimpleImputer(missing_values=1, strategy="constant", fill_value=0, keep_empty_features=True),
        kinds=("csr", "csr_array"), dtypes=("float64",),
    ),
    "MissingIndicator": Case(MissingIndicator(features="all"), kinds=ALL, gaps=True),
    "GaussianRandomProjection": Case(GaussianRandomProjection(3, random_state=0), kinds=ALL, rounds=True),
    "SparseRandomProjection": Case(SparseRandomProjection(3, random_state=0), kinds=ALL, rounds=True),
    "RBFSampler": Case(RBFSampler(random_state=0), kinds=ALL, rounds=True),
    "PolynomialCountSketch": Case(PolynomialCountSketch(n_components=8, random_state=0), rounds=True),
    "AdditiveChi2Sampler": Case(AdditiveChi2Sampler(), kinds=ALL, positive=True),
    "SkewedChi2Sampler": Case(SkewedChi2Sampler(random_state=0), positive=True, rounds=True),
    "Pipeline": Case(make_pipeline(Normalizer(), "passthrough", None, PolynomialFeatures()), kinds=ALL),
    "FeatureUnion": Case(
        FeatureUnion([("a", Normalizer()), ("b", "passthrough"), ("c", "drop"), ("d", FunctionTransformer(np.abs))])
    ),
    "ColumnTransformer": Case(
        ColumnTransformer([("a", Normalizer(), [0, 1]), ("b", Binarizer(), slice(2, 3))], sparse_threshold=0)
    ),
    "ColumnTransformer(sparse parts)": Case(
        ColumnTransformer(
            [("a", Binarizer(), [0]), ("b", MissingIndicator(features="all", sparse=True), [3])],
            remainder="passthrough", sparse_threshold=0.0,
        ),
        kinds=ALL,
    ),
    **{
        f"ScatteringTransformer({way})": Case(
            ScatteringTransformer(J=1, L=2, normalization=way), dtypes=("uint8",), positive=True
        )
        for way in ("whitened", None)
    },
    "ScatteringTransformer(symmetric)": Case(
        ScatteringTransformer((2, 2), J=1, L=3, value_range=(0, 255), symmetric=True), dtypes=("uint8",), positive=True
    ),
    "PatchTransformer": Case(
        PatchTransformer((2, 2), n_filters=3, patch_size=2), dtypes=("uint8",), positive=True
    ),
}  # fmt: skip
if "handle_missing" in inspect.signature(SplineTransformer).parameters:  # scikit-learn 1.8 and later
    for way in ("constant", "periodic"):
        NUMERIC[f"SplineTransformer({way}, gaps)"] = Case(
            SplineTransformer(knots=KNOTS, extrapolation=way, handle_missing="zeros"),
            gaps=True, dtypes=("float64", "float32"),
        )  # fmt: skip

CONSTANT = {"strategy": "constant", "keep_empty_features": True}
