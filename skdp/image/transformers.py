"""The transformer from images to rows of scattering coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp._checks.parameters import check_choice, check_count, show
from skdp.base.public_steps import register
from skdp.image.base import ImageTransformer, every_value_is_public
from skdp.image.features import ImageFeatures, PatchFeatures, Scattering
from skdp.image.reading import ImageLayout


class ScatteringTransformer(ImageTransformer):
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

    def _make_features(self, layout: ImageLayout) -> ImageFeatures:
        n_scales = check_count("J", self.J, remedy="choose a whole number of scales, such as 2")
        n_angles = check_count("L", self.L, remedy="choose a whole number of directions, such as 8")
        if isinstance(self.max_order, bool) or self.max_order not in (1, 2):
            raise ValueError(f"max_order={show(self.max_order)} is not known: use 1 or 2.")
        check_choice("colors", self.colors, ("opponent", "given"))
        if self.normalization is not None:
            check_choice("normalization", self.normalization, ("whitened", "groups"))
        self._check_common_parameters()
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


register(ScatteringTransformer, every_value_is_public)


class PatchTransformer(ImageTransformer):
    """Responses of random filters to whitened patches of images: features that are not learned and cost nothing.

    Patches are brought to one contrast, whitened by what is known of made-up images, and multiplied by random filters.
    What exceeds a threshold is averaged over the four quarters of the image (Coates & Ng 2011, with filters that are
    drawn and not learned). Beside scattering coefficients these features raise a private linear model of photographs
    by some points, see Examples.

    Parameters
    ----------
    image_shape : tuple of int or None, default=None
        Shape of an image: (height, width), (height, width, channels) or (channels, height, width). If None, it is that
        of the table where this has 3 or 4 dimensions, and a square where a row is a row of pixels.
    n_filters : int, default=400
        Number of filters. A row has eight features of each.
    patch_size : int, default=6
        Height and width of a patch in pixels, at most those of an image.
    stride : int, default=2
        Distance of neighbouring patches in pixels.
    value_range : (float, float) or None, default=None
        Public range of a pixel. If None, it is 0 to 255 for uint8, and 0 to 1 for floats; other integers say none.
    public_images : {"photographs", "drawings"}, default="photographs"
        Kind of the made-up images that whitening is learned from: discs that lie on one another, or white strokes of a
        pen on black, which suit digits and letters.
    symmetric : bool, default=False
        Whether an image and its mirror image have one row, the mean of both.
    random_state : int, default=0
        Seed of the filters. It is public: the filters are no secret.
    n_jobs : int or None, default=None
        Number of threads of ``transform``. The result does not depend on it. None means 1 unless in a
        ``joblib.parallel_config`` context. -1 means using all processors.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of an image.
    maps_shape_ : (int, int, int)
        ``(2 * n_filters, 2, 2)``: a row of the output, in the order of C. The maps of positive responses come first,
        then those of negative ones. A map has the quarters of the image.
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
    ScatteringTransformer : Filters of several scales and directions.

    Notes
    -----
    A patch p has mean 0 and is divided by ``sqrt(variance + .003)``, for pixels from 0 to 1. With the mean m and the
    covariance S of patches of made-up images, and random w of length 1, its response is
    ``w' (S + .1 v I) ** -.5 (p - m)``, v being the mean variance. The threshold is half the deviation of responses in
    made-up images.

    **Guarantees.**

    - ``fit`` reads shape, names and types of the table and no pixel. The transformer is a public step: it has no event,
      and is free.
    - ``transform`` treats images one by one: a row of the output is a function of that image and of the parameters, in
      every bit.
    - Filters are drawn from the seed, and whitening is learned from images that are made up.
    - Every row has the norm sqrt(n_features), within rounding; it is 0 for an image without any response above the
      threshold. The norm is the default clip of private estimators, whether or not they stand in a pipeline.
    - A refusal is one line without a pixel.

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

    def __init__(
        self,
        image_shape: Any = None,
        *,
        n_filters: int = 400,
        patch_size: int = 6,
        stride: int = 2,
        value_range: Any = None,
        public_images: str = "photographs",
        symmetric: bool = False,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.image_shape = image_shape
        self.n_filters = n_filters
        self.patch_size = patch_size
        self.stride = stride
        self.value_range = value_range
        self.public_images = public_images
        self.symmetric = symmetric
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _make_features(self, layout: ImageLayout) -> PatchFeatures:
        n_filters = check_count("n_filters", self.n_filters, remedy="choose a whole number of filters, such as 400")
        size = check_count("patch_size", self.patch_size, at_least=2, remedy="choose 2 pixels or more, such as 6")
        stride = check_count("stride", self.stride, remedy="choose a whole number of pixels, such as 2")
        remedy = "give a whole number of 0 or more, which is public"
        seed = check_count("random_state", self.random_state, at_least=0, remedy=remedy)
        self._check_common_parameters()
        if size > min(layout.size):
            raise ValueError(
                f"patch_size={size} is too large for images of {layout.size[0]} x {layout.size[1]} pixels: choose at "
                f"most {min(layout.size)}."
            )
        with np.errstate(all="ignore"):
            return PatchFeatures(
                (layout.n_channels, *layout.size), n_filters=n_filters, patch_size=size, stride=stride,
                public_images=self.public_images, symmetric=bool(self.symmetric), seed=seed,
            )  # fmt: skip


register(PatchTransformer, every_value_is_public)
