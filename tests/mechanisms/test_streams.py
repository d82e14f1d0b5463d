"""Secret streams: the right keystream, the right law, independence, and nothing that gives the key away.

Every statistical test has a false-alarm rate of 1e-6 (two-sided where both sides can be wrong) and a fixed key, so it
is either red always or never. The keys are arbitrary: each stands for the first one that was tried.
"""

import copy
import functools
import hashlib
import hmac
import json
import math
import os
import pathlib
import pickle
import sys
import threading

import numpy as np
import pytest
import reference
from combinations import over_rows
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyed_streams import FALSE_ALARM, stream
from scipy.special import kolmogi, ndtr
from scipy.stats import binom, chi2, norm, poisson

from skdp.mechanisms.release_log import Transcript, running
from skdp.mechanisms.streams import SecretStream

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "random.json").read_text())
Z_LIMIT = norm.isf(FALSE_ALARM / 2)  # 4.89


def aes_words(key, count):
    """The keystream by its definition: AES-256 of the block numbers 0, 1, 2, ... (SP 800-38A, 6.5)."""
    n_blocks = -(-count // 2)
    blocks = b"".join(number.to_bytes(16, "big") for number in range(n_blocks))
    keystream = Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(blocks)
    return [int.from_bytes(keystream[8 * i : 8 * i + 8], "little") for i in range(count)]


# --- the keystream ---


def test_keystream_is_that_of_published_vectors():
    """AES-256 under the zero key of blocks 0, 1 and 2 (GCM specification, McGrew & Viega, test cases 13 and 14)."""
    published = "dc95c078a2408989ad48a21492842087530f8afbc74536b9a963b4f1c4cb738bcea7403d4d606b6e074ec5d3baf39d18"
    words = SecretStream(bytes(32)).words(6)
    assert words.astype("<u8").tobytes() == bytes.fromhex(published)


@over_rows("count", [1, 2, 3, 8_191, 8_192, 8_193, 20_001])
def test_keystream_is_aes_in_counter_mode(count):
    """Also across the pieces in which it is asked of OpenSSL."""
    key = hashlib.sha256(b"ctr").digest()
    assert SecretStream(key).words(count).tolist() == aes_words(key, count)


def test_words_are_golden():
    """An int random_state gives the same words on every machine, bit for bit, and they follow from the seed by hand."""
    for seed, known in GOLDEN["words"].items():
        found = SecretStream.from_random_state(int(seed), "test").words(len(known))
        assert [f"{word:016x}" for word in found.tolist()] == known
        by_hand = aes_words(hashlib.sha256(f"skdp seed 2:'test':{seed}".encode()).digest(), len(known))
        assert [f"{word:016x}" for word in by_hand] == known


def test_normals_are_golden():
    """Normals are equal to 1e-12 in float64 and to 1e-6 in float32, also to the plain reading of the golden words."""
    known = np.array(GOLDEN["normals"])
    root = functools.partial(SecretStream.from_random_state, name="test")
    np.testing.assert_allclose(root(0).normal(len(known)), known, rtol=0, atol=1e-12)
    np.testing.assert_allclose(root(0).normal(len(known), np.float32), known, rtol=0, atol=1e-6)
    np.testing.assert_allclose(reference.normals(root(0).words(512))[: len(known)], known, rtol=0, atol=1e-12)


def test_spawned_streams_and_rows_are_golden():
    child = SecretStream.from_random_state(0, "test").spawn("noise", 3)
    assert [f"{word:016x}" for word in child.words(4).tolist()] == GOLDEN["spawned_words"]
    rows = SecretStream.from_random_state(0, "test").poisson_rows(1_000_000, 1e-5)
    assert rows.tolist() == GOLDEN["rows"]
    assert rows.tolist() == reference.poisson_rows(SecretStream.from_random_state(0, "test").words(50), 1_000_000, 1e-5)


def test_spawned_key_is_hmac_of_the_purpose():
    key = hashlib.sha256(b"parent").digest()
    child = SecretStream(hmac.digest(key, b"('noise', 3)", "sha256"))
    assert SecretStream(key).spawn("noise", 3).words(5).tolist() == child.words(5).tolist()


# --- how draws are cut changes nothing (property 3) ---


@over_rows("dtype", [np.float32, np.float64])
def test_cutting_normals_changes_nothing(dtype):
    sizes = (0, 1, 11, 512, 513, 1, 2_047, 2_048, 2_049, 10_000, 3)
    whole, cut = stream().normal(sum(sizes), dtype), stream()
    np.testing.assert_array_equal(np.concatenate([cut.normal(size, dtype) for size in sizes]), whole)
    assert whole.dtype == dtype


# --- property 8: purposes and seeds ---


def test_a_tape_hears_words_that_are_drawn_twice():
    """Of streams of one key, in whatever pieces, and of one that is taken back; the batch that is made again is not."""

    def repeated(draw, seeds=(None,)):
        transcript = Transcript(0)
        with running(transcript):
            roots = [SecretStream.from_random_state(seed, "test") for seed in seeds]
        for root in roots:
            draw(root)
        return transcript.words.are_repeated

    def taken_back(root):
        root.words(3)
        root.seek((2, 0))
        root.words(1)

    def gone_on(root):
        root.normal(5)
        root.seek(root.position)
        root.normal(5)

    def other_purposes(root):
        for purpose in (("step", 0), ("step", 1), ("noise",)):
            root.spawn(*purpose).words(9)
            root.words(2)

    assert not repeated(other_purposes)
    assert not repeated(gone_on)
    assert repeated(lambda root: [root.spawn("step", 0).words(n) for n in (1, 4)])
    assert repeated(lambda root: [root.spawn("noise").normal(3), root.spawn("noise").poisson_rows(10, 0.5)])
    assert repeated(taken_back)
    assert not repeated(gone_on, (None, None))
    assert repeated(gone_on, (5, 5))  # two parts of a fit with one seed


def test_different_purposes_are_different_and_uncorrelated():
    """Also where names could run together, and a child against its parent: all pairwise correlations."""
    purposes = [("noise",), ("sampling",), ("noise", 1), ("noise", 11), ("noise", "1"), (1, 1), (11,), ("1", 1), ()]
    n = 50_000
    draws = np.array([stream().normal(n)] + [stream().spawn(*purpose).normal(n) for purpose in purposes])
    grandchild = stream().spawn("noise").spawn("noise").normal(n)
    draws = np.vstack([draws, grandchild])
    correlation = (draws @ draws.T / math.sqrt(n))[np.triu_indices(len(draws), 1)]
    assert np.abs(correlation).max() < norm.isf(FALSE_ALARM / 2 / len(correlation))


def test_global_seeds_have_no_effect():
    """np.random.seed touches neither a secret stream nor a seeded one."""
    draws, seeded = [], []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        secret = SecretStream.from_random_state(None, "test")
        draws.append((*secret.normal(5), *secret.poisson_rows(1_000_000, 1e-4)))
        seeded.append(SecretStream.from_random_state(7, "test").normal(5).tolist())
    np.random.seed(1)  # noqa: NPY002
    seeded.append(SecretStream.from_random_state(7, "test").normal(5).tolist())
    assert draws[0] != draws[1]
    assert seeded[0] == seeded[1] == seeded[2]


def test_integer_types_and_generators_seed():
    first = SecretStream.from_random_state(5, "test").words(3).tolist()
    assert SecretStream.from_random_state(np.int32(5), "test").words(3).tolist() == first
    assert SecretStream.from_random_state(np.uint64(5), "test").words(3).tolist() == first
    distinct = {
        tuple(SecretStream.from_random_state(seed, "test").words(3).tolist()) for seed in (-1, 0, 1, 5, 2**32, 2**70)
    }
    assert len(distinct) == 6
    for make in (np.random.RandomState, np.random.default_rng):
        generator = make(5)
        one, same = SecretStream.from_random_state(generator, "test"), SecretStream.from_random_state(make(5), "test")
        assert one.words(3).tolist() == same.words(3).tolist() != first
        assert SecretStream.from_random_state(generator, "test").words(3).tolist() != same.words(3).tolist()


@over_rows("bad", ["0", 1.0, 1.5, True, np.True_, b"key", [1], np.array([1]), object()])
def test_bad_random_state_is_rejected_in_one_line(bad):
    with pytest.raises(ValueError, match=r"^`random_state` must be None, an int.*Use None for secret noise") as error:
        SecretStream.from_random_state(bad, "test")
    assert "\n" not in str(error.value)


# --- nothing gives the key away ---


@over_rows("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_streams_are_not_copied(copying):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        copying(stream())


def test_repr_does_not_hold_the_key():
    key = hashlib.sha256(b"secret").digest()
    secret = SecretStream(key)
    secret.normal(5)
    for text in (repr(secret), str(secret), format(secret)):
        assert key.hex() not in text.lower()
        assert repr(key) not in text
        assert repr(key)[2:-1] not in text


# --- no number twice ---


def interrupt_at(line, act, work):
    """Call `act` as the handler of a signal would be called, at the given line of `_random.py` that `work` comes to.

    Returns what `work` returned and whether it came to so many lines.
    """
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename != SecretStream.normal.__code__.co_filename:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                sys.settrace(None)
                frame.f_trace = None
                act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work(), seen >= line
    finally:
        sys.settrace(before)


DRAWS = {
    "normals from what is left": lambda source: source.normal(5),
    "whole numbers of many batches": lambda source: source.noisy(np.zeros(9_000), 2.0**34, 2.0**-34),
    "words": lambda source: source.words(9),
    "rows": lambda source: source.poisson_rows(10**15, 1e-14),
}


def drawn_normals(source):
    """The next normals, or none where the stream rejects."""
    try:
        return source.normal(50).tolist()
    except RuntimeError as error:
        assert "another caller, or a draw was interrupted" in str(error)  # noqa: PT017
        return []


@over_rows("draw", DRAWS.values())
def test_a_second_caller_between_any_two_lines_sees_no_number_again(draw):
    line, rejected, goes_on = 0, 0, True
    while goes_on:
        line += 1
        source, second = stream("callers"), []
        source.normal(10)
        first, goes_on = interrupt_at(line, lambda: second.extend(drawn_normals(source)), lambda: draw(source))  # noqa: B023
        rejected += goes_on and not second
        given = [*first.tolist(), *second, *source.normal(50).tolist()]
        assert len({round(each, 9) for each in given}) == len(given), line  # whole numbers hold more digits than these
    assert rejected >= 3


@over_rows("draw", DRAWS.values())
def test_an_interrupt_between_any_two_lines_brings_no_number_back(draw):
    """A stream that was interrupted rejects, or goes on with numbers that were not drawn before."""

    def interrupt():
        raise KeyboardInterrupt

    line, rejected, goes_on = 0, 0, True
    while goes_on:
        line += 1
        source = stream("interrupts")
        first = source.normal(10).tolist()
        try:
            interrupt_at(line, interrupt, lambda: draw(source))  # noqa: B023
            goes_on = False
        except KeyboardInterrupt:
            later = drawn_normals(source)
            rejected += not later
            assert {round(each, 9) for each in first}.isdisjoint(round(each, 9) for each in later)
    assert rejected >= 3


def test_an_error_in_the_middle_of_a_draw_ends_the_stream():
    """Numbers may have been made of the words that it took."""
    source = stream("errors")
    source.normal(10)
    with pytest.raises(MemoryError):
        source.words(10**17)
    uses = (
        lambda: source.normal(5), lambda: source.words(5), lambda: source.poisson_rows(100, 0.5),
        lambda: source.position, lambda: source.seek((0, 0)),
    )  # fmt: skip
    for use in uses:
        with pytest.raises(RuntimeError, match="another caller, or a draw was interrupted"):
            use()


def test_threads_share_no_number():
    source, given = stream("threads"), []

    def draw():
        for _ in range(300):
            numbers = drawn_normals(source)
            given.extend(numbers)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert given
    assert len(set(given)) == len(given)


def in_a_child(work):
    """What `work` returns in a forked child, as text."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        with open(writes, "w") as pipe:
            pipe.write(str(work()))
        os._exit(0)
    os.close(writes)
    with open(reads) as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_draws_nothing_from_the_streams_of_its_parent():
    source, fresh = stream("fork"), stream("fork")
    source.normal(10)
    fresh.normal(10)
    uses = {
        "normal": lambda: source.normal(5), "words": lambda: source.words(5), "spawn": lambda: source.spawn("noise"),
        "rows": lambda: source.poisson_rows(100, 0.5), "position": lambda: source.position,
        "seek": lambda: source.seek((0, 0)),
    }  # fmt: skip

    def rejections():
        rejected = []
        for name, use in uses.items():
            try:
                use()
            except RuntimeError as error:
                rejected += [name] if "was forked" in str(error) else []
        return rejected

    assert in_a_child(rejections) == str(list(uses))
    assert in_a_child(lambda: len(SecretStream.from_random_state(None, "test").spawn("noise").normal(5))) == "5"
    np.testing.assert_array_equal(source.normal(50), fresh.normal(50))  # the parent goes on


# --- property 9: the law of the noise ---


def kolmogorov_smirnov(z):
    """sqrt(n) D, whose law is Kolmogorov's to within 1/sqrt(n)."""
    z = np.sort(z)
    n = len(z)
    below = ndtr(z).astype(np.float64)
    grid = np.arange(n + 1) / n
    return math.sqrt(n) * max(np.max(grid[1:] - below), np.max(below - grid[:-1]))


def assert_two_sided(count, law):
    assert law.cdf(count) > FALSE_ALARM / 2, count
    assert law.sf(count - 1) > FALSE_ALARM / 2, count


def check_law(draw, n, n_pieces):
    """All tests of property 9 on n draws, in pieces so that they fit in memory."""
    powers, lagged = np.zeros(4), np.zeros((2, len(LAGS)))
    beyond = {3.0: 0, 4.0: 0, 5.0: 0}
    m = n // n_pieces
    for _ in range(n_pieces):
        z = draw(m)
        assert kolmogorov_smirnov(z) < kolmogi(FALSE_ALARM / n_pieces)
        z = z.astype(np.float64)
        square = z * z
        powers += z.sum(), square.sum(), (square * z).sum(), (square * square).sum()
        for i, lag in enumerate(LAGS):
            lagged[0, i] += z[lag:] @ z[:-lag]
            lagged[1, i] += (square[lag:] - 1.0) @ (square[:-lag] - 1.0)
        for limit in beyond:
            beyond[limit] += int(np.count_nonzero(np.abs(z) > limit))
    # moments 1 to 4 of n normals are normal with variances 1, 2, 15 and 96 over n (central limit theorem)
    moments = (powers / n - [0, 1, 0, 3]) * np.sqrt(n / np.array([1, 2, 15, 96]))
    assert np.abs(moments).max() < Z_LIMIT, moments
    for limit, count in beyond.items():
        assert_two_sided(count, poisson(2 * norm.sf(limit) * n) if limit >= 5 else binom(n, 2 * norm.sf(limit)))
    # products of normals at a lag have variance 1; of centered squares, whose variance is 2, 4
    pairs = n_pieces * (m - np.array(LAGS))
    scores = lagged / np.sqrt(pairs) / np.array([[1.0], [2.0]])
    assert np.abs(scores).max() < norm.isf(FALSE_ALARM / 2 / scores.size), scores


LAGS = (1, 2, 3, 4, 255, 256, 257, 511, 512, 513, 1_024)  # 256 apart are the two that share a radius


@over_rows("dtype", [np.float32, np.float64])
def test_noise_is_normal(dtype):
    """4 million draws, 2.3 of them beyond 5 standard deviations, and a million in float32."""
    source = stream(f"law {np.dtype(dtype).name}")
    check_law(lambda m: source.normal(m, dtype), 4_000_000 if dtype == np.float64 else 1_000_000, 2)


@pytest.mark.slow
@over_rows("dtype", [np.float32, np.float64])
def test_noise_is_normal_at_1e8(dtype):
    """Property 9 as written: 10**8 draws, 57 expected beyond |z| = 5."""
    source = stream(f"long law {np.dtype(dtype).name}")
    check_law(lambda m: source.normal(m, dtype), 100_000_000, 20)


def test_noise_is_independent_between_coordinates_and_steps():
    """Property 8: 200 steps of 40 parameters: the 40 x 40 second moments over steps, and of each step with the next."""
    source, steps, p = stream("steps"), 5_000, 40
    draws = np.array([source.normal(p) for _ in range(steps)])
    together = draws.T @ draws
    next_step = draws[1:].T @ draws[:-1]
    scores = np.concatenate(
        [together[np.triu_indices(p, 1)] / math.sqrt(steps), next_step.ravel() / math.sqrt(steps - 1)]
    )
    assert np.abs(scores).max() < norm.isf(FALSE_ALARM / 2 / len(scores))


# --- property 10: Poisson sampling of rows ---


@over_rows("rate", [0.03, 0.9])
def test_rows_are_in_with_the_rate_and_independently(rate):
    """Frequency of each row, covariance of each pair, and the law of the lot's size."""
    n, lots = 40, 20_000
    source = stream(f"inclusion {rate}")
    member = np.zeros((lots, n), bool)
    for lot in member:
        lot[source.poisson_rows(n, rate)] = True
    assert_extremes_are_binomial(member.sum(axis=0), binom(lots, rate))
    together = member.T.astype(np.float64) @ member  # exact counts; with the rates above this is the covariance
    assert_extremes_are_binomial(together[np.triu_indices(n, 1)], binom(lots, rate**2))
    assert_sizes_are_binomial(member.sum(axis=1), n, rate)


def assert_extremes_are_binomial(counts, law):
    """The smallest and the largest of some counts of one law, by a union bound."""
    assert law.cdf(counts.min()) > FALSE_ALARM / 2 / len(counts)
    assert law.sf(counts.max() - 1) > FALSE_ALARM / 2 / len(counts)


def assert_sizes_are_binomial(sizes, n, rate):
    """Pearson's chi-square over cells of at least 10 expected."""
    law, lots = binom(n, rate), len(sizes)
    inner = np.flatnonzero(lots * law.pmf(np.arange(n + 1)) >= 10)
    low, high = inner[0], inner[-1]
    expected = lots * np.array([law.cdf(low), *law.pmf(np.arange(low + 1, high)), law.sf(high - 1)])
    observed = np.bincount(np.clip(sizes, low, high) - low, minlength=len(expected))
    assert np.sum((observed - expected) ** 2 / expected) < chi2.isf(FALSE_ALARM, len(expected) - 1)


def test_tiny_rates():
    """q = 1e-9: nearly always no row; of 10**12 rows about 1,000, spread evenly."""
    source = stream("tiny")
    empty = sum(len(source.poisson_rows(1_000, 1e-9)) == 0 for _ in range(1_000))
    assert empty >= 999  # 1e-3 expected to be in: two in 1,000 lots have probability 5e-7
    rows = np.concatenate([source.poisson_rows(10**12, 1e-9) for _ in range(20)])
    assert_two_sided(len(rows), poisson(20_000))
    assert kolmogorov_smirnov(norm.ppf((rows + 0.5) / 1e12)) < kolmogi(FALSE_ALARM)


class CountingStream(SecretStream):
    """Counts the words that it hands out."""

    n_words = 0

    def _placed_words(self, count):
        self.n_words += count
        return super()._placed_words(count)


class FullestStream(CountingStream):
    """Words of an unlikely kind: each lets the very next row in."""

    def _placed_words(self, count):
        start, words = super()._placed_words(count)
        return start, np.zeros_like(words)


def test_nothing_caps_a_lot():
    """Property 12: a lot far above its expected size (here every row, at q = 0.001) comes back whole, in order."""
    source = FullestStream(hashlib.sha256(b"fullest").digest())
    np.testing.assert_array_equal(source.poisson_rows(1_000, 1e-3), np.arange(1_000))
    assert source.n_words >= 1_001


@over_rows(("n", "rate"), [(10**6, 1e-3), (10**15, 1e-12), (10**9, 1e-9)])
def test_cost_grows_with_the_lot_and_not_with_n(n, rate):
    """A lot of 1,000 rows takes some 1,200 words whether it is drawn from a million rows or from 10**15."""
    source = CountingStream(hashlib.sha256(b"cost").digest())
    lots = [len(source.poisson_rows(n, rate)) for _ in range(20)]
    expected = n * rate
    assert source.n_words / 20 < 1.3 * (expected + 6 * math.sqrt(expected)) + 32
    assert_two_sided(sum(lots), poisson(20 * expected))
