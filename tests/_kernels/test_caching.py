"""Where compiled kernels are kept: read-only installs, missing homes, and folders that others could write to."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp._kernels import caching, tiles

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are POSIX's"),
]

# A kernel that compiles in no time, in a file that imports no other one.
KERNEL = """
import numpy as np
from skdp._kernels.critic import add_block as kernel
kernel(np.ones((2, 3)), np.zeros((2, 3)))
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


def started(place, code, *options, **variables):
    """A process that has no home, unless it is given one."""
    kept = (name for name in os.environ if not name.startswith(("NUMBA", "XDG", "SKDP_COMPILES")))
    environment = {name: os.environ[name] for name in kept}
    environment |= {
        "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1", "HOME": os.devnull,
        "TMPDIR": str(place / "tmp"),
    }  # fmt: skip
    command = [sys.executable, *(options or ("-W", "ignore")), "-c", code]
    return subprocess.run(
        command, env=environment | variables, cwd=place, capture_output=True, text=True, timeout=600, check=False
    )


def run(place, code, **variables):
    """What such a process prints."""
    done = started(place, code, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def cache_of(place, **variables):
    """The folder of a kernel's cache, once it was called; None if it has none."""
    _, _, path = run(place, KERNEL, **variables)[0].split(" ")
    return None if path == "None" else Path(path)


def private(place):
    return place / "tmp" / f"skdp-{os.getuid()}"


def test_a_read_only_install_without_a_home_compiles_once(place):
    hits, misses, path = run(place, KERNEL)[0].split(" ")
    assert (hits, misses) == ("0", "1")
    assert Path(path).parent == private(place)
    assert stat.S_IMODE(private(place).stat().st_mode) == 0o700
    assert run(place, KERNEL)[0].split(" ")[:2] == ["1", "0"]


@pytest.mark.parametrize("kind", ["the package's", "the user's"])
def test_files_that_others_can_write_to_are_not_read(place, kind):
    """Numba makes them so in a process whose mask is 0, in a folder that others can enter."""
    home = place / "home"
    (home / ".cache").mkdir(parents=True)
    if kind == "the package's":
        (place / "skdp" / "_kernels").chmod(0o755)
        (place / "skdp" / "_kernels" / "__pycache__").unlink()
    kept = cache_of(place, HOME=str(home))
    assert kept.is_relative_to(home if kind == "the user's" else place / "skdp")
    kept.chmod(0o755)
    assert cache_of(place, HOME=str(home)) == kept
    file = next(kept.glob("*.nbc"))
    file.chmod(0o664 if kind == "the user's" else 0o646)
    assert cache_of(place, HOME=str(home)).parent == private(place)
    if kind == "the package's":  # nobody new could write to it where the sources are as open
        (place / "skdp" / "_kernels" / "caching.py").chmod(0o646)
        assert cache_of(place, HOME=str(home)) == kept


ADVICE = "Set NUMBA_CACHE_DIR to such a directory."
TWO_KERNELS = """
import sys
import skdp._kernels.critic
print("imported", file=sys.stderr)
import numpy as np
from skdp._kernels.critic import add_block, mute_rows
add_block(np.ones((2, 3)), np.zeros((2, 3)))
mute_rows(np.ones(2), np.ones((2, 1, 3)))
print("done", file=sys.stderr)
"""


def said(place, code, *options, **variables):
    """What a process writes to standard error."""
    done = started(place, code, *options, **variables)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


@pytest.fixture
def nowhere(place):
    """An install without a folder that is safe for compiled code."""
    private(place).touch()
    return place


def test_what_is_compiled_in_vain_is_told_once(nowhere):
    """When it is, and not at import; and it is no warning, which could end a fit that was charged."""
    lines = said(nowhere, "import skdp.linear_model" + TWO_KERNELS, "-W", "error")
    assert [lines[0], lines[-1]] == ["imported", "done"]
    assert len(lines) == 3
    assert lines[1].startswith("skdp: ")
    assert lines[1].endswith(ADVICE)


def test_what_is_compiled_for_good_is_told_at_the_first_kernel_of_the_first_process(nowhere):
    (nowhere / "chosen").mkdir(mode=0o700)
    first, line, last = said(nowhere, TWO_KERNELS, "-W", "error", NUMBA_CACHE_DIR=str(nowhere / "chosen"))
    assert (first, last) == ("imported", "done")
    assert line == (
        "skdp: compiling for this processor, which takes a few seconds at the first use of each kernel. The result is "
        "cached on disk. Run `python -m skdp.warm_up` to compile in advance."
    )
    assert said(nowhere, TWO_KERNELS, NUMBA_CACHE_DIR=str(nowhere / "chosen")) == ["imported", "done"]


def test_cache_folder_open_or_not_a_folder_is_rejected(tmp_path, monkeypatch):
    """Others can enter it or replace it, or it is a file or a link."""
    monkeypatch.setattr(caching.tempfile, "tempdir", str(tmp_path))
    folder, find = tmp_path / f"skdp-{os.getuid()}", caching.private_folder.__wrapped__
    monkeypatch.setattr(caching, "is_private", caching.is_private.__wrapped__)
    assert find() == str(folder)
    for mode in (0o770, 0o701):
        folder.chmod(mode)
        assert find() is None
    folder.rmdir()
    folder.touch()
    assert find() is None
    folder.unlink()
    (tmp_path / "ours").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "ours")
    assert find() is None
    folder.unlink()
    tmp_path.chmod(0o777)
    assert find() is None


