"""Mistakes with rows on many machines: what workers are sent, which collections they take, how sums meet."""

from mutant import mutant
from paths import ENGINE, GRAM, GRAPHS, LOTS, MODEL_OF_DASK, PARTITIONS, ROWS_OF_DASK

SUBKEY = 'of_step.subkey("partition", number)'

MUTANTS = [
    mutant(
        "a gathered partition that is summed over the lot of its neighbour",
        (MODEL_OF_DASK, "lots[each.start : each.stop]", "lots[each.start : each.start + 1] * len(each)"),
        tests="dask_rows",
        select="gathered",
    ),
    mutant(
        "after a restart the lots of a step are drawn anew",
        (
            MODEL_OF_DASK,
            "despite_restarts(lambda: self._sum(theta, rows, max_norm), self._restore)",
            "despite_restarts(lambda: self._sum(theta, rows, max_norm), lambda: self._restore() or "
            'rows.__setitem__(0, type(rows[0])(rows[0].sampling, b"k" * 32)))',
        ),
        tests="cluster",
        select="lazy_rows_again",
    ),
    mutant(
        "a restart of the cluster ends the fit",
        (ENGINE, "_RESTARTS = 3", "_RESTARTS = 1"),
        tests="cluster",
        select="survive_a_restart or lazy_rows_again",
    ),
    mutant(
        "a worker that stands still holds a fit without a word",
        (ENGINE, "    notice.start()\n", "    pass\n"),
        tests="cluster",
        select="without_workers",
    ),
    # --- noise and samples ---
    mutant(
        "noise added on each worker",
        (PARTITIONS, "    return sums\n", "    return sums + np.random.default_rng().normal(size=sums.shape)\n"),
        tests="dask_rows",
        select="one_machine",
    ),
    mutant(
        "one key for the lots of all partitions",
        (LOTS, SUBKEY, 'of_step.subkey("partition")'),
        tests="dask_rows",
        select="drawn_independently",
    ),
    mutant(
        "one key for the lots of all steps",
        (LOTS, 'stream.spawn("step", step)', 'stream.spawn("step")'),
        tests="dask_rows",
        select="drawn_independently",
    ),
    mutant(
        "workers are sent the key of all samples",
        (LOTS, "class PartitionLot:", "class PartitionLot:\n    parent: bytes = b''\n"),
        (
            LOTS,
            "    sampling: Sampling\n    key: bytes = field(repr=False)\n",
            "    sampling: Sampling = FullBatch()\n    key: bytes = field(repr=False, default=b'')\n",
        ),
        (LOTS, f"PartitionLot(sampling, {SUBKEY})", f"PartitionLot(stream._key, sampling, {SUBKEY})"),
        (LOTS, '[PartitionLot(sampling, b"")]', '[PartitionLot(b"", sampling, b"")]'),
        tests="dask_rows",
        select="keys_of_its_lots",
    ),
    mutant(
        "workers are sent the key of a step",
        (LOTS, f"PartitionLot(sampling, {SUBKEY})", "PartitionLot(sampling, of_step._key)"),
        tests="dask_rows",
        select="keys_of_its_lots",
    ),
    mutant(
        "a full batch with a key",
        (LOTS, '[PartitionLot(sampling, b"")]', "[PartitionLot(sampling, stream._key)]"),
        tests="dask_rows",
        select="nothing_secret",
    ),
    mutant(
        "a step that is computed again draws another lot",
        (LOTS, "SecretStream(self.key)", "SecretStream.from_random_state(None, 'lots')"),
        tests="dask_rows",
        select="whenever_it_is_drawn",
    ),
    mutant(
        "the key of a lot is shown",
        (LOTS, "field(repr=False)", "field()"),
        tests="dask_rows",
        select="not_shown",
    ),
    # --- sums ---
    mutant(
        "the last of few sums is left out",
        (ENGINE, "    return parts\n", "    return parts[: len(parts) - 1 or 1]\n"),
        tests="dask_rows",
        select="one_machine",
    ),
    mutant(
        "bound partitions are sent after tasks that seem to read them",
        (ENGINE, "(*given, dask_key_name=name)", "(*given)"),
        tests="cluster",
        select="stay_where",
    ),
    mutant(
        "the last partition is left out of a sum",
        (ENGINE, "range(0, len(parts), FAN_IN)", "range(0, len(parts) - 1, FAN_IN)"),
        (ENGINE, "parts[start : start + FAN_IN]", "parts[start : min(start + FAN_IN, len(parts) - 1)]"),
        tests="dask_rows",
        select="one_machine",
    ),
    mutant(
        "a sum changes its parts, which a lost worker makes Dask add again",
        (PARTITIONS, "total = part.copy() if", "total = part if"),
        tests="dask_rows",
        select="left_as_they_are",
    ),
    mutant(
        "moments change their parts",
        (
            PARTITIONS,
            "    total = new_sum()\n    for part in parts:",
            "    total = parts[0]\n    for part in parts[1:]:",
        ),
        tests="dask_rows",
        select="left_as_they_are",
    ),
    mutant(
        "moments are sent with the rows in their buffers",
        (GRAM, '"_rooms": {dtype: np.empty((0, 0)) for dtype in self._rooms}, ', ""),
        tests="dask_rows",
        select="without_the_rows",
    ),
    # --- collections ---
    mutant(
        "any graph is accepted",
        (GRAPHS, "    if fault:\n        raise", "    if False:\n        raise"),
        tests="dask_rows",
        select="may_mix_rows",
    ),
    mutant(
        "a task that joins several chunks is accepted",
        (GRAPHS, "        if len(below) != 1:\n            return", "        if not below:\n            return"),
        tests="dask_rows",
        select="may_mix_rows",
    ),
    mutant(
        "any function of one chunk is accepted",
        (GRAPHS, "elif not _is_row_wise(task):", "elif False:"),
        tests="dask_rows",
        select="may_mix_rows",
    ),
    mutant(
        "any ufunc is accepted",
        (GRAPHS, " and _is_known(function)", ""),
        tests="dask_rows",
        select="may_mix_rows",
    ),
    mutant(
        "tasks within a task are accepted",
        (GRAPHS, "        if not _is_plain(task):\n", "        if False:\n"),
        tests="dask_rows",
        select="hidden",
    ),
    mutant(
        "rows that occur twice are accepted",
        (GRAPHS, "if any(start < stop", "if any(False"),
        tests="dask_rows",
        select="may_mix_rows",
    ),
    mutant(
        "any expression of one frame is accepted",
        (GRAPHS, "if kind not in _ROW_WISE or len(below) != 1:", "if len(below) != 1:"),
        tests="dask_rows",
        select="may_mix_rows",
    ),
    mutant(
        "a file that a list of Parquet files names twice counts twice",
        (GRAPHS, 'if _names_a_file_twice(_operand(expression, "path")):', "if False:"),
        tests="dask_rows",
        select="names_twice",
    ),
    mutant(
        "rows that a reader filters are accepted",
        (GRAPHS, '("filters", "_partitions")', '("_partitions",)'),
        tests="dask_rows",
        select="filters",
    ),
    mutant(
        "labels are not asked how they were made",
        (ROWS_OF_DASK, "        check_graph(name, column)\n", ""),
        tests="dask_rows",
        select="checked_like_rows",
    ),
    mutant(
        "partitions of any type are read",
        (PARTITIONS, "        if found == self.types:", "        if True:"),
        tests="dask_rows",
        select="bad_partition",
    ),
    # --- messages ---
    mutant(
        "the text of an error on the engine is quoted",
        (ENGINE, "failure = type(error).__name__", "failure = str(error)"),
        tests="dask_rows",
        select="engine_that_fails",
    ),
    mutant(
        "the text of an error in a partition is quoted",
        (PARTITIONS, "({type(error).__name__})", "({error})"),
        tests="dask_rows",
        select="stranger",
    ),
    mutant(
        "lots of partitions that no audit hears",
        (MODEL_OF_DASK, "return lots if stream.track is None else", "return lots if True else"),
        tests="planted_mistakes",
        select="partitions",
    ),
    mutant(
        "lots of partitions that an audit hears at the places of the first one",
        (LOTS, "[start + rows for start, rows in", "[rows for start, rows in"),
        tests="dask_rows",
        select="hears",
    ),
    mutant(
        "counts of equal rows that an audit takes for the declared ones",
        (
            "skdp/audit/replay.py",
            "                if lot.rate < 1.0:",
            "                if lot.rate < 1.0 and lot.copies is None:",
        ),
        tests="planted_mistakes",
        select="equal_rows",
    ),
]
