"""Random filters of whitened patches: their rectified responses, averaged over the quarters of an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdp.image.public_images import PUBLIC_IMAGES
from skdp.image.rows import bring_to_norm, inverse_root

_N_PUBLIC = 400
_PUBLIC_SIDE = 32  # patches of larger images are much the same
_LEAST_VARIANCE = 0.003
"""Added to the variance of a patch, for pixels from 0 to 1: patches of little contrast are mostly noise."""
_RIDGE = 0.1  # added to the variances that whitening divides by, in units of their mean
_THRESHOLD = 0.5  # of responses, in units of their deviation in public images


class PatchFeatures:
    """Rows of features of images of one shape.

    Parameters
    ----------
    shape : (int, int, int)
        Channels, height and width of an image.
    n_filters, patch_size, stride : int
    public_images : {"photographs", "drawings"}
        What whitening is learned from.
    symmetric : bool
        Whether an image and its mirror image have one row.
    seed : int
        Of the filters. Public.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        n_filters: int,
        patch_size: int,
        stride: int,
        public_images: str,
        symmetric: bool,
        seed: int,
    ) -> None:
        self._patch_size, self._stride, self._symmetric = patch_size, stride, symmetric
        self.maps_shape = (2 * n_filters, 2, 2)
        n_channels, *sides = shape
        height, width = (min(side, max(_PUBLIC_SIDE, 2 * patch_size)) for side in sides)
        made = self._patches(PUBLIC_IMAGES[public_images](_N_PUBLIC, (height, width), n_channels))
        patches = made.reshape(-1, made.shape[-1]).astype(np.float64)
        mean = patches.mean(axis=0)
        covariance = np.cov(patches.T, bias=True)
        drawn = np.random.default_rng(seed).normal(size=(len(mean), n_filters))
        filters = inverse_root(covariance, _RIDGE) @ (drawn / np.linalg.norm(drawn, axis=0))
        self._filters, self._offset = filters.astype(np.float32), (mean @ filters).astype(np.float32)
        deviation = np.sqrt(np.einsum("ij,ij->j", filters, covariance @ filters).mean())
        self._threshold = np.float32(_THRESHOLD * deviation)

    def write(self, planes: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        """Write the rows of images.

        Parameters
        ----------
        planes : ndarray of shape (n, n_channels, height, width)
            Pixels from 0 to 1.
        out : ndarray of shape (n, n_features)
        """
        self._respond(planes, out)
        if self._symmetric:
            mirrored = np.empty_like(out)
            self._respond(planes[..., ::-1], mirrored)
            out += mirrored
        out -= out.mean(axis=1, keepdims=True)
        bring_to_norm(out)

    def _respond(self, planes: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        """Write the means over quarters of what exceeds the threshold, above and below."""
        patches = self._patches(planes)
        n, rows, columns, size = patches.shape
        responses = np.matmul(patches.reshape(n, rows * columns, size), self._filters)  # each image by its own product
        responses -= self._offset
        responses = responses.reshape(n, rows, columns, -1)
        means = out.reshape(n, 2, -1, 2, 2)
        for sign, signed in enumerate((responses, -responses)):
            excess = np.maximum(signed - self._threshold, np.float32(0.0))
            for i, top in enumerate(_halves(rows)):
                for j, left in enumerate(_halves(columns)):
                    means[:, sign, :, i, j] = excess[:, top, left].mean(axis=(1, 2))

    def _patches(self, planes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Patches of images, of shape (n, rows, columns, size): each of mean 0, and of variance 1 if it has any."""
        size, stride = self._patch_size, self._stride
        windows = np.lib.stride_tricks.sliding_window_view(planes, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
        n, n_channels, rows, columns = windows.shape[:4]
        patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, rows, columns, n_channels * size * size)
        patches = patches - patches.mean(axis=-1, keepdims=True)
        variance = np.square(patches).mean(axis=-1, keepdims=True)
        patches /= np.sqrt(variance + np.float32(_LEAST_VARIANCE))
        return patches


def _halves(n: int) -> tuple[slice, slice]:
    """The first and the last half of places, which share the one in the middle if their number is odd."""
    return slice(0, (n + 1) // 2), slice(n // 2, n)
