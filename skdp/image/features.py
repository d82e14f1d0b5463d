"""From planes of pixels to rows of features: every step that is done to one image alone, in order."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skdp.image.public_images import PUBLIC_IMAGES
from skdp.image.rows import Whitening, bring_to_norm, groups_of, in_opponent_colours, standardize
from skdp.image.scattering import Scattering

_N_PUBLIC = 400


class ImageFeatures:
    """Rows of features of images of one shape.

    Parameters
    ----------
    scattering : Scattering
    n_channels : int
        Planes of an image.
    colours : bool
        Whether three channels are turned to opponent colours.
    normalization : {"whitened", "groups", None}
    public_images : {"photographs", "drawings"}
        What whitening is learned from.
    symmetric : bool
        Whether an image and its mirror image have one row.
    """

    def __init__(
        self,
        scattering: Scattering,
        n_channels: int,
        *,
        colours: bool,
        normalization: str | None,
        public_images: str,
        symmetric: bool,
    ) -> None:
        self._scattering, self._n_channels = scattering, n_channels
        self._colours = colours and n_channels == 3
        self._normalization, self._symmetric = normalization, symmetric
        self._groups = groups_of(scattering.paths)
        height, width = scattering.map_shape
        self.maps_shape = (n_channels * len(scattering.paths), height, -(-width // 2) if symmetric else width)
        self._whitening = self._learn_whitening(public_images) if normalization == "whitened" else None

    def write(self, planes: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        """Write the rows of images.

        Parameters
        ----------
        planes : ndarray of shape (n, n_channels, height, width)
            Pixels from 0 to 1.
        out : ndarray of shape (n, n_features)
        """
        maps = self._maps(planes)
        if self._symmetric:
            kept = self.maps_shape[2]
            mirrored = self._maps(planes[..., ::-1])
            maps = 0.5 * (maps[..., :kept] + mirrored[..., :kept])
        out[:] = maps.reshape(len(out), -1)
        if self._normalization is not None:
            bring_to_norm(out)

    def _maps(self, planes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Normalized maps of images, of shape (n, n_maps, height, width)."""
        n, scattering = len(planes), self._scattering
        if self._colours:
            planes = in_opponent_colours(planes)
        made = np.empty((n * self._n_channels, len(scattering.paths), *scattering.map_shape), np.float32)
        scattering.transform(planes.reshape(-1, *planes.shape[2:]), made)
        if self._normalization is not None:
            standardize(made.reshape(n, self._n_channels, len(scattering.paths), self._size), self._groups)
        maps = made.reshape(n, -1, *scattering.map_shape)
        if self._whitening is not None:
            self._whitening.apply(maps.reshape(n, -1, self._size))
        return maps

    @cached_property
    def _size(self) -> int:
        return math.prod(self._scattering.map_shape)

    _whitening: Whitening | None = None

    def _learn_whitening(self, kind: str) -> Whitening:
        """Learn it from images that are made up."""
        images = PUBLIC_IMAGES[kind](_N_PUBLIC, self._scattering.shape, self._n_channels)
        maps = np.concatenate([self._maps(images[start : start + 2]) for start in range(0, len(images), 2)])
        return Whitening.learn(maps.reshape(len(maps), -1, self._size))
