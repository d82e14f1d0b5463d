"""Plant known mistakes, one at a time, and show that a test goes red for each.

    python tests/mutants.py                run all
    python tests/mutants.py --list         names and what they plant
    python tests/mutants.py --only NAME    one of them (may be repeated)
    python tests/mutants.py --jobs 2       two at a time

Each mutant is a copy of the package and its tests in a temporary directory, with an empty Numba cache, in which some
text is replaced. Text that is not found exactly once is an error, so a mutant cannot quietly become a no-op when the
code changes. Only the tests that are meant to catch it are run. Tests that fail without any mutant are no catch: they
are left out, and reported.

The list is the last paragraph of the design's privacy page ("known to have been got wrong elsewhere"), as far as it
applies to what exists, and more of its kind.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNEL, BITS = "skdp/_kernels/linear.py", "skdp/_kernels/bits.py"
RANDOM, SAMPLING, MECHANISMS = "skdp/_random.py", "skdp/_sampling.py", "skdp/mechanisms.py"
PLAN, MODELS, OPTIMIZERS, TRAINING = (
    "skdp/_training/plan.py",
    "skdp/_training/linear.py",
    "skdp/_training/optimizers.py",
    "skdp/_training/loop.py",
)
GRAM, GRAM_KERNEL, PCA = "skdp/_gram.py", "skdp/_kernels/gram.py", "skdp/decomposition.py"
UPDATES = "skdp/_kernels/updates.py"
AVERAGING, DENSE, NETWORKS = "skdp/_training/averaging.py", "skdp/_kernels/dense.py", "skdp/_training/network.py"
CHECKPOINT, RELEASES, PIPELINE = "skdp/_training/checkpoint.py", "skdp/_fitting/releases.py", "skdp/pipeline.py"
RUNNING = "skdp/_fitting/running.py"
RUN_LOCK = "skdp/_training/run_lock.py"
INPUT, CELLS, VALIDATION = "skdp/_fitting/rows.py", "skdp/_fitting/cells.py", "skdp/_validation.py"
BASE, CLASSIFIER, MLP = "skdp/base.py", "skdp/_classifier.py", "skdp/neural_network.py"
ACCOUNTANT, METHODS = "skdp/accounting/ledger/accountant.py", "skdp/accounting/methods.py"
LOG, STORE, SQLITE = (
    "skdp/accounting/ledger/log.py",
    "skdp/accounting/ledger/store.py",
    "skdp/accounting/ledger/sqlite.py",
)
SERIAL = "skdp/accounting/ledger/serial.py"
FILTERS, LEDGER = "skdp/accounting/ledger/filters.py", "skdp/accounting/ledger/ledger.py"
ADMISSION, PLACING = "skdp/accounting/ledger/admission.py", "skdp/accounting/ledger/placing.py"

PUBLIC, ROW_WISE, CALLERS = "skdp/_fitting/public_steps.py", "skdp/_fitting/row_wise.py", "skdp/_fitting/callers.py"
MADE_UP, CONFIG, RULES = "skdp/_fitting/made_up.py", "skdp/_config.py", "skdp/_fitting/public_rules.py"
SEARCH, SEARCH_PLAN, SCORES = "skdp/_search/search.py", "skdp/_search/plan.py", "skdp/_search/scores.py"
CANDIDATES = "skdp/_search/candidates.py"
PROFILES, REPEATS = "skdp/accounting/pld/profiles.py", "skdp/accounting/tries.py"
RENYI, DIRECTIONS = "skdp/accounting/rdp/rdp.py", "skdp/accounting/pld/directions.py"
RESOLUTION, CURVES = "skdp/accounting/pld/resolution.py", "skdp/accounting/pld/curves.py"
CALIBRATION = "skdp/accounting/calibration/noise.py"
GRID, COMPOSITION = "skdp/accounting/pld/grid.py", "skdp/accounting/composition.py"
RENYI_SAMPLED = "skdp/accounting/rdp/sampled.py"


BY_PROPERTY = (
    "not plain_reading and not reference_loop and not sums_at_other and not may_repeat and not come_from_one_object"
)
"""Leaves out the comparisons with the plain reading, which see everything: the property itself has to be tested."""


class Edit(NamedTuple):
    path: str
    old: str
    new: str


class Mutant(NamedTuple):
    """A mistake, the edits that plant it, and the test files (with -k expressions) that must notice."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    select: str = ""


def mutant(name: str, *edits: tuple[str, str, str], tests: str, select: str = "") -> Mutant:
    paths = tuple(f"tests/test_{test}.py" for test in tests.split())
    return Mutant(name, tuple(Edit(*edit) for edit in edits), paths, select)


RELEASE = "gradient = mechanism.release(total, noise_stream)\n"
DIVIDE = "gradient /= plan.expected_lot_size\n"
CLIP_BINARY = "factor = _clip_factor(abs(residual) * length[i], max_norm)"
CLIP_SOFTMAX = "factor[i] = _clip_factor(math.sqrt(square[i]) * length[i], max_norm)"
CHARGE = "        work._charge_once(plan)\n"
TAB = "\n                "
IMMEDIATE = 'with transaction(self.path, "BEGIN IMMEDIATE") as connection:'
DEFERRED = 'with transaction(self.path, "BEGIN") as connection:'
CAUGHT_UP = f"{TAB}self._catch_up(connection)"
UNCHANGED = "if len(self._ledger.entries) != known:"
FORGETFUL = 'for name, value in fields_of_entry.items() if value is not None and name not in ("previous", "seq")'
CLIP_LAYERS = "self._clip(inputs, deltas, first, max_norm / self._slack)\n"

