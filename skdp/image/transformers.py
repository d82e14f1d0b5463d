"""Scattering and patch features of images."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from skdp._checks.parameters import check_choice, check_count, show
from skdp.base.estimator import with_parameters
from skdp.base.public_steps import register
from skdp.image.base import ImageTransformer, every_value_is_public
from skdp.image.features import ImageFeatures, PatchFeatures, Scattering
from skdp.image.reading import ImageLayout


@with_parameters
class ScatteringTransformer(ImageTransformer):
    """Scattering coefficients of images, as data-independent features.

    Images are filtered by Morlet wavelets of J scales and L directions. The moduli are filtered again by coarser
    wavelets, and all results are averaged over windows of ``2**J`` pixels. The filters are fixed, so the features have
    no privacy cost, and a private linear model on them has few parameters. On small images, such models match private
    neural networks (Tramèr & Boneh 2021).

    Parameters
    ----------
    image_shape : tuple of int or None, default=None
        Shape of an image: (height, width), (height, width, channels) or (channels, height, width). If None, it is read
        from a table of 3 or 4 dimensions; rows of pixels are taken as square images.
    J : int, default=2
        Number of scales. Averages are over ``2**J`` pixels, which images must have in height and width.
    L : int, default=8
        Number of directions.
    max_order : {1, 2}, default=2
        Order of the scattering transform; with 2, the moduli are filtered a second time.
    value_range : (float, float) or None, default=None
        Public range of a pixel. None is (0, 255) for uint8 and (0, 1) for floats; other integers require a value.
    colors : {"opponent", "given"}, default="opponent"
        "opponent" converts images with three channels to brightness, red-blue and green-magenta contrast, because the
        color information is small compared with the common brightness. "given" uses the channels unchanged.
    normalization : {"whitened", "groups", None}, default="whitened"
        "groups" standardizes each group of coefficients of an image (one channel, order and pair of scales) and scales
        the row to norm sqrt(n_features). "whitened" also whitens the maps, with a covariance from simulated images.
        None returns the coefficients unchanged.
    public_images : {"photographs", "drawings"}, default="photographs"
        Type of the simulated images for whitening: overlapping discs, or white pen strokes on black, which suit digits
        and letters. Ignored if `normalization` is not "whitened".
    symmetric : bool, default=False
        Whether an image and its mirror image have the same features, their average.
    n_jobs : int or None, default=None
        Number of threads of ``transform``. The result does not depend on it. None means 1 unless in a
        ``joblib.parallel_config`` context. -1 means using all processors.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of an image.
    maps_shape_ : (int, int, int)
        Number of maps, and their height and width: the shape of an output row in C order. The maps of the channels
        follow each other. For each channel, they are the mean, the first order by scale and direction, and the second
        order by scale and direction of the first wavelet, then of the second.
    epsilon_ : float
        Privacy cost of the fit, always 0.0.
    delta_ : float
        Delta of the fit, always 0.0.
    n_features_in_ : int
        Number of pixels of an image, over all channels.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    skdp.datasets.load_mnist : MNIST digits from a file.

    Notes
    -----
    **Coefficients.** The filters are those of ``kymatio``. The envelope of a wavelet of scale j is a Gaussian of
    standard deviation ``0.8 * 2**j`` along its direction and L / 4 times that across it. Its frequency is ``3 pi / 4 /
    2**j``. Averages use a Gaussian of standard deviation ``0.8 * 2**(J - 1)``. Images are reflected at their borders.

    **Guarantees.**

    - ``fit`` uses the shape, column names and types of the table, but no pixel. The transformer is a data-independent
      step: it has no privacy event and no privacy cost.
    - ``transform`` processes each image independently: an output row depends on its image and the parameters only.
    - Whitening is learned from simulated images, which depend only on the image shape and the parameters and are the
      same at each fit.
    - Unless ``normalization=None``, every row has the norm sqrt(n_features), within rounding; with "groups", images
      without contrast have norm 0. Private estimators use this norm by default.
    - Error messages contain no private value.

    **Whitening.** Coefficients of adjacent scales and directions are correlated. Without whitening, a few directions
    have most of the norm, and the noise hides the others. The correlations are similar in photographs and in simulated
    images of overlapping discs (dead leaves [4]_), and in digits and simulated pen strokes. With the covariance S of
    the maps in 400 simulated images, the maps of an image are multiplied by ``(S + c I) ** -0.5``, where c is the mean
    variance. No private row is used.

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

    image_shape: Any = None
    _: KW_ONLY
    J: int = 2
    L: int = 8
    max_order: int = 2
    value_range: Any = None
    colors: str = "opponent"
    normalization: str | None = "whitened"
    public_images: str = "photographs"
    symmetric: bool = False
    n_jobs: int | None = None

    def _make_features(self, layout: ImageLayout) -> ImageFeatures:
        n_scales = check_count("J", self.J, constraint="a positive integer, such as 2")
        n_angles = check_count("L", self.L, constraint="a positive integer, such as 8")
        if isinstance(self.max_order, bool) or self.max_order not in (1, 2):
            raise ValueError(f"`max_order` must be 1 or 2, got {show(self.max_order)}.")
        check_choice("colors", self.colors, ("opponent", "given"))
        if self.normalization is not None:
            check_choice("normalization", self.normalization, ("whitened", "groups"))
        self._check_common_parameters()
        if n_scales > 32 or 1 << n_scales > min(layout.size):
            raise ValueError(
                f"`J` must be at most {min(layout.size).bit_length() - 1} for images of {layout.size[0]} x "
                f"{layout.size[1]} pixels, because 2**J pixels are averaged, got {n_scales}."
            )
        with np.errstate(all="ignore"):  # tails of wavelets underflow
            return ImageFeatures(
                Scattering(layout.size, n_scales, n_angles, int(self.max_order)), layout.n_channels,
                colors=self.colors == "opponent",
                normalization=self.normalization, public_images=self.public_images, symmetric=bool(self.symmetric),
            )  # fmt: skip


