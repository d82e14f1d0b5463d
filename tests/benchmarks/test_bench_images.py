"""The benchmark of images reads CIFAR-10."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import bench_images


def test_cifar10_part_reads_binary_files_and_archives(tmp_path):
    rng = np.random.default_rng(0)
    planes, labels = rng.integers(0, 256, (5, 3, 32, 32), dtype=np.uint8), np.arange(5, dtype=np.uint8)
    np.concatenate([labels[:, None], planes.reshape(5, -1)], axis=1).tofile(tmp_path / "part.bin")
    differences = planes - np.array([1, 0, 1], np.uint8)[:, None, None] * planes[:, [1]]
    for axis in (2, 3):
        differences = np.diff(differences, axis=axis, prepend=np.uint8(0))
    np.savez(tmp_path / "archive.npz", x_diff=differences, y=labels)
    for name in ("part", "missing"):  # the archive is read where there is no binary file
        images, found = bench_images.cifar10_part(tmp_path, name, "archive")
        np.testing.assert_array_equal(images, planes.transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(found, labels)
