"""The transformer from images to responses of random filters of whitened patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp._checks.parameters import check_count
from skdp._guard.public_rules import register
from skdp.image.base import ImageTransformer, every_value_is_public
from skdp.image.patches import PatchFeatures
from skdp.image.reading import ImageLayout


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
