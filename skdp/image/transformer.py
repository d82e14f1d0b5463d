"""The transformer from images to rows of scattering coefficients."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._blas import single_threaded_blas
from skdp._fitting.cells import values_of
from skdp._fitting.private_step import is_private
from skdp._fitting.public_rules import register
from skdp._fitting.releases import forget, publish
from skdp._fitting.rows import check_schema, column_names
from skdp._validation import check_choice, check_count, count_threads, show
from skdp.image.features import ImageFeatures
from skdp.image.public_images import PUBLIC_IMAGES
from skdp.image.reading import ImageLayout, check_pixels, layout_of, range_of
from skdp.image.scattering import Scattering

_BLOCK_PLANES = 6  # whose intermediate results stay in cache


class ScatteringTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Scattering coefficients of images: features for a private linear model that are not learned and cost nothing.

    An image is filtered by Morlet wavelets of J scales and L directions; the modulus is filtered again by the coarser
    ones; and all of it is averaged over windows of ``2**J`` pixels. The filters are fixed, so that a linear model over
    the coefficients has few parameters to pay for, and does on small images what private networks do (Tramèr & Boneh
    2021).

    Parameters
    ----------
    image_shape : tuple of int or None, default=None
        Shape of an image: (height, width), (height, width, channels) or (channels, height, width). If None, it is that
        of the table where this has 3 or 4 dimensions, and a square where a row is a row of pixels.
    J : int, default=2
        Number of scales. Averages are over ``2**J`` pixels, which an image has to have in height and width.
    L : int, default=8
        Number of directions.
    max_order : {1, 2}, default=2
        Whether moduli are filtered again.
    value_range : (float, float) or None, default=None
        Public range of a pixel. If None, it is 0 to 255 for uint8, and 0 to 1 for floats; other integers say none.
    colors : {"opponent", "given"}, default="opponent"
        Whether an image of three channels is turned to brightness, red against blue and green against magenta first, so
        that the little that is in colours is not hidden in what red, green and blue share. "given" transforms the
        channels as they are. Other images have no colours.
    normalization : {"whitened", "groups", None}, default="whitened"
        "groups" brings each group of coefficients of an image, those of one channel, order and pair of scales, to mean
        0 and variance 1, and the row to the norm sqrt(n_features). "whitened" does so, and divides the maps by the root
        of the covariance that they have in made-up images in between. None returns the coefficients as they are.
    public_images : {"photographs", "drawings"}, default="photographs"
        Kind of the made-up images that whitening is learned from: discs that lie on one another, or white strokes of a
        pen on black, which suit digits and letters. It is ignored if `normalization` is not "whitened".
    symmetric : bool, default=False
        Whether an image and its mirror image have one row, the mean of both: half as many features, for images that
        could as well be seen in a mirror. Photographs mostly could; digits could not.
    n_jobs : int or None, default=None
        Number of threads of ``transform``. The result does not depend on it. None means 1 unless in a
        ``joblib.parallel_config`` context. -1 means using all processors.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of an image.
    maps_shape_ : (int, int, int)
        Number of maps, their height and their width: a row of the output, in the order of C. The maps of a channel
        follow those of the channel before it. They are the mean, the first order by scale and direction, and the second
        order by scale and direction of the first wavelet, then of the second.
    epsilon_ : float
        Price of the fit, 0.0.
    delta_ : float
        Delta of the fit, 0.0.
    n_features_in_ : int
        Number of pixels of an image, those of all channels counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    skdp.datasets.load_cifar10 : Small images from files.
    skdp.datasets.load_mnist : Digits from a file.

    Notes
    -----
    **Coefficients.** The envelope of a wavelet of scale j is a Gaussian of deviation ``.8 * 2**j`` along its direction
    and L / 4 times that across it, its frequency is ``3 pi / 4 / 2**j``, and the averages are by a Gaussian of
    deviation ``.8 * 2**(J - 1)``. These are the filters of ``kymatio``, whose values come out, up to its 3.1415 for pi.
    Images are mirrored at their sides.

    **Guarantees.**

    - ``fit`` reads shape, names and types of the table and no pixel. The transformer is a public step: it has no event,
      and is free.
    - ``transform`` treats images one by one: a row of the output is a function of that image and of the parameters, in
      every bit.
    - Images that whitening is learned from are made up: they are the same at each fit, and depend on nothing but the
      shape of an image and on parameters.
    - Unless ``normalization=None``, every row has the norm sqrt(n_features), within rounding; with "groups" it is 0 for
      an image without any contrast. It is the default clip of private estimators, whether or not they stand in a
      pipeline.
    - A refusal is one line without a pixel.

    **Whitening.** Coefficients of neighbouring scales and directions say much the same, so that few directions have
    most of a row's norm, and noise drowns the others. How coefficients hang together is much the same in all
    photographs and in pictures of discs that lie on one another (dead leaves [4]_), and likewise in digits and in
    strokes of a pen. 400 of these are drawn from a fixed seed, and with the covariance S of their maps at a place, the
    maps of an image are multiplied by ``(S + c I) ** -0.5``, c being the mean variance. No private row is needed for
    it.

    References
    ----------
    .. [1] J. Bruna and S. Mallat, "Invariant scattering convolution networks", IEEE Transactions on Pattern Analysis
       and Machine Intelligence 35, 2013.
    .. [2] E. Oyallon and S. Mallat, "Deep roto-translation scattering for object classification", CVPR 2015.
    .. [3] F. Tramèr and D. Boneh, "Differentially private learning needs better features (or much more data)", ICLR
       2021.
    .. [4] A. B. Lee, D. Mumford and J. Huang, "Occlusion models for natural images", International Journal of Computer
       Vision 41, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLogisticRegression, allocate_budget
    >>> from skdp.image import ScatteringTransformer
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(
    ...     ScatteringTransformer(J=1, value_range=(0, 16)), DPLogisticRegression(classes=range(10))
    ... )
    >>> model = allocate_budget(model, epsilon=3.0).fit(X, y)
    >>> model[0].maps_shape_
    (9, 4, 4)
    """

    def __init__(
        self,
        image_shape: Any = None,
        *,
        J: int = 2,
        L: int = 8,
        max_order: int = 2,
        value_range: Any = None,
        colors: str = "opponent",
        normalization: str | None = "whitened",
        public_images: str = "photographs",
        symmetric: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.image_shape = image_shape
        self.J = J
        self.L = L
        self.max_order = max_order
        self.value_range = value_range
        self.colors = colors
        self.normalization = normalization
        self.public_images = public_images
        self.symmetric = symmetric
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the filters. No pixel is read.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_pixels), (n_samples, height, width) or with channels first or last
            Private images, of which shape, names and type are looked at.
        y : None
            Ignored.

        Returns
        -------
        self : ScatteringTransformer
            Fitted transformer.

        Raises
        ------
        ValueError
            A parameter is invalid, or the table does not have images of that shape.
        """
        work = copy(self)
        forget(work)
        table = _table(X)
        layout = layout_of(self.image_shape, table.shape)
        range_of(self.value_range, table.dtype)
        work._fitted_features = work._make_features(layout)
        work._fitted_layout = layout
        work._note_columns(X, table, reset=True)
        work.image_shape_ = layout.shape
        work.maps_shape_ = work._fitted_features.maps_shape
        work.epsilon_, work.delta_ = 0.0, 0.0
        publish(self, work)
        return self

    def _make_features(self, layout: ImageLayout) -> ImageFeatures:
        n_scales = check_count("J", self.J, remedy="choose a whole number of scales, such as 2")
        n_angles = check_count("L", self.L, remedy="choose a whole number of directions, such as 8")
        if isinstance(self.max_order, bool) or self.max_order not in (1, 2):
            raise ValueError(f"max_order={show(self.max_order)} is not known: use 1 or 2.")
        check_choice("colors", self.colors, ("opponent", "given"))
        if self.normalization is not None:
            check_choice("normalization", self.normalization, ("whitened", "groups"))
        check_choice("public_images", self.public_images, tuple(PUBLIC_IMAGES))
        if not isinstance(self.symmetric, bool | np.bool_):
            raise ValueError(f"symmetric={show(self.symmetric)} is no truth value: choose True or False.")
        count_threads(self.n_jobs)
        if n_scales > 32 or 1 << n_scales > min(layout.size):
            raise ValueError(
                f"J={n_scales} is too large for images of {layout.size[0]} x {layout.size[1]} pixels: 2**J pixels are "
                f"averaged; choose at most {min(layout.size).bit_length() - 1}."
            )
        with np.errstate(all="ignore"):  # tails of wavelets underflow
            return ImageFeatures(
                Scattering(layout.size, n_scales, n_angles, int(self.max_order)), layout.n_channels,
                colours=self.colors == "opponent",
                normalization=self.normalization, public_images=self.public_images, symmetric=bool(self.symmetric),
            )  # fmt: skip

    def _note_columns(self, X: Any, table: NDArray[Any], *, reset: bool) -> None:
        """Set or check the number of pixels, and the names of columns if there are any."""
        named = column_names(X) is not None
        check_schema(self, X if named else table.reshape(len(table), math.prod(table.shape[1:])), reset=reset)

    # --- rows ---

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the coefficients of images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_pixels), (n_samples, height, width) or with channels first or last
            Images of the shape seen during ``fit``. Their type may be another.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Of float32.

        Raises
        ------
        ValueError
            Images have another shape, NaN, infinity, or pixels outside of their range. The message holds no pixel.
        """
        table = self._check_images(X)
        made = np.empty((len(table), self._n_features_out), np.float32)
        self._write(table, made)
        return made

    def transform_to(self, X: Any, path: str | Path) -> NDArray[np.float32]:
        """Write the coefficients of images to a file, block by block, for tables that do not fit in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_pixels), (n_samples, height, width) or with channels first or last
            Images, in memory or a memory map.
        path : str or Path
            Name of a ``.npy`` file. It holds private rows, and nobody but its owner may read it. An existing file is
            replaced once all rows are written; until then, and after an interrupt, it stays as it is.

        Returns
        -------
        X_new : memmap of shape (n_samples, n_features_out)
            The file, read-only. Private linear models read it block by block (see ``docs/large_tables.md``).

        Raises
        ------
        ValueError
            As for ``transform``.
        """
        table = self._check_images(X)
        target = Path(path)
        # In the same folder, so that the replacement below is a rename within one file system, which is atomic.
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".part")
        try:
            os.close(handle)
            made = np.lib.format.open_memmap(part, "w+", np.float32, (len(table), self._n_features_out))
            self._write(table, made)
            made.flush()
            del made
            os.replace(part, target)
        finally:
            Path(part).unlink(missing_ok=True)
        return np.load(target, mmap_mode="r")

    def _check_images(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        table = _table(X)
        layout_of(self.image_shape_, table.shape)
        range_of(self.value_range, table.dtype)
        self._note_columns(X, table, reset=False)
        return table

    def _write(self, table: NDArray[Any], out: NDArray[np.float32]) -> None:
        layout: ImageLayout = self._fitted_layout
        step = max(1, _BLOCK_PLANES // layout.n_channels)
        starts = range(0, len(table), step)

        def write(start: int) -> None:
            with np.errstate(all="ignore"):  # whoever asked NumPy to raise or warn of underflow would learn of a pixel
                planes = self._planes(table[start : start + step], layout)
                self._fitted_features.write(planes, out[start : start + step])

        with single_threaded_blas():
            n_threads = min(count_threads(self.n_jobs), max(1, len(starts)))
            if n_threads == 1:
                for start in starts:
                    write(start)
                return
            with ThreadPoolExecutor(n_threads) as pool:
                for _ in pool.map(write, starts, chunksize=1):  # raises errors
                    pass

    def _planes(self, rows: NDArray[Any], layout: ImageLayout) -> NDArray[np.float32]:
        """Check a block of images, and return its planes with pixels from 0 to 1."""
        ends = range_of(self.value_range, rows.dtype)
        check_pixels(rows, ends, asked=self.value_range is not None)
        planes = layout.planes(np.asarray(rows))
        if planes.dtype == np.float16:  # which may not hold the width of the range
            planes = planes.astype(np.float32)
        if ends != (0.0, 1.0):
            planes = (planes - ends[0] if ends[0] else planes) * np.float32(1.0 / (ends[1] - ends[0]))
        return np.ascontiguousarray(planes, np.float32)

    def _fault_behind(self, step: Any) -> str:
        """See `PrivateEstimator`: pixels have a public range, which the rows of a private step do not keep."""
        return "images come first: what a private step makes of them has no public range." if is_private(step) else ""

    @property
    def _n_features_out(self) -> int:
        return math.prod(self.maps_shape_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.requires_fit = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _table(X: Any) -> NDArray[Any]:
    """Return images as an array of numbers, without copying one."""
    if sp.issparse(X):
        raise TypeError("X is sparse, and sparse data are not supported here: pass X.toarray().")
    table = values_of("X", X) if column_names(X) is None else np.asarray(X)
    if table.dtype.kind not in "buif":
        raise ValueError(f"X is of type {table.dtype}: give pixels as uint8, or as floats from 0 to 1.")
    if len(table.shape) < 2 or 0 in table.shape:
        raise ValueError(f"X has the shape {table.shape}: give at least one image, and pixels of each.")
    return table


def _rule(step: Any) -> Iterator[tuple[str, str]]:
    """See `skdp._fitting.public_rules`: every parameter is a plain value."""
    yield from ()


register(ScatteringTransformer, _rule)

__all__ = ["ScatteringTransformer"]