def test_a_folder_that_is_replaced_while_it_is_looked_at_is_not_used(tmp_path, monkeypatch):
    """Somebody's closed folder first, then a link of theirs to one of ours, which they can point elsewhere later."""
    monkeypatch.setattr(caching.tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"skdp-{os.getuid()}"
    (tmp_path / "ours").mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    look = os.lstat

    def theirs_first(path, **options):
        found = look(path, **options)
        if str(path) == str(folder) and stat.S_ISDIR(found.st_mode):
            folder.rmdir()
            folder.symlink_to(tmp_path / "ours")
            found = os.stat_result([*found[:4], os.getuid() + 1, *found[5:]])
        return found

    monkeypatch.setattr(caching.os, "lstat", theirs_first)
    assert caching.private_folder.__wrapped__() is None


def test_the_folder_that_the_user_chose_is_used_as_it_is(place):
    (place / "chosen").mkdir()
    (place / "chosen").chmod(0o770)
    assert cache_of(place, NUMBA_CACHE_DIR=str(place / "chosen")).parent == place / "chosen"


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


def test_links_on_the_way_to_a_folder_are_ours_too(tmp_path, asked, monkeypatch):
    """Whose link it is can point it elsewhere; and so can who can replace it."""
    folder, around = tmp_path / "folder", tmp_path / "around"
    folder.mkdir(mode=0o700)
    around.mkdir()
    (around / "second").symlink_to("../folder")
    (tmp_path / "first").symlink_to(around / "second")
    way = str(tmp_path / "first")
    for mode, expected in ((0o755, True), (0o1777, True), (0o777, False)):
        around.chmod(mode)
        assert asked(way) is expected
    around.chmod(0o755)
    look = os.lstat

    def owned_by_another(path, **options):
        found = look(path, **options)
        return os.stat_result([*found[:4], os.getuid() + 1, *found[5:]]) if stat.S_ISLNK(found.st_mode) else found

    monkeypatch.setattr(caching.os, "lstat", owned_by_another)
    assert not asked(way)
    assert asked(str(folder))


CALLER = """
import numpy as np
from skdp._kernels.spans import add_products as kernel
rows, total = np.ones((6, {room})), np.zeros(2)
kernel((rows,), (rows,), 1, np.array([[0, 0, 0, 2, 0, 1]]), np.array([1, 1]), total)
print(sum(kernel.stats.cache_hits.values()), total[0])
"""


def test_a_kernel_that_calls_others_is_compiled_again_when_they_change(place):
    """Numba itself looks at the caller's file alone. The time stamp of that one stands still here."""
    code = CALLER.format(room=tiles.room_for(2, np.float64))
    assert [run(place, code)[0] for _ in range(2)] == ["0 1.0", "1 1.0"]
    once, twice = "total[top + i, first + j] += sums[i, j]", "total[top + i, first + j] += 2 * sums[i, j]"
    for name, value in (("losses", "1.0"), ("tiles", "2.0")):
        changed = place / "skdp" / "_kernels" / f"{name}.py"
        changed.chmod(0o644)
        text = changed.read_text()
        assert text.count(once) == (name == "tiles")
        changed.write_text(text.replace(once, twice) + "#")
        assert run(place, code)[0] == f"0 {value}", name


def test_kernel_in_zip_without_home_runs_uncached(place):
    archive = shutil.make_archive(str(place / "package"), "zip", place, "skdp")
    assert run(place, KERNEL, PYTHONPATH=archive) == ["0 1 None"]


def test_kernel_runs_if_cache_folder_disappears(place):
    folder = place / "cache"
    folder.mkdir(mode=0o700)
    replaced = "import shutil\nshutil.rmtree('cache')\nopen('cache', 'w').close()\nkernel("
    hits, misses, _ = run(place, KERNEL.replace("kernel(", replaced, 1), NUMBA_CACHE_DIR=str(folder))[0].split(" ")
    assert (hits, misses) == ("0", "1")
