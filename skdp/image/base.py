"""Base class of image transformers: validation, chunks, threads and files."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._checks.numbers import NUMBER, numbers_of, values_of
from skdp._checks.parameters import check_choice, count_threads, is_private, reject_fit_params, show
from skdp._checks.rows import check_schema, column_names
from skdp._kernels.threads import single_threaded_blas
from skdp.base.fit import fit_publicly
from skdp.base.private_step import StepTraits
from skdp.base.saved_state import PlainState
from skdp.image.features import ImageFeatures, PatchFeatures
from skdp.image.reading import PUBLIC_IMAGES, ImageLayout, check_pixels, layout_of, range_of


class ImageTransformer(PlainState, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Data-independent transformer that processes each image independently.

    A subclass has the parameters ``image_shape``, ``value_range``, ``public_images``, ``symmetric`` and ``n_jobs``, and
    writes `_make_features`.
    """

    image_shape: Any
    value_range: Any
    public_images: str
    symmetric: bool
    n_jobs: int | None

    # Checks the parameters, and returns what turns images of a layout to rows. No pixel is read.
    _make_features: ClassVar[Callable[[Any, ImageLayout], ImageFeatures | PatchFeatures]]

    def _check_common_parameters(self) -> None:
        check_choice("public_images", self.public_images, tuple(PUBLIC_IMAGES))
        if not isinstance(self.symmetric, bool | np.bool_):
            raise ValueError(f"`symmetric` must be True or False, got {show(self.symmetric)}.")
        count_threads(self.n_jobs)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Create the filters. No pixel is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_pixels), (n_samples, height, width) or with channels first or last
            Private images. Only their shape, column names and type are used.
        y : None
            Ignored.
        **fit_params : dict of str to object
            Not supported: `sample_weight` and `groups` are rejected.

        Returns
        -------
        self : object
            Fitted transformer.

        Raises
        ------
        TypeError, ValueError
            A parameter is invalid, or the images do not have the declared shape.
        """
        reject_fit_params(fit_params, type(self).__name__)
        return fit_publicly(self, lambda work: work._learn(X))

    def _learn(self, X: Any) -> None:
        table = _table(X)
        layout = layout_of(self.image_shape, table.shape)
        range_of(self.value_range, table.dtype)
        self._fitted_features = self._make_features(layout)
        self._fitted_layout = layout
        self._note_columns(X, table, reset=True)
        self.image_shape_ = layout.shape
        self.maps_shape_ = self._fitted_features.maps_shape
        self.epsilon_, self.delta_ = 0.0, 0.0

    def _note_columns(self, X: Any, table: np.ndarray, *, reset: bool) -> None:
        """Set or check the number of pixels, and the names of columns if there are any."""
        named = column_names(X) is not None
        check_schema(self, X if named else table.reshape(len(table), math.prod(table.shape[1:])), reset=reset)

    # --- rows ---

    def transform(self, X: Any) -> np.ndarray:
        """Compute the features of images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_pixels), (n_samples, height, width) or with channels first or last
            Images of the shape seen during ``fit``. Their type can differ.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Features as float32.

        Raises
        ------
        ValueError
            The images have another shape, or pixels that are NaN, infinite or out of range. The message contains no
            pixel.
        """
        table = self._check_images(X)
        made = np.empty((len(table), self._n_features_out), np.float32)
        self._write(table, made)
        return made

    def transform_to(self, X: Any, path: str | Path) -> np.ndarray:
        """Write the features of images to a file, in chunks, for data sets that do not fit in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_pixels), (n_samples, height, width) or with channels first or last
            Images, in memory or a memory map.
        path : str or Path
            Name of a ``.npy`` file. It contains private rows, and only its owner can read it. An existing file is
            replaced after all rows are written, and stays unchanged if writing is interrupted.

        Returns
        -------
        X_new : memmap of shape (n_samples, n_features_out)
            The file as a read-only memory map. Private linear models read it in chunks (see ``docs/out_of_core.md``).

        Raises
        ------
        ValueError
            As for ``transform``.
        OSError
            The file cannot be written, for example because the disk is full.
        """
        table = self._check_images(X)
        target = Path(path)
        try:
            self._write_file(table, target)
        except OSError as error:
            why = error.strerror or error
            failure = OSError(
                f"path={str(target)!r} could not be written ({why}). Free disk space, or use another path."
            )
            failure.errno = error.errno
            raise failure from None
        return np.load(target, mmap_mode="r")

    def _write_file(self, table: np.ndarray, target: Path) -> None:
        """Write a new file, and replace the one that is there."""
        # In the same folder, so that the replacement below is a rename within one file system, which is atomic.
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".part")
        try:
            with open(handle, "r+b") as file:
                made = np.lib.format.open_memmap(part, "w+", np.float32, (len(table), self._n_features_out))
                if hasattr(os, "posix_fallocate"):  # where a disk fills up under a map, the process is killed
                    os.posix_fallocate(file.fileno(), 0, os.path.getsize(part))
            self._write(table, made)
            made.flush()
            del made
            os.replace(part, target)
        finally:
            Path(part).unlink(missing_ok=True)

    def _check_images(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        table = _table(X)
        layout_of(self.image_shape_, table.shape)
        range_of(self.value_range, table.dtype)
        self._note_columns(X, table, reset=False)
        return table

    def _write(self, table: np.ndarray, out: np.ndarray) -> None:
        layout: ImageLayout = self._fitted_layout
        step = max(1, 6 // layout.n_channels)  # planes whose intermediate results stay in cache
        starts = range(0, len(table), step)

        def write(start: int) -> None:
            with np.errstate(all="ignore"):  # a floating-point warning would reveal a pixel
                planes = self._planes(table[start : start + step], layout)
                self._fitted_features.write(planes, out[start : start + step])

        n_threads = min(count_threads(self.n_jobs), len(starts))
        with single_threaded_blas():
            if n_threads <= 1:  # no pool, which finishes all its blocks before an interrupt is raised
                for start in starts:
                    write(start)
                return
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(write, starts))  # raises errors

    def _planes(self, rows: np.ndarray, layout: ImageLayout) -> np.ndarray:
        """Check a block of images, and return its planes with pixels from 0 to 1."""
        ends = range_of(self.value_range, rows.dtype)
        check_pixels(rows, ends, asked=self.value_range is not None)
        planes = layout.planes(np.asarray(rows))
        if planes.dtype == np.float16:  # which may not hold the width of the range
            planes = planes.astype(np.float32)
        if ends != (0.0, 1.0):
            planes = (planes - ends[0] if ends[0] else planes) * np.float32(1.0 / (ends[1] - ends[0]))
        return np.ascontiguousarray(planes, np.float32)

    def __step_traits__(self) -> StepTraits:
        """Information for a pipeline: pixels have a public range, which the output of a private step does not have."""
        fault = "it must be the first step, because the output of a private step has no public pixel range."
        return StepTraits(fault_behind=lambda before: fault if is_private(before) else "")

    @property
    def _n_features_out(self) -> int:
        return math.prod(self.maps_shape_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.requires_fit = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _table(X: Any) -> np.ndarray:
    """Return images as an array of numbers, without copying one."""
    if sp.issparse(X):
        raise TypeError("X is sparse, but sparse data are not supported here. Pass X.toarray().")
    table = values_of("X", X)
    if not hasattr(X, "dtype") and column_names(X) is None:
        # A list has no type of its own: uint8 if all of its pixels are, else float64. uint8 among other types is left
        # as it is, and rejected, since one pixel would decide on the range of all.
        types = {table.dtype.type} if table.dtype.kind != "O" else set(map(type, table.ravel().tolist()))
        if np.uint8 in types:
            table = table.astype(np.uint8, copy=False) if len(types) == 1 else table
        else:
            kind, values = numbers_of(table)
            table = values.astype(np.float64, copy=False) if kind == NUMBER else table
    if table.dtype.kind not in "buif":
        raise ValueError(
            f"X must have a numeric dtype, got {table.dtype}. Pass pixels as uint8, or as floats from 0 to 1."
        )
    if len(table.shape) < 2 or 0 in table.shape:
        raise ValueError(f"X must contain at least one image with at least one pixel, got shape {table.shape}.")
    return table


def every_value_is_public(step: Any) -> Iterator[tuple[str, str]]:
    """See `skdp.base.public_steps`: every parameter is a plain value."""
    yield from ()
