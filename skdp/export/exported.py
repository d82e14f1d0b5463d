"""What fitted estimators inherit: their export to other programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Exported:
    """Mixin, to stand before ``BaseEstimator`` among the bases of a class."""

    def to_onnx(self, *, integers: Iterable[str] = ()) -> Any:
        """Convert the fitted model to ONNX. See `skdp.export.to_onnx`.

        Parameters
        ----------
        integers : iterable of str, default=()
            Names of inputs that are int64 where the model is served.

        Returns
        -------
        onnx.ModelProto
            Graph from raw columns to predictions.
        """
        from skdp.export.onnx_model import to_onnx

        return to_onnx(self, integers=integers)

    def to_sklearn(self, *, rows_are_short: bool = False) -> Any:
        """Return plain scikit-learn objects that predict alike. See `skdp.export.to_sklearn`.

        Parameters
        ----------
        rows_are_short : bool, default=False
            Whether no row to predict is longer than `data_norm_`.

        Returns
        -------
        estimator
            Fitted estimator of scikit-learn.
        """
        from skdp.export.sklearn_objects import to_sklearn

        return to_sklearn(self, rows_are_short=rows_are_short)


__all__ = ["Exported"]
