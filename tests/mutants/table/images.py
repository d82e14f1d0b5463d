"""Mistakes in features of images: rows that follow other images, and pickles that run code."""

from mutant import mutant
from paths import ARCHIVES, CIFAR, IMAGE_BASE, IMAGE_FEATURES, IMAGE_PATCHES, IMAGE_ROWS, IMAGE_SCATTERING, PICKLES

MUTANTS = [
    mutant(
        "a map is written without room for it on the disk",
        (IMAGE_BASE, "os.posix_fallocate(file.fileno(), 0, os.path.getsize(part))", "pass"),
        tests="scattering",
        select="full_disk",
    ),
    mutant(
        "planes that lie in memory as NumPy gathers them",
        (
            IMAGE_SCATTERING,
            "np.ascontiguousarray(planes[:, self._places[0][:, None], self._places[1]])",
            "planes[:, self._places[0][:, None], self._places[1]]",
        ),
        tests="scattering",
        select="among_others",
    ),
    mutant(
        "a file of rows that is written in its place",
        (
            IMAGE_BASE,
            "np.lib.format.open_memmap(part,",
            "np.lib.format.open_memmap(target,",
        ),
        tests="scattering",
        select="whole_or_not_there",
    ),
    mutant(
        "maps whitened by the private images",
        (
            IMAGE_FEATURES,
            "self._whitening.apply(maps.reshape(n, -1, self._size))",
            "Whitening.learn(maps.reshape(n, -1, self._size)).apply(maps.reshape(n, -1, self._size))",
        ),
        tests="scattering",
        select="among_others or changes_its_own",
    ),
    mutant(
        "groups of a block of images instead of one",
        (
            IMAGE_ROWS,
            "    for channel in maps.reshape(-1, *maps.shape[2:]):\n",
            "    for channel in np.moveaxis(maps, 0, 2).reshape(maps.shape[1], maps.shape[2], -1):\n",
        ),
        tests="scattering",
        select="among_others or variance_1",
    ),
    mutant(
        "rows brought to the longest norm of a block",
        (
            IMAGE_ROWS,
            "        norm = math.sqrt(np.square(row, dtype=np.float64).sum())\n",
            "        norm = math.sqrt(np.square(rows, dtype=np.float64).sum(axis=1).max())\n",
        ),
        tests="scattering",
        select="among_others or one_norm",
    ),
    mutant(
        "a fit that looks at the pixels",
        (
            IMAGE_BASE,
            "        range_of(self.value_range, table.dtype)\n        self._fitted_features",
            "        range_of(self.value_range, table.dtype)\n        self._fitted_top = table.max()\n"
            "        self._fitted_features",
        ),
        tests="scattering",
        select="reads_no_pixel or changes_its_own",
    ),
    mutant(
        "patches whitened by the private images",
        (
            IMAGE_PATCHES,
            "        self._respond(planes, out)\n",
            "        self._offset = self._offset + planes[0].mean()\n        self._respond(planes, out)\n",
        ),
        tests="patches",
        select="among_others or changes_its_own",
    ),
    mutant(
        "rows of patches that are not brought to one norm",
        (IMAGE_PATCHES, "        bring_to_norm(out)\n", ""),
        tests="patches",
        select="one_norm or plain_reading",
    ),
    mutant(
        "pixels outside of their range",
        (
            IMAGE_BASE,
            "        check_pixels(rows, ends, asked=self.value_range is not None)\n",
            "",
        ),
        tests="scattering",
        select="refused",
    ),
    mutant(
        "a pickle that may name anything",
        (PICKLES, "if full != _ENCODE and full not in _NOTED:", "if not full:"),
        tests="cifar",
        select="runs_none",
    ),
    mutant(
        "arrays of a pickle that NumPy builds",
        (PICKLES, "else Stored(given))", "else np.ndarray(*given))"),
        tests="cifar",
        select="become_no_objects",
    ),
    mutant(
        "an archive of any size",
        (ARCHIVES, "if entry.file_size > most_bytes or", "if"),
        tests="mnist",
        select="fill_the_memory",
    ),
    mutant(
        "an archive packed by any method",
        (ARCHIVES, " or entry.compress_type not in _METHODS:", ":"),
        tests="cifar",
        select="numpy_would_not_write",
    ),
    mutant(
        "a pickle that encodes the same text again",
        (PICKLES, 'if codec != "latin1" or self._left < 0:', 'if codec != "latin1":'),
        tests="cifar",
        select="nothing_large",
    ),
    mutant(
        "a truncated file of records",
        (CIFAR, "    if size != length:\n", "    if size > length:\n"),
        tests="cifar",
        select="truncated",
    ),
]
