"""Where compiled kernels are kept: read-only installs, missing homes, and folders that others could write to."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import skdp
from skdp._kernels import caching

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are POSIX's"),
]

FIT = """
import numpy as np
from skdp import DPLogisticRegression
X = np.random.default_rng(0).random((200, 3)); y = (X[:, 0] > .5).astype(int)
print(DPLogisticRegression(classes=[0, 1], epsilon=5, delta=1e-5).fit(X, y).coef_.shape)
from skdp._kernels.linear import add_all_rows as kernel
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()), kernel.stats.cache_path)
"""
KERNEL = """
import numpy as np
from skdp._kernels.gram import rows_into_ball as kernel
rows = np.ones((2, 3))
kernel(rows, np.zeros(3), 1.0, rows)
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()), kernel.stats.cache_path)
"""


@pytest.fixture
def place(tmp_path):
    """A copy of the package in which Numba cannot write, whoever runs the tests, and a temporary folder."""
    shutil.copytree(Path(skdp.__file__).parent, tmp_path / "skdp", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "skdp" / "_kernels" / "__pycache__").touch()  # a file: no folder can be made in its place
    for path in (tmp_path / "skdp").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (tmp_path / "tmp").mkdir(mode=0o700)
    return tmp_path


def run(place, code, **variables):
    """What a process prints that has no home, unless it is given one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    environment |= {
        "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1", "HOME": os.devnull,
        "TMPDIR": str(place / "tmp"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment | variables, cwd=place, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def cache_of(place, **variables):
    """The folder of a kernel's cache, once it was called; None if it has none."""
    _, _, path = run(place, KERNEL, **variables)[0].split(" ")
    return None if path == "None" else Path(path)


def private(place):
    return place / "tmp" / f"skdp-{os.getuid()}"


def test_a_read_only_install_without_a_home_compiles_once(place):
    shape, first = run(place, FIT)
    assert shape == "(1, 3)"
    hits, misses, path = first.split(" ")
    assert (int(hits), int(misses)) == (0, 1)
    assert Path(path).parent == private(place)
    assert stat.S_IMODE(private(place).stat().st_mode) == 0o700
    hits, misses, _ = run(place, FIT)[1].split(" ")
    assert (int(hits), int(misses)) == (1, 0)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_a_folder_that_others_can_enter_is_not_used(place, mode):
    private(place).mkdir()
    private(place).chmod(mode)
    assert cache_of(place) is None  # it works, without a cache
    assert list(private(place).iterdir()) == []


def test_a_file_or_a_link_in_the_place_of_the_folder_is_not_used(place):
    private(place).touch()
    assert cache_of(place) is None
    private(place).unlink()
    (place / "elsewhere").mkdir(mode=0o700)
    private(place).symlink_to(place / "elsewhere")
    assert cache_of(place) is None
    assert list((place / "elsewhere").iterdir()) == []


def test_a_temporary_folder_where_others_can_replace_folders_is_not_used(place):
    (place / "tmp").chmod(0o777)
    assert cache_of(place) is None


def test_a_home_that_others_can_write_to_is_not_used(place):
    home = place / "home"
    (home / ".cache").mkdir(parents=True)
    assert cache_of(place, HOME=str(home)).parent == home / ".cache" / "numba"
    shutil.rmtree(home / ".cache" / "numba")
    (home / ".cache").chmod(0o777)
    assert cache_of(place, HOME=str(home)).parent == private(place)
    assert not list((home / ".cache").rglob("*.nb?"))


def test_the_folder_that_the_user_chose_is_used_as_it_is(place):
    (place / "chosen").mkdir()
    (place / "chosen").chmod(0o770)
    assert cache_of(place, NUMBA_CACHE_DIR=str(place / "chosen")).parent == place / "chosen"


def test_a_package_that_can_be_written_to_keeps_its_own_cache(place):
    (place / "skdp" / "_kernels").chmod(0o755)
    (place / "skdp" / "_kernels" / "__pycache__").unlink()
    assert cache_of(place) == place / "skdp" / "_kernels" / "__pycache__"
    assert not private(place).exists()


@pytest.fixture
def asked():
    """`is_private`, which asks anew."""
    return caching.is_private.__wrapped__


def test_folders_of_this_user_alone_are_private(tmp_path, asked):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    for mode, expected in ((0o700, True), (0o755, True), (0o775, False), (0o757, False)):
        folder.chmod(mode)
        assert asked(str(folder)) is expected
    folder.chmod(0o700)
    for mode, expected in ((0o777, False), (0o1777, True), (0o775, False), (0o755, True)):
        folder.parent.chmod(mode)
        assert asked(str(folder)) is expected
    folder.chmod(0o1777)  # sticky: others could not replace what is there, but could add to it
    assert not asked(str(folder))
    assert not asked(str(folder / "missing"))


def test_a_folder_of_another_user_is_not_private(tmp_path, asked, monkeypatch):
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    assert asked(str(folder))
    if os.getuid() == 0:
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(caching.os, "getuid", lambda: folder.stat().st_uid + 1)
    assert not asked(str(folder))


def test_every_kernel_is_defined_by_it():
    """Numba's own `njit` would refuse to define a kernel where there is no place for its cache."""
    for path in Path(caching.__file__).parent.glob("*.py"):
        if path.name not in ("__init__.py", "caching.py"):
            assert "from skdp._kernels.caching import njit\n" in path.read_text(), path.name