MUTANTS = [
    # --- private input ---
    mutant(
        "rows checked unless scikit-learn is told to assume that they are finite",
        (
            CELLS,
            '    if values.dtype.kind != "f":\n',
            '    import sklearn\n\n    if sklearn.get_config()["assume_finite"] or values.dtype.kind != "f":\n',
        ),
        tests="input",
    ),
    mutant(
        "an error that quotes a cell chained to the refusal",
        (
            CELLS,
            "        pass  # its message may quote cells\n",
            '        raise ValueError(f"{name} is no array of numbers: its rows differ in length") from None\n',
        ),
        tests="input",
        select="bad_tables",
    ),
    mutant(
        "the schema of a table written before it is refused",
        (
            INPUT,
            "    _check_finite(table, names)\n",
            "    _check_schema(estimator, table, reset=reset)\n    _check_finite(table, names)\n",
        ),
        tests="input",
    ),
    mutant(
        "the largest numbers warned of",
        (
            CELLS,
            '    with np.errstate(all="ignore"):\n        if np.isfinite(values.sum())',
            "    if True:\n        if np.isfinite(values.sum())",
        ),
        tests="input",
    ),
    mutant(
        "columns beyond the shape of a sparse matrix believed",
        (INPUT, "        X.check_format(full_check=True)\n", "        pass\n"),
        tests="input",
        select="bad_tables",
    ),
    mutant(
        "masked cells taken for data",
        (CELLS, "if np.ma.isMaskedArray(given) and np.ma.is_masked(given):", "if False:"),
        tests="input",
    ),
    mutant(
        "a table given as a parameter quoted",
        (VALIDATION, 'return f"<{type(value).__name__}>"', 'return " ".join(repr(value).split())'),
        tests="validation",
    ),
    mutant(
        "a label that is no class quoted",
        (INPUT, "y contains labels that are not in classes", "y contains {y[:1].tolist()}, not in classes"),
        tests="input",
    ),
    # --- the clip ---
    mutant(
        "clip after averaging",
        (KERNEL, CLIP_BINARY, "factor = 1.0"),
        (KERNEL, CLIP_SOFTMAX, "factor[i] = 1.0"),
        (
            TRAINING,
            "            gradient = mechanism.release",
            "            total = total * min(1.0, plan.max_grad_norm / max(np.linalg.norm(total), 1e-300))\n"
            "            gradient = mechanism.release",
        ),
        tests="linear_kernels training",
        select=BY_PROPERTY,
    ),
    mutant(
        "no clip",
        (KERNEL, "factor = 1.0 if size <= max_norm else max_norm / size", "factor = 1.0"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "clip to twice the bound",
        (KERNEL, "factor = 1.0 if size <= max_norm else max_norm / size", "factor = min(1.0, 2.0 * max_norm / size)"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "each class clipped for itself, billed as one clip",
        (
            KERNEL,
            "clipped = z[k, i] * factor[i] if factor[i] > 0.0 else 0.0",
            "clipped = z[k, i] * _clip_factor(abs(z[k, i]) * length[i], max_norm) if factor[i] > 0.0 else 0.0",
        ),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "intercept left out of the clip",
        (KERNEL, "length = math.hypot(facts[SCALE, i] * norm, icpt)", "length = facts[SCALE, i] * norm"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "unclipped row used after the clip",
        (KERNEL, "feature_part[i] = _representable(clipped * scale[i])", "feature_part[i] = clipped"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "unclipped row used after the clip (softmax)",
        (KERNEL, "feature_part[k, i] = _representable(clipped * scale[i])", "feature_part[k, i] = clipped"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "lengths of float32 rows rounded to nearest",
        (KERNEL, "    if facts[LENGTH, i] < length:\n", "    if False:\n"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "norms that lost their digits taken as they are",
        (KERNEL, "return max(top * math.sqrt(square), _SMALLEST_NORMAL)", "return top * math.sqrt(square)"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "NaN among zeros taken for a zero",
        (KERNEL, "        return np.nan\n", "        return 0.0\n"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows with NaN multiplied by 0",
        (MODELS, "_zero_muted_rows(X, facts[kernel.SCALE])", "X"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows with NaN multiplied by 0 (network)",
        (
            DENSE,
            "            chunk[i, :] = 0.0  # infinity times zero is NaN\n            continue\n",
            "            pass\n",
        ),
        (NETWORKS, "                each[muted] = 0.0\n", "                pass\n"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: NaN among zeros taken for a zero",
        (GRAM_KERNEL, "which NaN is not larger than\n        row[:] = 0.0\n", "\n"),
        tests="gram",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows not brought to the public norm",
        (KERNEL, "unit * (radius / norm) if norm > radius else unit", "unit"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows clipped, their norm taken before",
        (KERNEL, "length = math.hypot(facts[SCALE, i] * norm, icpt)", "length = math.hypot(unit * norm, icpt)"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "weight applied after the clip",
        (KERNEL, "residual = weight[i] * (probability - label[i])", "residual = probability - label[i]"),
        (KERNEL, "clipped = residual * factor if factor > 0.0 else 0.0", "clipped = weight[i] * residual * factor"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "a null record keeps its intercept",
        (KERNEL, "        icpt_part[i] = clipped * icpt", "        icpt_part[i] = (probability - label[i]) * icpt"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "guard against NaN and overflow removed",
        (KERNEL, "return factor if factor >= _SMALLEST_NORMAL else 0.0", "return factor"),
        (KERNEL, "clipped = residual * factor if factor > 0.0 else 0.0", "clipped = residual * factor"),
        (KERNEL, "clipped = z[k, i] * factor[i] if factor[i] > 0.0 else 0.0", "clipped = z[k, i] * factor[i]"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "tiny rows taken for rows of zeros, which no weight can make long",
        (KERNEL, "    if 1e-280 < square < 1e280:\n", "    if square >= 0.0:\n"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "residuals that lose digits or become infinite",
        (KERNEL, "return value if _SMALLEST_NORMAL <= abs(value) < np.inf else 0.0", "return value"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "fastmath",
        (KERNEL, '"error_model": "numpy"}', '"error_model": "numpy", "fastmath": True}'),
        tests="linear_kernels",
        select="fastmath",
    ),
    mutant(
        "a block summed in the dtype of the rows",
        (
            KERNEL,
            "        _add_rows(X, rows, feature_part[k], total[k])\n",
            "        block_sum = np.zeros(d, X.dtype)\n"
            "        _add_rows(X, rows, feature_part[k].astype(X.dtype), block_sum)\n"
            "        for j in range(d):\n"
            "            total[k, j] += block_sum[j]\n",
        ),
        tests="guarantees",
    ),
    mutant(
        "the sum's order depends on the threads",
        (MODELS, "        n_segments = self._n_segments(n)", "        n_segments = 1 if self._pool is None else 3"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "the last rows of a sum forgotten",
        (MODELS, "n * (segment + 1) // n_segments", "n * (segment + 1) // n_segments // 4 * 4"),
        tests="linear_kernels",
        select=BY_PROPERTY,
    ),
    # --- the noise ---
    mutant(
        "noise divided by the root of the lot",
        (
            TRAINING,
            RELEASE,
            "noise = mechanism.release(0 * total, noise_stream) * plan.expected_lot_size**0.5\n"
            "            gradient = total + noise\n",
        ),
        tests="training neural_network",
        select=BY_PROPERTY,
    ),
    mutant(
        "divisor by the realised lot",
        (
            TRAINING,
            DIVIDE,
            "gradient /= max(1, len(rows) if rows is not None else model.n_rows)\n",
        ),
        tests="training neural_network",
        select=BY_PROPERTY,
    ),
    mutant(
        "noise without the sensitivity",
        (MECHANISMS, "return self.noise_multiplier * self.sensitivity", "return self.noise_multiplier"),
        tests="mechanisms training",
        select=BY_PROPERTY,
    ),
    mutant(
        "noise added after the division",
        (TRAINING, RELEASE, "gradient = mechanism.release(total / plan.expected_lot_size, noise_stream)\n"),
        (TRAINING, f"            {DIVIDE}", ""),
        tests="training",
        select=BY_PROPERTY,
    ),
    mutant(
        "priced at another noise than runs",
        (MECHANISMS, "GaussianDpEvent(self.noise_multiplier)", "GaussianDpEvent(1.1 * self.noise_multiplier)"),
        tests="mechanisms plan",
    ),
    mutant(
        "one normal for all parameters",
        (MECHANISMS, "stream.normal(value.size)", "stream.normal(1)"),
        tests="mechanisms training",
        select=BY_PROPERTY,
    ),
    mutant(
        "the same noise at each step",
        (TRAINING, RELEASE, RELEASE.replace("noise_stream", 'stream.spawn("noise")')),
        tests="training",
        select=BY_PROPERTY,
    ),
    mutant(
        "one stream for sampling and noise",
        (TRAINING, 'stream.spawn("sampling"), stream.spawn("noise")', '(stream.spawn("noise"),) * 2'),
        tests="training",
        select=BY_PROPERTY,
    ),
    mutant(
        "two copies of one stream for sampling and noise",
        (TRAINING, 'stream.spawn("sampling"), stream.spawn("noise")', 'stream.spawn("noise"), stream.spawn("noise")'),
        tests="training",
        select=BY_PROPERTY,
    ),
    mutant(
        "purposes ignored by spawn",
        (RANDOM, "repr(purpose).encode()", 'b"purpose"'),
        tests="random",
    ),
    mutant(
        "instalments reuse the noise",
        (CLASSIFIER, 'spawn("from step", before[0])', 'spawn("from step", 0)'),
        tests="linear_model neural_network",
        select="instalments",
    ),
    mutant(
        "a key that is always the same",
        (RANDOM, "return cls(os.urandom(32))", "return cls(bytes(32))"),
        tests="random",
    ),
    mutant(
        "noise from numpy's global generator",
        (
            RANDOM,
            "normals_from_words(self.words(_NORMALS_AHEAD), self._normals)",
            "self._normals = np.random.standard_normal(_NORMALS_AHEAD)",
        ),
        tests="random",
    ),
    mutant(
        "left-over normals drawn twice",
        (RANDOM, "self._normals = self._normals[taken:]", "self._normals = self._normals[taken // 2 :]"),
        tests="random",
    ),
    mutant(
        "a stream that can be pickled",
        (
            RANDOM,
            'raise TypeError("A SecretStream cannot',
            'return SecretStream, (self._key,), str("A SecretStream cannot',
        ),
        tests="random",
    ),
    mutant(
        "tail of the normals cut at 2**-32",
        (
            BITS,
            "radii[i] = math.sqrt(-2.0 * _log_unit(words[i]))",
            "radii[i] = math.sqrt(-2.0 * _log_unit(words[i] & np.uint64(0xFFFFFFFF00000000)))",
        ),
        tests="bits",
    ),
    mutant(
        "half of the angles",
        (BITS, "sign = (word & np.uint64(1)) << np.uint64(63)", "sign = (word & np.uint64(0)) << np.uint64(63)"),
        tests="bits",
    ),
    # --- sampling ---
    mutant(
        "lots of fixed size billed as Poisson",
        (
            SAMPLING,
            "return stream.poisson_rows(n, self.rate)",
            "return np.sort(np.argsort(stream.words(n))[: round(n * self.rate)])",
        ),
        tests="sampling training",
        select=BY_PROPERTY,
    ),
    mutant(
        "shuffling billed as Poisson",
        (
            SAMPLING,
            "return stream.poisson_rows(n, self.rate)",
            "size = max(1, round(n * self.rate))\n"
            "        first = int(stream.words(1)[0]) % max(1, n - size + 1)\n"
            "        return np.arange(first, min(n, first + size))",
        ),
        tests="sampling training",
        select=BY_PROPERTY,
    ),
    mutant(
        "all rows at every step, billed as Poisson",
        (SAMPLING, "return stream.poisson_rows(n, self.rate)", "return np.arange(n)"),
        tests="sampling training",
        select=BY_PROPERTY,
    ),
    mutant(
        "sampled at another rate than is priced",
        (SAMPLING, "stream.poisson_rows(n, self.rate)", "stream.poisson_rows(n, min(1.2 * self.rate, 0.999))"),
        tests="sampling training",
        select=BY_PROPERTY,
    ),
    mutant(
        "full batch billed as half a batch",
        (SAMPLING, "        return inner\n", "        return PoissonSampledDpEvent(0.5, inner)\n"),
        tests="sampling plan",
    ),
    mutant(
        "gap of a sampled row off by one",
        (BITS, "last += 1 + np.int64(gaps[i])", "last += 2 + np.int64(gaps[i])"),
        tests="bits random",
    ),
    mutant(
        "lot cut off at its expected size and four deviations",
        (RANDOM, "        while last < n:\n", "        for _ in range(1 if last < n else 0):\n"),
        tests="random",
    ),
    mutant(
        "last lot dropped when empty",
        (
            TRAINING,
            "            total = model.clipped_gradient_sum",
            "            if rows is not None and len(rows) == 0:\n                continue\n"
            "            total = model.clipped_gradient_sum",
        ),
        tests="training",
        select=BY_PROPERTY,
    ),
    mutant(
        "no noise on an empty lot",
        (TRAINING, RELEASE, f"gradient = total if rows is not None and not len(rows) else {RELEASE[11:]}"),
        tests="training",
        select=BY_PROPERTY,
    ),
    # --- the price ---
    mutant(
        "event with one step fewer",
        (PLAN, "return self.event_of(self.n_steps)", "return self.event_of(self.n_steps - 1)"),
        tests="plan training",
        select=BY_PROPERTY,
    ),
    mutant(
        "one step more than is priced",
        (TRAINING, "while state.n_done < plan.n_steps:", "while state.n_done < plan.n_steps + 1:"),
        tests="training",
        select=BY_PROPERTY,
    ),
    mutant(
        "replace_one priced as add_remove",
        (
            METHODS,
            'return max(_epsilon(found, delta, method, adjacency == "replace_one"), sys.float_info.min)',
            "return max(_epsilon(found, delta, method, False), sys.float_info.min)",
        ),
        tests="plan accounting_pld",
    ),
    mutant(
        "noise solved for without adjacency",
        (PLAN, "method=accounting, adjacency=adjacency)", "method=accounting)"),
        tests="plan",
    ),
    mutant(
        "accountant spent in a forked process",
        (LOG, "return self._detached or self._process != os.getpid()", "return self._detached"),
        tests="accounting_accountant",
        select="forked",
    ),
    mutant(
        "accountant lost in clone",
        (ACCOUNTANT, "def __sklearn_clone__(self)", "def _no_clone(self)"),
        (ACCOUNTANT, "def __copy__(self)", "def _no_copy(self)"),
        (ACCOUNTANT, "def __deepcopy__(self, memo", "def _no_deepcopy(self, memo"),
        tests="accounting_accountant linear_model",
        select="clone or ledger",
    ),
    mutant(
        "a pickled accountant that spends",
        (LOG, "        self._detached = True\n", ""),
        tests="accounting_accountant",
    ),
    # --- the budget in a file ---
    mutant(
        "a charge that others overtook not priced again",
        (STORE, UNCHANGED, "if False:"),
        tests="accounting_store",
        select="ten_scripts or others_charged",
    ),
    mutant(
        "lock taken at the first write",
        (
            STORE,
            'transaction(self.path, "BEGIN IMMEDIATE", partial(self._write,',
            'transaction(self.path, "BEGIN", partial(self._write,',
        ),
        tests="accounting_store",
        select="scripts or threads",
    ),
    mutant(
        "a charge that is not committed",
        (SQLITE, "        with connection:\n", "        if True:\n"),
        tests="accounting_store",
        select="kill_9 or behaves",
    ),
    mutant(
        "a charge left to the cache of the system",
        (SQLITE, '"PRAGMA synchronous = EXTRA")  #', '"PRAGMA synchronous = OFF")  #'),
        tests="accounting_store",
        select="on_the_disk",
    ),
    mutant(
        "a file cut to nothing taken for a new one",
        (STORE, "not os.path.lexists(path):", "not (os.path.lexists(path) and os.path.getsize(path)):"),
        (PLACING, "os.link(made, path)", "os.replace(made, path)"),
        tests="accounting_store",
        select="truncated",
    ),
    mutant(
        "another budget taken for the one that was opened",
        (STORE, "if _header(self.path, connection)[1] != self._heads[0]:", "if False:"),
        tests="accounting_store",
        select="exchanged",
    ),
    mutant(
        "an older copy of the file taken for the present one",
        (STORE, "if self._heads[count : count + 1] != [head]:", "if False:"),
        tests="accounting_store",
        select="exchanged",
    ),
    mutant(
        "a hash that is not recomputed",
        (STORE, "!= (seq, heads[-1], link(row)):", "!= (seq, heads[-1], written):"),
        tests="accounting_store",
        select="tampering",
    ),
    mutant(
        "a hash that does not cover the hash before it",
        (SERIAL, "for name, value in fields_of_entry.items() if value is not None", FORGETFUL),
        (
            STORE,
            '(row.get("seq"), row.get("previous"), written) != (seq, heads[-1], link(row))',
            "written != link(row)",
        ),
        tests="accounting_store",
        select="tampering",
    ),
    mutant(
        "an open lock inherited by a fork",
        (LOG, "    os.register_at_fork(", "    (lambda **hooks: None)("),
        tests="accounting_store",
        select="forked",
    ),
    mutant(
        "a file that stays locked after Ctrl-C",
        (SQLITE, "*error: object) -> None:\n        self._close()", "*error: object) -> None:\n        pass"),
        tests="accounting_store",
        select="interrupt_at_any",
    ),
    mutant(
        "what was charged remembered after the lock is given back",
        (
            STORE,
            "        with LOCK:\n            head = transaction",
            "        if True:\n            head = transaction",
        ),
        tests="accounting_store",
        select="right_after_a_charge",
    ),
    mutant(
        "a file without hard links put in the place of another",
        (PLACING, 'with open(path, "xb") as claimed:', 'with open(path, "wb") as claimed:'),
        tests="accounting_store",
        select="links",
    ),
    mutant(
        "a file half copied that can be charged",
        (PLACING, "claimed.seek(_HEADER)\n            claimed.write(content[_HEADER:])", "claimed.write(content)"),
        tests="accounting_store",
        select="copied",
    ),
    # --- what a ceiling admits ---
    mutant(
        "delta not halved between two filters",
        (FILTERS, 'delta if family == "gaussian" else 0.5 * delta', "delta"),
        tests="accounting_filters",
        select="shares or half_of_delta",
    ),
    mutant(
        "the whole delta for each Rényi filter",
        (
            FILTERS,
            "renyi_epsilon_at(order, 0.0, rule.renyi / len(rule.orders))",
            "renyi_epsilon_at(order, 0.0, rule.renyi)",
        ),
        tests="accounting_filters",
        select="shares or mix",
    ),
    mutant(
        "order chosen after outputs were seen",
        (LEDGER, "        if self.rule is not None:\n            return self.rule\n", ""),
        (LEDGER, "(first_rule, first)", "(rule_for, found)"),
        tests="accounting_filters",
        select="order or first_version",
    ),
    mutant(
        "a rule that is not kept",
        (ADMISSION, "replace(entry, rule=ledger.rule_with(found, entry.adjacency))", "entry"),
        tests="accounting_filters",
        select="order or rule or chain",
    ),
    mutant(
        "an entry made in the ledger that others read",
        (LOG, "            ledger = self.read()\n", "            ledger = self._ledger\n"),
        tests="accounting_store",
        select="no_entry_in_part",
    ),
    mutant(
        "the order of an old ledger by the prices of today",
        (
            FILTERS,
            "_best_order(first, epsilon, delta, replace_one, _first_cost)",
            "_best_order(first, epsilon, delta, replace_one)",
        ),
        tests="accounting_filters",
        select="first_version",
    ),
    mutant(
        "an old ledger under a new rule",
        (LEDGER, "(first_rule, first)", "(rule_for, first)"),
        tests="accounting_filters",
        select="first_version",
    ),
    mutant(
        "failure probabilities that do not add up",
        (FILTERS, "[n * count * delta for found, n in charges", "[delta for found, n in charges"),
        tests="accounting_filters",
        select="fail or known_epsilon",
    ),
    mutant(
        "failure probabilities for nothing",
        (FILTERS, "if failures_of(charges) <= self.failures else math.inf", "if True else math.inf"),
        tests="accounting_filters",
        select="fail or known_epsilon or delta_is",
    ),
    mutant(
        "a raised ceiling held by the filter",
        (
            LEDGER,
            "        if self.raised:\n            return share(self._odometer",
            "        if False:\n            return share(self._odometer",
        ),
        tests="accounting_filters",
        select="raised",
    ),
    mutant(
        "a raise below what was spent",
        (ADMISSION, "    if figure > epsilon:\n", "    if False:\n"),
        tests="accounting_filters budget_cli",
        select="raise",
    ),
    mutant(
        "a refusal that is not recorded",
        (ACCOUNTANT, "            self._log.append(entry)\n", "            pass\n"),
        tests="accounting_filters",
        select="refus",
    ),
    mutant(
        "more releases than any method prices",
        (ADMISSION, "if not ledger.has_room(entry.event):", "if False:"),
        tests="accounting_filters",
        select="no_more_releases",
    ),
    mutant(
        "a charge that no method prices with the others",
        (ADMISSION, "if not ledger.priced_with(found, entry.adjacency):", "if False:"),
        tests="accounting_filters",
        select="joint_price",
    ),
    mutant(
        "a figure of what is left rounded up",
        (
            ADMISSION,
            "told, least = rounded(needed, digits, up=True), rounded(left, digits)",
            "told, least = rounded(needed, digits, up=True), rounded(left * 1.01, digits, up=True)",
        ),
        tests="accounting_filters",
        select="affordable",
    ),
    mutant(
        "the seed on the ledger",
        (BASE, '"n_jobs", "random_state", "verbose")', '"n_jobs", "verbose")'),
        tests="accounting_store",
        select="leaves_on_the_bill",
    ),
    mutant(
        "charge after the data are read",
        (CLASSIFIER, CHARGE, ""),
        (CLASSIFIER, "        publish(self, work)\n", f"{CHARGE}        publish(self, work)\n"),
        tests="guarantees",
        select="charge or ceiling or aborted",
    ),
    mutant(
        "earlier instalments not billed",
        (BASE, "event if earlier is None else compose([earlier, event])", "event"),
        tests="linear_model guarantees",
        select="instalments",
    ),
    mutant(
        "labels read from y without a word",
        (
            CLASSIFIER,
            '        report_leak(\n            "classes=None:',
            '        (lambda *_, **__: None)(\n            "classes=None:',
        ),
        tests="linear_model",
        select="leak or warnings",
    ),
    mutant(
        "the seed used without a word",
        (
            BASE,
            "        if self.random_state is not None:\n            report_leak(",
            "        if False:\n            str(",
        ),
        tests="linear_model",
        select="leak or warnings",
    ),
    mutant(
        "rate and divisor from a private n",
        (
            CLASSIFIER,
            "run = self._plan_run(terms.budget, n, shape[1],",
            "run = self._plan_run(terms.budget, shape[0], shape[1],",
        ),
        tests="guarantees",
        select="removing or add_remove",
    ),
    # --- second moments ---
    mutant(
        "PCA: sensitivity off by n",
        (PCA, "sensitivity(weight, self.adjacency))", "sensitivity(weight, self.adjacency) / max(n, 1))"),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: rows not divided by their bound",
        (GRAM_KERNEL, "return 1.0 / norm if norm > radius else 1.0 / radius", "return min(1.0, radius / norm)"),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: R where R squared belongs",
        (PCA, '"noise_scale_": noise * radius**2', '"noise_scale_": noise * radius'),
        (
            PCA,
            "variances = np.maximum(values[:k], 0.0) * radius**2",
            "variances = np.maximum(values[:k], 0.0) * radius",
        ),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: unclipped rows multiplied",
        (GRAM_KERNEL, "return 1.0 / norm if norm > radius else 1.0 / radius", "return 1.0 / radius"),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: norms clipped, the block as it came multiplied",
        (GRAM, "            self.ball.bring_in(block, rows)\n", "            np.copyto(rows, block)\n"),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: off-diagonal entries released at half their weight",
        (GRAM, "self._triangle * (math.sqrt(2.0) / self.rounding)", "self._triangle / self.rounding"),
        (GRAM, "triangle[_diagonal(len(self._total))] /= math.sqrt(2.0)", "pass"),
        (GRAM, "* (self.rounding / math.sqrt(2.0))", "* self.rounding"),
        (GRAM, "        triangle[_diagonal(d)] *= math.sqrt(2.0)\n", ""),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: mean unpaid",
        (GRAM, "    return math.sqrt(1.0 + weight**2)\n", "    return 1.0\n"),
        (GRAM, "return (1.0 + weight**2 / 2.0) / math.sqrt(2.0)", "return 1.0 / math.sqrt(2.0)"),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: mean without noise",
        (
            PCA,
            "        fitted = self._decompose(moments,",
            "        moments = moments._replace(total=sums._total)\n        fitted = self._decompose(moments,",
        ),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: exact trace",
        (PCA, "total = max(float(np.trace(covariance)) * radius**2,", "total = max(self._exact_trace * radius**2,"),
        (
            PCA,
            "        fitted = self._decompose(moments,",
            "        self._exact_trace = float(np.trace(sums.moments(sums.isometric).gram)) / n\n"
            "        fitted = self._decompose(moments,",
        ),
        tests="decomposition",
        select="follows",
    ),
    mutant(
        "PCA: halved sensitivity under every adjacency",
        (GRAM, 'if adjacency == "replace_one":', "if adjacency:"),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: float32 products where rows shift",
        (
            GRAM,
            "np.float32 if self._by_position and np.can_cast(X.dtype, np.float32)",
            "np.float32 if np.can_cast(X.dtype, np.float32)",
        ),
        tests="decomposition",
        select="shift",
    ),
    mutant(
        "PCA: rounding in float32 not paid for",
        (
            GRAM,
            "return (1.0 + theta) ** 2 * (1.0 + 2.0 * roundoff * (b * (b + 1) / 2 + b) * (1.0 + gamma))",
            "return 1.0 + 1e-9",
        ),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: charge after the blocks are drawn",
        (PCA, "        work._charge(plan.event)\n", ""),
        (PCA, "        publish(self, work)\n", "        work._charge(plan.event)\n        publish(self, work)\n"),
        tests="decomposition",
        select="charge or ceiling or aborted",
    ),
    mutant(
        "PCA: a private n under add_remove",
        (PCA, "self._check_data_norm(), self._public_n_samples(n_samples)", "self._check_data_norm(), n_samples"),
        tests="decomposition",
        select=BY_PROPERTY,
    ),
    # --- what follows the release ---
    mutant(
        "the penalty taken of noisy data instead of theta",
        (
            OPTIMIZERS,
            "        return _shrink(new_theta, rate, penalty), MomentumState(new_velocity, n_done + 1)",
            "        return new_theta - penalty * new_velocity, MomentumState(new_velocity, n_done + 1)",
        ),
        tests="optimizers training",
        select=BY_PROPERTY,
    ),
    mutant(
        "the first half averaged too",
        (AVERAGING, "if step >= start else state", "if step >= 0 else state"),
        tests="training averaging",
        select=BY_PROPERTY,
    ),
    # --- a run on disk ---
    mutant(
        "a run that goes on from a file is charged anew",
        (CLASSIFIER, "return any(charge.note == plan.note and", "return False and any(charge.note == plan.note and"),
        tests="checkpoint",
        select="seeded_run",
    ),
    mutant(
        "a run that goes on from a file is never charged",
        (CLASSIFIER, "return any(charge.note == plan.note and", "return True or any(charge.note == plan.note and"),
        tests="checkpoint",
        select="does_not_hold",
    ),
    mutant(
        "an interrupted model handed out that its file does not know",
        (TRAINING, "            checkpoint.keep(state, now=True)\n    return", "            pass\n    return"),
        tests="checkpoint",
        select="one_release",
    ),
    mutant(
        "the state of the generator in every file",
        (CHECKPOINT, "for stream in streams] if self._seeded else None", "for stream in streams]"),
        tests="checkpoint",
        select="no_state",
    ),
    # --- private selection ---
    mutant(
        "selection that shifts the profile by half of what it must",
        (PROFILES, "x = np.exp(-width * np.arange(count + 1))", "x = np.exp(-0.5 * width * np.arange(count + 1))"),
        tests="accounting_selection",
        select="exact_law or reveals",
    ),
    mutant(
        "selection priced as if every order of scores were harmless",
        (PROFILES, "low = np.where(coarse, b[1], b - lift)", "low = np.where(coarse, a, a)"),
        tests="accounting_selection",
        select="exact_law or reveals or published",
    ),
    mutant(
        "expected number of tries left out of the profile",
        (PROFILES, "jumps = _jumps(lines, width, count, tries.mean)", "jumps = _jumps(lines, width, count, 1.0)"),
        (PROFILES, '"valid") * _SAFE', '"valid") * (_SAFE / tries.mean)'),
        tests="accounting_selection",
        select="exact_law or reveals or published",
    ),
    mutant(
        "shape of the number of tries off by one",
        (REPEATS, "** -(self.shape + 1.0)", "** -(self.shape + 0.0)"),
        tests="accounting_selection",
        select="one_law or exact_law",
    ),
    mutant(
        "a tail of the number of tries cut off",
        (REPEATS, "_DEEPEST = 100.0", "_DEEPEST = 10.0"),
        tests="accounting_selection",
        select="invert",
    ),
    mutant(
        "no try where there is no chance of none",
        (
            REPEATS,
            'np.searchsorted(below, value / (1 << bits), side="right")',
            "np.searchsorted(below, value / (1 << bits))",
        ),
        tests="accounting_selection",
        select="invert",
    ),
    mutant(
        "expected number of tries left out of the Rényi price",
        (
            RENYI,
            "_worst(runs, alpha, replace_one) + math.log(tries.mean) / (alpha - 1.0) + added",
            "_worst(runs, alpha, replace_one) + added",
        ),
        tests="accounting_selection",
        select="all_its_parts",
    ),
    mutant(
        "a replaced record of a sampled step priced as a removed one, by Rényi",
        (
            RENYI,
            "log_moment(alpha, q, noise_multiplier, replace_one=replace_one)",
            "log_moment(alpha, q, noise_multiplier)",
        ),
        tests="accounting_rdp",
        select="replaced_record",
    ),
    mutant(
        "a replaced record of a sampled step leaves its place empty",
        (RENYI_SAMPLED, "loss, log_q = loss - mirrored, log_q + mirrored", "loss, log_q = loss, log_q"),
        tests="accounting_rdp",
        select="replaced_record",
    ),
    mutant(
        "delta read below the window of the grid",
        (GRID, "    if epsilon < found.floor:\n        return 1.0\n", ""),
        tests="accounting_limits",
        select="window or at_the_cap",
    ),
    mutant(
        "deltas of a try read below the window of the grid",
        (GRID, "np.where(epsilons < found.floor, 1.0, result)", "result"),
        tests="accounting_limits",
        select="window or at_the_cap",
    ),
    mutant(
        "nested counts without a cap",
        (COMPOSITION, "            _check_count(node, found[node])\n", ""),
        tests="accounting_limits",
        select="nested",
    ),
    mutant(
        "a tiny bounded loss on a grid as fine as itself",
        (RESOLUTION, "if len(sizes) == 1 and allowed < max(sizes):", "if len(sizes) == 1:"),
        tests="accounting_limits",
        select="tiny_loss and base0",
    ),
    mutant(
        "a budget out of reach is looked for all the same",
        (
            CALIBRATION,
            "        if price(place) <= epsilon:",
            "        if price(place) < math.inf:",
        ),
        tests="accounting_calibration",
        select="out_of_reach or unreachable",
    ),
    mutant(
        "a calibration returns what was not seen to fit",
        (CALIBRATION, "    return _in_reach(price, epsilon, (most,), refusal)", "    return min(parameter, most)"),
        tests="accounting_calibration",
        select="seen_to_fit",
    ),
    mutant(
        "a calibration looks at the end of the range alone",
        (CALIBRATION, "_TRIED = (MOST_NOISE, 1e5, 1e3, 1e2)", "_TRIED = (MOST_NOISE,)"),
        tests="accounting_calibration",
        select="loose_at_the_end",
    ),
    mutant(
        "a short profile is moved as far as the law of the number of tries allows",
        (PROFILES, "min(shift, largest + rounding) * _SAFE", "shift * _SAFE"),
        tests="accounting_selection",
        select="vanish or short_profile",
    ),
    mutant(
        "Rényi divergences not rounded up",
        (RENYI, "_UP = 1.0 + 1e-11", "_UP = 1.0 - 1e-15"),
        tests="accounting_rounding",
        select="divergences",
    ),
    mutant(
        "repeated randomised response not rounded up",
        ("skdp/accounting/classic/composition.py", "_ROUNDING = 1e-9", "_ROUNDING = -1e-9"),
        tests="accounting_rounding",
        select="randomised_response",
    ),
    mutant(
        "differences of a fixed-size sample without the bound of high powers",
        ("skdp/accounting/rdp/mechanisms.py", "bounds = math.log(2.0) + 0.5 * j", "bounds = -700.0 + 0.5 * j"),
        tests="accounting_rounding accounting_rdp",
        select="fixed_size_bounds or without_replacement",
    ),
    mutant(
        "the mildest candidate priced instead of the worst",
        (
            DIRECTIONS,
            "np.max([read(grid) for _, read in curves], axis=0)",
            "np.min([read(grid) for _, read in curves], axis=0)",
        ),
        tests="accounting_selection",
        select="worst_of",
    ),
    mutant(
        "the mildest candidate priced instead of the worst, by Rényi",
        (
            RENYI,
            "return max(rdp(run, alpha, replace_one=replace_one) for run in runs)",
            "return min(rdp(run, alpha, replace_one=replace_one) for run in runs)",
        ),
        tests="accounting_selection",
        select="worst_of",
    ),
    mutant(
        "looks at a try without a bound on their work",
        (CURVES, "min(WORK, max(work // (steps * len(directed)), _LEAST_LOOK))", "WORK"),
        tests="accounting_limits",
        select="work_and_the_memory",
    ),
    mutant(
        "one direction of a try's profile",
        (CURVES, "result: Floats = np.max(lowest, axis=0)", "result: Floats = np.min(lowest, axis=0)"),
        tests="accounting_selection",
        select="direction or one_try",
    ),
    mutant(
        "a pair without the lower half of its losses",
        (PROFILES, "np.exp(-loss[start:]) * mass", "np.exp(-loss[start:]) * mass * 1e-9"),
        tests="accounting_selection",
        select="pair_is_a_distribution",
    ),
    mutant(
        "an instalment interrupted at once forgets those before it",
        (AVERAGING, "        return mean if weight else theta", "        return mean"),
        tests="neural_network",
    ),
    mutant(
        "the noise's variance taken off Adam's second moment without the clip in it",
        (MLP, "noise_variance = (plan.mechanism.standard_deviation /", "noise_variance = (plan.noise_multiplier /"),
        tests="neural_network",
        select="adam",
    ),
    mutant(
        "the floor of the second moment left out",
        (UPDATES, "np.sqrt(max(v * unbias_2 - noise, floor))", "np.sqrt(abs(v * unbias_2 - noise))"),
        tests="optimizers",
    ),
    mutant(
        "the first moment left biased",
        (UPDATES, "rate * (m * unbias_1) / spread", "rate * m / spread"),
        tests="optimizers",
    ),
    # --- networks ---
    mutant(
        "network: the mean clipped, not the rows",
        (NETWORKS, "            narrower *= factor[:, None]\n", "            narrower *= 1.0\n"),
        (
            NETWORKS,
            "        return total\n",
            "        return total * min(1.0, max_norm * n / max(np.linalg.norm(total), 1e-300))\n",
        ),
        tests="networks",
        select="toggling",
    ),
    mutant(
        "network: a chunk clipped by its mean norm",
        (
            NETWORKS,
            "        factors = np.empty(squares.shape[1:], self._dtype)\n",
            "        squares[:] = squares.mean(axis=2, keepdims=True)\n"
            "        factors = np.empty(squares.shape[1:], self._dtype)\n",
        ),
        tests="networks",
        select="toggling",
    ),
    mutant(
        "network: each layer clipped to C, billed as C",
        (
            NETWORKS,
            "CLIPPINGS[self.clip.kind], self.clip.bounds(max_norm)",
            'CLIPPINGS[self.clip.kind], self.clip.bounds(max_norm)\n        if self.clip.kind == "per_layer":\n'
            "            bounds = np.full(len(bounds), max_norm)",
        ),
        tests="networks",
        select="layers_have_bounds or toggling",
    ),
    mutant(
        "network: bounds of layers billed as the largest",
        (MLP, "max_norm = math.hypot(*bounds)", "max_norm = max(bounds)"),
        tests="neural_network",
        select="bounds_of_layers",
    ),
    mutant(
        "network: a layer left out of the norm",
        (
            DENSE,
            "        for k in range(n_layers):\n            whole +=",
            "        for k in range(n_layers - 1, n_layers):\n            whole +=",
        ),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the intercept's 1 left out of the norm",
        (NETWORKS, "[_squares(each) for each in inputs[1:]]", "[_squares(each[:, :-1]) for each in inputs[1:]]"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the intercept's 1 left out of the first layer's norm",
        (DENSE, "            total = 1.0\n            for j in", "            total = 0.0\n            for j in"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: norms of other rows than those of the lot",
        (NETWORKS, "chosen if rows is None else rows[chosen]", "chosen"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: weight applied after the clip",
        (
            NETWORKS,
            "loss(scores, self._targets, self._weights, rows, start)",
            "loss(scores, self._targets, np.minimum(self._weights, 1), rows, start)",
        ),
        (
            NETWORKS,
            CLIP_LAYERS,
            f"{CLIP_LAYERS}                picked = np.arange(n) if rows is None else rows\n"
            "                for delta in deltas:\n"
            "                    delta *= np.maximum(self._weights[picked[start : start + len(delta)]], 1)[:, None]\n",
        ),
        tests="networks",
        select="toggling or weight_multiplies",
    ),
    mutant(
        "network: rows not brought to the public norm",
        (NETWORKS, "scale = row_scales(X, radius, unit)\n", "scale = row_scales(X, 1e30, unit)\n"),
        tests="networks",
        select="long_row",
    ),
    mutant(
        "network: rows that are not finite kept",
        (
            DENSE,
            "        muted = not (norm < np.inf and np.sqrt(longest) * tiny * widest <= bound)",
            "        muted = False",
        ),
        (DENSE, "            muted = muted or not factor >= tiny\n", ""),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: muted rows left where infinity meets their zero",
        (NETWORKS, "                each[muted] = 0.0\n", "                pass\n"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: a row muted in one layer only",
        (DENSE, "            factors[:, i] = 0.0\n", "            factors[0, i] = 0.0\n"),
        (
            NETWORKS,
            "                each[muted] = 0.0\n",
            "                each[muted] = np.nan_to_num(each[muted], posinf=0)\n",
        ),
        tests="networks dense_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: NaN hidden by the derivative of relu",
        (DENSE, "if a[j] > 0 else a[j] * 0  # NaN stays NaN", "if a[j] > 0 else 0.0"),
        tests="dense_kernels networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: squares that vanish taken for numbers that do",
        (DENSE, "    lost = widest * tiny\n", "    lost = 0.0\n"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: no room for rounding in the clip",
        (
            NETWORKS,
            "self._slack = 1.0 + unit_roundoff * (_BLOCK * (_BLOCK + 3) + self._widest + 8)",
            "self._slack = 1.0 + unit_roundoff * (self._widest + 8)",
        ),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: blocks longer than there is room for",
        (NETWORKS, "range(0, len(a), _BLOCK)", "range(0, len(a), 16 * _BLOCK)"),
        (NETWORKS, "a[start : start + _BLOCK].T, delta[start : start + _BLOCK]", "a.T, delta"),
        (NETWORKS, "min(batch_size, max(1, self.n_rows))", "max(1, self.n_rows)"),
        tests="networks",
        select="rounding",
    ),
    mutant(
        "network: add_remove in the dtype of the rows",
        (MLP, 'return np.float64 if self.adjacency == "add_remove" else dtype', "return dtype"),
        tests="guarantees",
        select="rounding",
    ),
    mutant(
        "network: the last chunk dropped where it is short",
        (NETWORKS, "range(0, n, self._rows_at_once)", "range(0, n - n % self._rows_at_once, self._rows_at_once)"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the clip depends on the size of a chunk",
        (NETWORKS, CLIP_LAYERS, CLIP_LAYERS.replace("self._slack", "self._slack * len(inputs[0]) ** -0.01")),
        tests="networks",
        select="chunks",
    ),
    mutant(
        "network: a layer's 1 overwritten by the activation",
        (NETWORKS, "            following[:, -1] = 1.0\n", ""),
        tests="networks",
        select="finite or loss",
    ),
    mutant(
        "network: derivative of tanh",
        (DENSE, "delta[j] *= 1 - a[j] * a[j]", "delta[j] *= 1 - a[j]"),
        tests="networks",
        select="gradient_of_the_loss",
    ),
    mutant(
        "network: derivative of the logistic function",
        (DENSE, "delta[j] *= a[j] * (1 - a[j])", "delta[j] *= a[j] * (1 + a[j])"),
        tests="networks",
        select="gradient_of_the_loss",
    ),
    mutant(
        "network: the start depends on the labels",
        (MLP, "gain = 2.0 if self.activation", "gain = 1.0 + labels.targets.mean() if self.activation"),
        tests="neural_network",
        select="depends_on_no_row",
    ),
    mutant(
        "network: predictions of rows as long as they come",
        (NETWORKS, "row_scales(X, radius, 1.0)", "row_scales(X, 1e30, 1.0)"),
        tests="networks",
    ),
    # --- a search ---
    mutant(
        "the score of a search released without noise",
        (
            SEARCH,
            'noisy = mechanism.release(np.array([total for _, total in totals]), stream.spawn("scores"))',
            "noisy = [total for _, total in totals]",
        ),
        tests="model_selection",
        select="noise_of_its_price or what_ran",
    ),
    mutant(
        "the refit of a search not charged",
        (
            SEARCH_PLAN,
            "return compose([choice, _worst_of([each.event(scale) for each in possible])]) if finals else choice",
            "return choice",
        ),
        tests="model_selection",
        select="what_ran or every_try",
    ),
    mutant(
        "a search that charges training and not scores",
        (SEARCH_PLAN, "return tries.event(_worst_of([*trained, scored]))", "return tries.event(_worst_of(trained))"),
        tests="model_selection",
        select="what_ran",
    ),
    mutant(
        "one of all tries charged where all are tried",
        (
            SEARCH_PLAN,
            "return _worst_of([compose(trained), compose([scored] * len(tried))])",
            "return _worst_of([trained[0], scored])",
        ),
        tests="model_selection",
        select="every_try",
    ),
    mutant(
        "a search that is split by the labels",
        (
            SEARCH,
            'scored = self._split(len(y), stream.spawn("split"), plan.adjacency)',
            'scored = self._split(len(y), stream.spawn("split", repr(y.tolist())), plan.adjacency)',
        ),
        tests="model_selection",
        select="labels_move_nobody",
    ),
    mutant(
        "sensitivity of log-loss 1",
        (
            SCORES,
            'PrivateScore("neg_log_loss", _log_losses, LOSS_BOUND,',
            'PrivateScore("neg_log_loss", _log_losses, 1.0,',
        ),
        (SCORES, "worst), 0.0, self.bound)", "worst), 0.0, LOSS_BOUND)"),
        tests="model_selection",
        select="within_the_bound or exchanged",
    ),
    mutant(
        "contributions of rows that are not cut off",
        (SCORES, "np.clip(np.where(np.isfinite(found), found, self._worst), 0.0, self.bound)", "np.nan_to_num(found)"),
        tests="model_selection",
        select="cut_off",
    ),
    mutant(
        "NaN counts as the best loss",
        (SCORES, "return 0.0 if self.greater_is_better else self.bound", "worst = 0.0"),
        tests="model_selection",
        select="as_the_worst or diverged",
    ),
    mutant(
        "infinite contributions cut off where they are best",
        (SCORES, "np.where(np.isfinite(found), found, self._worst)", "np.where(np.isnan(found), worst, found)"),
        tests="model_selection",
        select="as_the_worst",
    ),
    mutant(
        "the winner priced as one fit",
        (
            SEARCH,
            "            estimator._set_price(Price(event, epsilon, terms.delta), paid)\n",
            "            pass\n",
        ),
        tests="model_selection",
        select="charged_once",
    ),
    mutant(
        "scores of all tries shown under random stopping",
        (
            SEARCH,
            "for each in tried if plan.tries is None else filter(None, [best]):",
            "for each in tried:",
        ),
        tests="model_selection",
        select="not_told",
    ),
    mutant(
        "progress of tries shown under random stopping",
        (SEARCH, "shown = self.verbose if plan.tries is None else 0", "shown = self.verbose"),
        tests="model_selection",
        select="not_told",
    ),
    mutant(
        "tries that charge the accountant each",
        (CANDIDATES, '_SILENT = {"accountant": None, ', "_SILENT = {"),
        tests="model_selection",
        select="charged_once",
    ),
    mutant(
        "a cache that hands the noise of one try to another",
        (PIPELINE, 'for parameter in ("memory", "transform_input"):', 'for parameter in ("transform_input",):'),
        tests="model_selection",
        select="cache",
    ),
    mutant(
        "the search asks the ceiling after its rows are read",
        (
            SEARCH,
            "        if accountant is not None:\n            accountant.check(",
            "        np.asarray(X)\n        if accountant is not None:\n            accountant.check(",
        ),
        tests="model_selection refusals",
        select="rows_are_read or no_row or before_the_rows",
    ),
    # --- publication, refusals, checkpoints ---
    mutant(
        "learned attributes published one by one",
        (
            RELEASES,
            "    target.__dict__.update({**parameters, **learned})\n",
            "    for name in learned:\n        setattr(target, name, learned[name])\n"
            "    target.__dict__.update(parameters)\n",
        ),
        tests="publication",
        select="any_line",
    ),
    mutant(
        "a fit that writes on the user's estimator",
        (
            CLASSIFIER,
            "        work = copy(self)\n        terms = work._check_terms()\n        with RunLock",
            "        work = self\n        terms = work._check_terms()\n        with RunLock",
        ),
        tests="publication",
        select="any_line",
    ),
    mutant(
        "a pipeline that is fitted on the user's own steps",
        (PIPELINE, "            copied = clone(step, safe=False)\n", "            copied = step\n"),
        (PIPELINE, "        whole = clone(self)  #", "        whole = copy(self)  #"),
        (PIPELINE, "import contextlib\n", "import contextlib\nfrom copy import copy\n"),
        tests="publication",
        select="while_it_fits or two_threads or last_step",
    ),
    mutant(
        "what a part learns later is left out of the price of the whole",
        (RELEASES, "    for part in fitted._private_parts():\n", "    for part in ():\n"),
        tests="publication",
        select="moves_the_price or fitted_anew",
    ),
    mutant(
        "a part counted by its event and not by its release",
        (RELEASES, "if release.id not in known})", "if release.event not in [each.event for each in own]})"),
        tests="publication",
        select="moves_the_price or fitted_anew",
    ),
    mutant(
        "a part of another adjacency priced as if it were of the whole's",
        (BASE, "        if others:\n", "        if False:\n"),
        tests="publication",
        select="another_adjacency",
    ),
    mutant(
        "an accountant that is set while a pipeline fits forgotten",
        (
            PIPELINE,
            "                own = copy(own)\n                publish(own, learned)\n",
            "                own = learned\n",
        ),
        tests="publication",
        select="is_kept",
    ),
    mutant(
        "wild rows refused behind a private step",
        (
            RUNNING,
            "        return _zero_wild_rows(run_publicly(name, step, X, y, params))\n",
            "        return run_publicly(name, step, X, y, params)\n",
        ),
        tests="refusals",
        select="no_value_is_refused",
    ),
    mutant(
        "a row that cannot be scored left out of the score",
        (SCORES, "            return self._worst - self.sensitivity\n", "            return 0.0\n"),
        tests="model_selection",
        select="cannot_be_predicted",
    ),
    mutant(
        "steps behind a private one that are first run after the charge",
        (PIPELINE, "        self._rehearse(steps[first:], terms, checked.shape[1], n, given)\n", ""),
        tests="refusals",
        select="cannot_run_behind",
    ),
    mutant(
        "a slice that spends a budget of its own",
        (
            PIPELINE,
            "            return PipelineSlice(Pipeline(self.steps)[ind].steps)\n",
            "            return type(self)(Pipeline(self.steps)[ind].steps)\n",
        ),
        tests="publication",
        select="slice",
    ),
    mutant(
        "a pipeline that checks its rows after the charge",
        (PIPELINE, "            ready = whole._prepared(steps, terms, X, y, given, n_samples)\n", "            pass\n"),
        (
            PIPELINE,
            "        rows, interrupted = whole._learned(ready,",
            "        ready = whole._prepared(steps, terms, X, y, given, n_samples)\n"
            "        rows, interrupted = whole._learned(ready,",
        ),
        tests="refusals pipeline",
        select="before_the_charge or costs_nothing or category",
    ),
    mutant(
        "a refusal that the ledger does not note",
        (BASE, "            accountant.record_refusal(label, adjacency=adjacency)\n", "            pass\n"),
        tests="refusals",
        select="ledger_notes_it",
    ),
    mutant(
        "the message of a public step handed on",
        (RUNNING, "refuses the rows with a {type(error).__name__}; fit", "refuses the rows with {error}; fit"),
        tests="refusals",
        select="not_printed",
    ),
    mutant(
        "a step that gives more rows than came in",
        (RUNNING, "    if table_shape(made)[0] != table_shape(X)[0]:\n", "    if False:\n"),
        tests="pipeline",
        select="changes_the_number",
    ),
    mutant(
        "a candidate that is checked only when it is drawn",
        (CANDIDATES, "        plan.check_parameters(n_features)\n", ""),
        tests="refusals",
        select="costs_nothing",
    ),
    mutant(
        "nested steps that tell the tries of a search",
        (CANDIDATES, "    made.set_params(**dict.fromkeys(loud, 0))\n", ""),
        tests="model_selection",
        select="says_nothing_of_its_tries",
    ),
    mutant(
        "Ctrl-C in a try that ends that try alone",
        (CANDIDATES, "            raise KeyboardInterrupt\n", "            pass\n"),
        tests="model_selection",
        select="interruption",
    ),
    mutant(
        "a checkpoint that does not name what came before",
        (CHECKPOINT, "[repr(release.event) for release in earlier]", "[len(earlier)]"),
        tests="checkpoint",
        select="first_phase",
    ),
    mutant(
        "two runs that resume from one file at once",
        (CLASSIFIER, "            lock.take()\n", ""),
        tests="run_lock",
        select="second",
    ),
    mutant(
        "a lock on a file that the run before has removed",
        (RUN_LOCK, "os.path.samestat(os.fstat(self._file.fileno()), os.stat(lock_path))", "True"),
        tests="run_lock",
        select="ended_meanwhile",
    ),
    mutant(
        "a lock that the fork of a killed run keeps",
        (RUN_LOCK, "    os.register_at_fork(", "    (lambda **hooks: None)("),
        tests="run_lock",
        select="killed_parent",
    ),
    mutant(
        "a complete run whose file is a step behind",
        (TRAINING, "checkpoint.keep(state, now=state.n_done == plan.n_steps)", "checkpoint.keep(state, now=False)"),
        (CHECKPOINT, "_FILES_A_RUN = 20", "_FILES_A_RUN = 3"),
        tests="checkpoint",
        select="very_same_model",
    ),
    mutant(
        "later steps left behind and released a second time",
        (CHECKPOINT, "        if latest:\n", "        if False:\n"),
        tests="checkpoint",
        select="not_moved",
    ),
    mutant(
        "a run in two parts that pays for one release twice in its price",
        (CLASSIFIER, "        if checkpoint is not None and checkpoint.continues(earlier):\n", "        if False:\n"),
        tests="checkpoint",
        select="interrupted_instalment",
    ),
    # --- steps that read nothing, and other people's estimators ---
    mutant(
        "a public step known by its tag and not by the list",
        (
            PUBLIC,
            "    if rule is None:\n        yield name",
            "    tags = getattr(step, '__sklearn_tags__', None)\n"
            "    if rule is None and not isinstance(step, type) and tags is not None and not tags().requires_fit:\n"
            "        return\n"
            "    if rule is None:\n        yield name",
        ),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "a subclass taken for the public step it derives from",
        (
            PUBLIC,
            "rule = RULES.get(type(step))",
            "rule = next((rule for cls, rule in RULES.items() if isinstance(step, cls)), None)",
        ),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "a method replaced on a public step",
        (PUBLIC, "if any(callable(getattr(type(step), name, None)) for name in vars(step)):", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "the threshold of sparse columns not looked at",
        (RULES, "if not _is_number(step.sparse_threshold) or step.sparse_threshold != 0:", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "columns chosen by a function of the rows",
        (RULES, "if any(callable(columns) for _, _, columns in step.transformers):", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "the remainder of a ColumnTransformer not looked at",
        (PUBLIC, ', ("remainder", step.remainder)]', "]"),
        tests="public_steps",
        select="parts_are_looked_at",
    ),
    mutant(
        "parts of a public step not looked at",
        (PUBLIC, "for part_name, part in parts_of(step):", "for part_name, part in []:"),
        tests="public_steps",
        select="parts_are_looked_at",
    ),
    mutant(
        "columns added where a row has a gap",
        (RULES, "if step.add_indicator is not False:", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "a column that is dropped if it is empty",
        (RULES, "if step.keep_empty_features is not True:", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "the encoder that warns of one unknown category",
        (RULES, 'elif step.drop is not None and step.handle_unknown != "error":', "elif False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "categories of which one list is found in the rows",
        (
            RULES,
            "any(type(each) not in _LISTS for each in given)",
            "any(not hasattr(each, '__len__') for each in given)",
        ),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "weights of a union that are handed its rows",
        (
            RULES,
            "if type(weights) is not dict or any(type(each) not in _NUMBERS for each in weights.values()):",
            "if False:",
        ),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "parameters that are subclasses of what is plain",
        (RULES, "    kind = type(value)\n    if kind in", "    kind = type(value).__mro__[-2]\n    if kind in"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "steps that work on the caller's rows",
        (RULES, "if step.copy is not True:", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "a union that joins by index what was numbered anew",
        (PUBLIC, 'if any(_output_of(part) != "pandas" for part in parts):', "if False:"),
        tests="public_steps",
        select="joined",
    ),
    mutant(
        "categories of whole numbers, which a gap makes floats",
        (PUBLIC, 'if getattr(listed, "kind", None) in ("i", "u", "b"):', "if False:"),
        tests="public_steps",
        select="types_one_row",
    ),
    mutant(
        "any function in a FunctionTransformer",
        (
            RULES,
            "elif func is not None and type(func) is not RowWise:",
            "elif func is not None and not callable(func):",
        ),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "any ufunc in a FunctionTransformer",
        (RULES, "if any(func is ufunc for ufunc in _ELEMENTWISE):", "if isinstance(func, np.ufunc):"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "a ufunc that takes values of other rows",
        (RULES, "if step.kw_args:", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "an inverse that is compared on some rows",
        (
            RULES,
            "if func is not None and step.inverse_func is not None and step.check_inverse is not False:",
            "if False:",
        ),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "knots whose zeros are stored as other rows demand",
        (RULES, "if step.sparse_output is not False:", "if False:"),
        tests="public_steps",
        select="reads_or_may_read",
    ),
    mutant(
        "single precision that a row which leaves rounds otherwise",
        (PUBLIC, 'if double and any(kind in ("float32", "float16") for kind in kinds):', "if False:"),
        tests="public_steps",
        select="single_precision",
    ),
    mutant(
        "callbacks of a public step that see its rows",
        (PUBLIC, 'if vars(step).get("_skl_callbacks"):', "if False:"),
        tests="public_steps",
        select="callbacks",
    ),
    mutant(
        "public steps that run in threads, where numpy warns of a row",
        (PUBLIC, ', joblib.parallel_config(backend="sequential"):', ":"),
        tests="public_steps",
        select="logarithm",
    ),
    mutant(
        "a marked function believed without a test",
        (ROW_WISE, "if keywords or schema not in self._passed:", "if False:"),
        tests="public_steps",
        select="found_out",
    ),
    mutant(
        "a marked function tested without gaps",
        (
            MADE_UP,
            "for values in (_draw_tame, _draw_signed, _draw_coded, _draw_gapped, _draw_wild):",
            "for values in (_draw_tame, _draw_signed, _draw_coded):",
        ),
        tests="public_steps",
        select="found_out",
    ),
    mutant(
        "a marked function tested without the codes for a missing value",
        (
            MADE_UP,
            "for values in (_draw_tame, _draw_signed, _draw_coded, _draw_gapped, _draw_wild):",
            "for values in (_draw_tame, _draw_signed, _draw_gapped, _draw_wild):",
        ),
        tests="public_steps",
        select="codes_replaced or words_for",
    ),
    mutant(
        "gaps made up in columns of numbers alone",
        (MADE_UP, "    if isinstance(dtype, np.dtype):\n        return", "    if True:\n        return"),
        tests="public_steps",
        select="gaps_filled_in or any_type",
    ),
    mutant(
        "whole numbers made up without negative ones",
        (MADE_UP, "np.clip(whole, *_narrow_limits(dtype))", "np.clip(whole, 0, _narrow_limits(dtype)[1])"),
        (MADE_UP, "CODES = (-99999, -9999, -999, -99, -9, -1, 0,", "CODES = (0,"),
        (MADE_UP, "extremes = (0, *_limits(dtype))", "extremes = (0, _limits(dtype)[1])"),
        tests="public_steps",
        select="negative_and_extreme",
    ),
    mutant(
        "a marked function that gives a row the label of another",
        (ROW_WISE, "        if not _keeps_index(rows, made):", "        if False:"),
        tests="public_steps",
        select="index",
    ),
    mutant(
        "a marked function that works on the caller's rows",
        (ROW_WISE, "if not (_same(table, given) and _keeps_index(table, given)):", "if False:"),
        tests="public_steps",
        select="works_in_place",
    ),
    mutant(
        "warnings of made-up rows, which the first fit alone gives",
        (ROW_WISE, "with silence(), np.errstate", "with np.errstate"),
        tests="public_steps",
        select="no_warning_of_a_row",
    ),
    mutant(
        "warnings of a row, which NumPy's settings do not stop",
        (PUBLIC, "with silence(), np.errstate", "with np.errstate"),
        tests="public_steps",
        select="no_warning_of_a_row",
    ),
    mutant(
        "overlapping silences that restore the filters each found",
        (CONFIG, "filters[:] = [each for each in filters if each is not mine]", "filters[:] = before"),
        (
            CONFIG,
            "            found.insert(0, mine)",
            "            before = list(found)\n            found.insert(0, mine)",
        ),
        tests="config",
        select="silence",
    ),
    mutant(
        "a marked function tested on the rows themselves",
        (ROW_WISE, "else list(made_up(like))", "else [like]"),
        tests="public_steps",
        select="made_up_rows_hold or never_sees",
    ),
    mutant(
        "a marked function that drops real rows",
        (ROW_WISE, "        if _count(made) != _count(rows):", "        if False:"),
        tests="public_steps",
        select="real_rows",
    ),
    mutant(
        "a private search inside a calibration, in silence",
        (
            CALLERS,
            '        if origin == "ours":\n            function = None\n            continue\n',
            '        if origin == "ours":\n            return found\n',
        ),
        tests="callers",
        select="told_once and (search or budgeted)",
    ),
    mutant(
        "a user's estimator that fits ours, in silence",
        (
            CALLERS,
            'if origin == "sklearn" or frame.f_code.co_name.startswith(_FITS) else None',
            'if origin == "sklearn" else None',
        ),
        tests="callers",
        select="strange",
    ),
    mutant(
        "a reading step of a plain pipeline, in silence",
        (CALLERS, "    if faults:\n", "    if False:\n"),
        tests="callers",
        select="told_once and (pipeline or nested or union)",
    ),
    mutant(
        "several budgets of a plain pipeline, in silence",
        (CALLERS, "    if len(private) > 1:\n", "    if False:\n"),
        tests="callers",
        select="told_once and (steps or selected)",
    ),
    mutant(
        "a subclass of a pipeline taken for it",
        (CALLERS, "(None if is_known else _describe_unknown(kind))", "None"),
        tests="callers",
        select="told_once and own",
    ),
    mutant(
        "a leak told of before it is raised",
        (
            CALLERS,
            '            report_leak(f"',
            '            _mark_reported(token, layer.title)\n            report_leak(f"',
        ),
        tests="callers",
        select="raised_for_each",
    ),
    mutant(
        "one composition told of for all",
        (
            CALLERS,
            "    return entry is not None and entry[0]() is token is not None and title in entry[1]",
            "    return any(title in titles for _, titles in _reported.values())",
        ),
        tests="callers",
        select="another_object_again",
    ),
    mutant(
        "a long-lived scorer that silences later searches",
        (CALLERS, "return function if run is None else function._replace(owner=run)", "return function"),
        tests="callers",
        select="lives_long",
    ),
    mutant(
        "the stack of a fit kept alive",
        (CALLERS, "list(_iterate_frames(sys._getframe().f_back))", "list(_iterate_frames(sys._getframe()))"),
        tests="callers",
        select="kept_alive",
    ),
    # --- how it is built ---
    mutant(
        "a kernel that calls one in another file",
        (KERNEL, "from numba import njit\n", "from numba import njit\n\nfrom skdp._kernels.bits import BLOCK\n"),
        tests="linear_kernels",
        select="stand_alone",
    ),
    mutant(
        "accounting that leans on the top floor",
        (METHODS, "import sys\n", "import sys\nfrom skdp.exceptions import BudgetExceededError\nimport numba\n"),
        tests="layers",
    ),
]


class Outcome(NamedTuple):
    verdict: str
    seconds: float


def copy_project(target: pathlib.Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__", ".hypothesis", ".pytest_cache")
    for name in ("skdp", "tests", "examples", "docs"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, target / name)


def plant(target: pathlib.Path, planted: Mutant) -> None:
    for path, old, new in planted.edits:
        text = (target / path).read_text()
        if text.count(old) != 1:
            found = f"{path} holds {text.count(old)} times, and not once: {old!r}"
            raise SystemExit(f"mutant {planted.name!r} does not fit the code any more: {found}")
        (target / path).write_text(text.replace(old, new))


def run_tests(target: pathlib.Path, tests: list[str], *options: str) -> tuple[int, str]:
    """pytest's return code and output, on the copy alone: its own package, an empty Numba cache, one thread."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(target / "numba"),
        "PYTHONPATH": str(target),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    where = [sys.executable, "-c", "import skdp; print(skdp.__file__)"]
    found = subprocess.run(where, cwd=target, env=environment, capture_output=True, text=True, check=True).stdout
    if not found.startswith(str(target)):
        raise SystemExit(f"the tests would run on {found.strip()} and not on the copy in {target}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *options, *tests]
    done = subprocess.run(command, cwd=target, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def failures(output: str) -> list[str]:
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, flags=re.MULTILINE)


def red_without_mutant(tests: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as place:
        target = pathlib.Path(place).resolve()
        copy_project(target)
        code, output = run_tests(target, tests, "--tb=no")
        if code not in (0, 1):
            raise SystemExit(f"the tests do not run at all without a mutant:\n{output[-3000:]}")
        return failures(output)


def judge(planted: Mutant, known_red: list[str]) -> Outcome:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        target = pathlib.Path(place).resolve()
        copy_project(target)
        plant(target, planted)
        options = ["-x", "--tb=line", *(f"--deselect={test}" for test in known_red)]
        options += ["-k", planted.select] if planted.select else []
        code, output = run_tests(target, list(planted.tests), *options)
    seconds = time.perf_counter() - started
    if code == 1:
        return Outcome(f"red: {failures(output)[0]}", seconds)
    if code == 0:
        return Outcome("SURVIVED", seconds)
    return Outcome(f"BROKEN (pytest ended with {code}): {' / '.join(output.splitlines()[-4:])}", seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the mutants and end")
    parser.add_argument("--only", action="append", metavar="NAME", help="run this one; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    arguments = parser.parse_args()
    chosen = [each for each in MUTANTS if not arguments.only or each.name in arguments.only]
    if unknown := set(arguments.only or ()) - {each.name for each in MUTANTS}:
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}; see --list")
    if arguments.list:
        for each in chosen:
            print(f"{each.name:58} {', '.join(sorted({edit.path for edit in each.edits}))}")
        return 0

    for each in chosen:  # all of them fit the code, before any time is spent
        with tempfile.TemporaryDirectory() as place:
            copy_project(pathlib.Path(place))
            plant(pathlib.Path(place), each)
    known_red = red_without_mutant(sorted({test for each in chosen for test in each.tests}))
    for test in known_red:
        print(f"red without any mutant, left out: {test}")

    survived = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for each, outcome in zip(chosen, pool.map(lambda each: judge(each, known_red), chosen), strict=True):
            survived += not outcome.verdict.startswith("red")
            print(f"{each.name:58} {outcome.seconds:6.1f} s  {outcome.verdict}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutants were caught.")
    return 1 if survived or known_red else 0


if __name__ == "__main__":
    sys.exit(main())
