"""Mistakes in reading rows that are not in memory, and in drawing lots of them."""

from mutant import mutant
from paths import (
    ARROW,
    ARROW_COLUMNS,
    BY_COLUMNS,
    COLUMN_KERNEL,
    COUNTED,
    FILES,
    MEMORY_MAP,
    PARQUET,
    READ_AHEAD,
    ROW_BLOCKS,
    SOURCES,
    STREAMED,
)

DRAW = 'lot = self._draw(sampling, stream.spawn("step", coming))'

MUTANTS = [
    mutant(
        "truth values of subgroups read as numbers where a block has a gap",
        (
            ARROW_COLUMNS,
            " and pa.types.is_boolean(column.type) and not as_stored:",
            " and pa.types.is_boolean(column.type):",
        ),
        tests="rows_elsewhere",
        select="may_be_a_column",
    ),
    mutant(
        "units that a column of a file names left out of an evaluation",
        (
            COUNTED,
            'self._fit_params["groups"] = read_units(labels, len(labels), self._named["groups"])',
            'self._fit_params["groups"] = None',
        ),
        tests="rows_elsewhere",
        select="may_be_a_column",
    ),
    mutant(
        "blocks of the file as lots",
        (
            STREAMED,
            DRAW,
            "size = max(1, round(self.n_rows * sampling.rate))\n"
            "            lot = np.sort(np.arange(coming * size, (coming + 1) * size) % self.n_rows)",
        ),
        tests="streaming",
        select="poisson",
    ),
    mutant(
        "rows shuffled once, and dealt out in lots",
        (
            STREAMED,
            DRAW,
            "size = max(1, round(self.n_rows * sampling.rate))\n"
            "            deck = np.argsort(stream.spawn('deck').words(self.n_rows), kind='stable')\n"
            "            at = (coming * size) % self.n_rows\n"
            "            lot = np.sort(deck[at : at + size])",
        ),
        tests="streaming",
        select="poisson",
    ),
    mutant(
        "the lots of a pass are one lot",
        (STREAMED, 'stream.spawn("step", coming)', 'stream.spawn("step", step)'),
        tests="streaming",
        select="poisson or once",
    ),
    mutant(
        "the lots of a pass are used again",
        (STREAMED, "if not 0 <= number < len(self._lots.numbers):", "if not self._lots.numbers:"),
        (STREAMED, "        return number\n", "        return number % len(self._lots.numbers)\n"),
        tests="streaming",
        select="poisson",
    ),
    mutant(
        "lots are drawn from the stream itself",
        (STREAMED, 'stream.spawn("step", coming)', "stream"),
        tests="streaming",
        select="resumes or drawn_in_memory",
    ),
    mutant(
        "rows of a lot in the order in which they were gathered for others",
        (STREAMED, "[np.searchsorted(drawn, lot) for lot in lots]", "[np.arange(len(lot)) for lot in lots]"),
        tests="streaming",
        select="once",
    ),
    mutant(
        "more rows are gathered than may be held",
        (STREAMED, "if lots and n_drawn > self._n_gathered:", "if lots and n_drawn > 2 * self._n_gathered:"),
        tests="streaming",
        select="held",
    ),
    mutant(
        "the last block is dropped",
        (ARROW, "        if n_filled:\n", "        if n_filled == size:\n"),
        tests="streaming",
        select="equals",
    ),
    mutant(
        "a block is read twice",
        (
            STREAMED,
            "                        total += after_the_charge(",
            "                        total += 2.0 * after_the_charge(",
        ),
        tests="streaming",
        select="clip or once",
    ),
    mutant(
        "a buffer is written over while it is used",
        (READ_AHEAD, "IN_FLIGHT = 3", "IN_FLIGHT = 1"),
        tests="streaming",
        select="row_groups or equals",
    ),
    mutant(
        "classes of a file are read before the charge",
        (SOURCES, "    if not are_named:\n        raise", "    if False:\n        raise"),
        tests="streaming",
        select="before",
    ),
    mutant(
        "a block is not checked for NaN",
        (
            SOURCES,
            "table = read_cells(rows, self.names, self.dtype, self.order, finite=self.finite)",
            "table = np.asarray(rows, self.dtype)",
        ),
        tests="streaming",
        select="fault",
    ),
    mutant(
        "the cell's column in the error that is chained to a refusal",
        (
            SOURCES,
            '        refusal = " ".join(str(error).split())\n    raise ValueError(',
            '        refusal = " ".join(str(error).split())\n        raise ValueError(refusal) from error\n'
            "    raise ValueError(",
        ),
        tests="streaming",
        select="fault",
    ),
    mutant(
        "a file of equal size and time in the place of another",
        (FILES, "found.st_mtime_ns, found.st_ctime_ns, found.st_ino,", "found.st_mtime_ns, 0, 1,"),
        tests="streaming",
        select="changes or watched",
    ),
    mutant(
        "a file that is named twice, or reached by a link, counts twice",
        (ARROW, "    refuse_repeated(parts)\n", ""),
        tests="streaming",
        select="named_twice",
    ),
    mutant(
        "a pipe in a folder is skipped",
        (
            FILES,
            "            yield _regular(path)\n",
            "            yield from [path] if os.path.isfile(path) else []\n",
        ),
        tests="streaming",
        select="no_parquet",
    ),
    mutant(
        "a file that changed is read on",
        (PARQUET, "if n_read != self.n_rows or self._present_state() != self._state:", "if n_read != self.n_rows:"),
        (PARQUET, " if self._present_state() == self._state else None", ""),
        tests="streaming",
        select="changes",
    ),
    mutant(
        "lots of a map from the streams of their steps",
        (
            MEMORY_MAP,
            "return self._draw(sampling, stream)",
            'return self._draw(sampling, stream.spawn("step", step))',
        ),
        tests="streaming",
        select="equal_array",
    ),
    mutant(
        "a map that changed is read on",
        (MEMORY_MAP, "if state_of(name) != before:", "if state_of(name)[0] != before[0]:"),
        tests="streaming",
        select="map_whose",
    ),
    mutant(
        "a thread that keeps alive what tells it to end",
        (READ_AHEAD, "given = items, waiting, weakref.ref(left)", "given = items, waiting, lambda: left"),
        tests="streaming",
        select="interrupt_at_any_line",
    ),
    mutant(
        "errors of Arrow are passed on",
        (ARROW_COLUMNS, "    except Exception:\n        pass", "    except ZeroDivisionError:\n        pass"),
        tests="streaming",
        select="without_its_text",
    ),
    mutant(
        "columns in the order of the file",
        (
            ARROW,
            "batch.column(name), name) for name in self.names or ()]",
            "batch.column(name), name) for name in sorted(self.names)]",
        ),
        tests="streaming",
        select="ordered",
    ),
    mutant(
        "weights of a file are not used",
        (ROW_BLOCKS, "return RowBlock(0, rows, labels, weights)", "return RowBlock(0, rows, labels, None)"),
        tests="streaming",
        select="drawn_in_memory",
    ),
    mutant(
        "rows by columns are not checked for NaN",
        (BY_COLUMNS, "        if n_null:", "        if False:"),
        tests="streaming columns",
        select="a_fault_in_a_block_is or no_numbers_are_refused",
    ),
    mutant(
        "rows by columns that are not finite are not counted",
        (COLUMN_KERNEL, "n_null += 0 if is_finite else 1", "n_null += 0"),
        tests="streaming columns",
        select="a_fault_in_a_block_is or no_numbers_are_refused",
    ),
    mutant(
        "rows by columns are not clipped to the radius",
        (COLUMN_KERNEL, "unit * (radius / norm[i]) if norm[i] > radius else unit", "unit"),
        tests="columns",
    ),
    mutant(
        "the intercept is left out of the clip by columns",
        (COLUMN_KERNEL, "math.sqrt(part * part + icpt * icpt) if icpt > 0.0 else part", "part"),
        tests="columns",
    ),
    mutant(
        "norms of small rows underflow",
        (COLUMN_KERNEL, "if not 1e-140 < norm[i] < 1e140:", "if not norm[i] < 1e140:"),
        tests="columns",
    ),
    mutant(
        "the last row of a block by columns is dropped",
        (BY_COLUMNS, "m = min(step, self.n_rows - low)", "m = min(step, max(0, self.n_rows - low - 1))"),
        tests="columns",
    ),
    mutant(
        "no room for rounding by columns",
        (BY_COLUMNS, "room = 1.0 + (self.n_features + self.n_outputs + 16) * 2.0**-52", "room = 1.0 - 1e-9"),
        tests="columns",
    ),
]