register(ScatteringTransformer, every_value_is_public)


@with_parameters
class PatchTransformer(ImageTransformer):
    """Random convolutional features of image patches, as data-independent features.

    Patches are normalized in contrast, whitened with statistics of simulated images, and multiplied by random filters.
    Responses above a threshold are averaged over the four quarters of the image (Coates & Ng 2011, with random instead
    of learned filters). On photographs, these features in addition to scattering coefficients improve a private linear
    model by a few percentage points.

    Parameters
    ----------
    image_shape : tuple of int or None, default=None
        Shape of an image: (height, width), (height, width, channels) or (channels, height, width). If None, it is read
        from a table of 3 or 4 dimensions; rows of pixels are taken as square images.
    n_filters : int, default=400
        Number of filters. Each one gives eight features.
    patch_size : int, default=6
        Height and width of a patch in pixels.
    stride : int, default=2
        Distance between adjacent patches in pixels.
    value_range : (float, float) or None, default=None
        Public range of a pixel. None is (0, 255) for uint8 and (0, 1) for floats; other integers require a value.
    public_images : {"photographs", "drawings"}, default="photographs"
        Type of the simulated images for whitening: overlapping discs, or white pen strokes on black, which suit digits
        and letters.
    symmetric : bool, default=False
        Whether an image and its mirror image have the same features, their average.
    random_state : int, default=0
        Public seed of the filters; it is not a source of privacy noise.
    n_jobs : int or None, default=None
        Number of threads of ``transform``. The result does not depend on it. None means 1 unless in a
        ``joblib.parallel_config`` context. -1 means using all processors.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of an image.
    maps_shape_ : (int, int, int)
        ``(2 * n_filters, 2, 2)``: the shape of an output row in C order. Maps of positive responses come first,
        followed by those of negative responses. Each map has the four quarters of the image.
    epsilon_ : float
        Privacy cost of the fit, always 0.0.
    delta_ : float
        Delta of the fit, always 0.0.
    n_features_in_ : int
        Number of pixels of an image, over all channels.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    ScatteringTransformer : Wavelet filters of several scales and directions.

    Notes
    -----
    A patch p is centered and divided by ``sqrt(variance + 0.003)``, for pixels from 0 to 1. With the mean m and
    covariance S of patches of simulated images, and a random w of norm 1, the response is ``w' (S + 0.1 v I) ** -0.5
    (p - m)``, where v is the mean variance. The threshold is half the standard deviation of the responses in simulated
    images.

    **Guarantees.**

    - ``fit`` uses the shape, column names and types of the table, but no pixel. The transformer is a data-independent
      step: it has no privacy event and no privacy cost.
    - ``transform`` processes each image independently: an output row depends on its image and the parameters only.
    - Filters depend on the public seed, whitening on simulated images.
    - Every row has the norm sqrt(n_features), within rounding; images without any response above the threshold have
      norm 0. Private estimators use this norm by default.
    - Error messages contain no private value.

    References
    ----------
    .. [1] A. Coates and A. Y. Ng, "The importance of encoding versus training with sparse coding and vector
       quantization", ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline, make_union
    >>> from skdp import DPLogisticRegression, allocate_budget
    >>> from skdp.image import PatchTransformer, ScatteringTransformer
    >>> X, y = load_digits(return_X_y=True)
    >>> features = make_union(
    ...     ScatteringTransformer(J=1, value_range=(0, 16)),
    ...     PatchTransformer(n_filters=20, patch_size=4, stride=1, value_range=(0, 16)),
    ... )
    >>> model = make_pipeline(features, DPLogisticRegression(classes=range(10)))
    >>> model = allocate_budget(model, epsilon=3.0).fit(X, y)
    >>> model[0].transform(X[:2]).shape
    (2, 304)
    """

    image_shape: Any = None
    _: KW_ONLY
    n_filters: int = 400
    patch_size: int = 6
    stride: int = 2
    value_range: Any = None
    public_images: str = "photographs"
    symmetric: bool = False
    random_state: int = 0
    n_jobs: int | None = None

    def _make_features(self, layout: ImageLayout) -> PatchFeatures:
        n_filters = check_count("n_filters", self.n_filters, constraint="a positive integer, such as 400")
        size = check_count("patch_size", self.patch_size, at_least=2, constraint="an integer of at least 2, such as 6")
        stride = check_count("stride", self.stride, constraint="a positive integer, such as 2")
        constraint = "a nonnegative integer, which is public"
        seed = check_count("random_state", self.random_state, at_least=0, constraint=constraint)
        self._check_common_parameters()
        if size > min(layout.size):
            raise ValueError(
                f"`patch_size` must be at most {min(layout.size)} for images of {layout.size[0]} x {layout.size[1]} "
                f"pixels, got {size}."
            )
        with np.errstate(all="ignore"):
            return PatchFeatures(
                (layout.n_channels, *layout.size), n_filters=n_filters, patch_size=size, stride=stride,
                public_images=self.public_images, symmetric=bool(self.symmetric), seed=seed,
            )  # fmt: skip


register(PatchTransformer, every_value_is_public)
