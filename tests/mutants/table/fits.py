"""Mistakes in a fit: its input, its publication, its refusals, its checkpoint."""

from mutant import mutant
from paths import (
    BASE,
    CANDIDATES,
    CELLS,
    CHECKPOINT,
    CONDUCTOR,
    EVENTS,
    FINDINGS,
    GRADIENT,
    INPUT,
    JOINT_FIT,
    PAYMENT,
    PIPELINE,
    PRIVATE_STEP,
    REHEARSAL,
    RELEASES,
    RUN_FIT,
    RUN_LOCK,
    RUNNING,
    SCORES,
    TRAINING,
    VALIDATION,
)

MUTANTS = [
    mutant(
        "model discarded by an interrupt in the correction",
        (
            GRADIENT,
            "            self._publish_run(plan, targets.outputs, theta, n_done)\n            return",
            "            raise RuntimeError\n            return",
        ),
        tests="offset",
        select="interrupt_in_correction",
    ),
    # --- private input ---
    mutant(
        "rows checked unless scikit-learn is told to assume that they are finite",
        (
            CELLS,
            '    if values.dtype.kind != "f":\n',
            '    import sklearn\n\n    if sklearn.get_config()["assume_finite"] or values.dtype.kind != "f":\n',
        ),
        tests="rows",
    ),
    mutant(
        "an error that quotes a cell chained to the refusal",
        (
            CELLS,
            "        pass  # its message may quote cells\n",
            '        raise ValueError(f"{name} is no array of numbers: its rows differ in length") from None\n',
        ),
        tests="rows",
        select="bad_tables",
    ),
    mutant(
        "the schema of a table written before it is refused",
        (
            INPUT,
            "    check_finite(table, names)\n",
            "    check_schema(estimator, table, reset=reset)\n    check_finite(table, names)\n",
        ),
        tests="rows",
    ),
    mutant(
        "the largest numbers warned of",
        (
            CELLS,
            '    with np.errstate(all="ignore"):\n        if np.isfinite(values.sum())',
            "    if True:\n        if np.isfinite(values.sum())",
        ),
        tests="rows",
    ),
    mutant(
        "columns beyond the shape of a sparse matrix believed",
        (INPUT, "        X.check_format(full_check=True)\n", "        pass\n"),
        tests="rows",
        select="bad_tables",
    ),
    mutant(
        "masked cells taken for data",
        (CELLS, "if np.ma.isMaskedArray(given) and np.ma.is_masked(given):", "if False:"),
        tests="rows",
    ),
    mutant(
        "a table given as a parameter quoted",
        (VALIDATION, 'return f"<{type(value).__name__}>"', 'return " ".join(repr(value).split())'),
        tests="parameters",
    ),
    mutant(
        "rows given to accounting quoted",
        (EVENTS, 'return f"<{type(value).__name__}>"', 'return " ".join(repr(value).split())'),
        tests="parameters",
        select="private_values",
    ),
    mutant(
        "a label that is no class quoted",
        (INPUT, "{name} contains labels that are not in classes", "{name} contains {y[:1].tolist()}, not in classes"),
        tests="rows",
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
        tests="releases",
        select="any_line",
    ),
    mutant(
        "a fit that writes on the user's estimator",
        (
            RUN_FIT,
            "super().__init__(target, copy(target))",
            "super().__init__(target, target)",
        ),
        tests="releases",
        select="any_line",
    ),
    mutant(
        "a pipeline that is fitted on the user's own steps",
        (JOINT_FIT, "            copied = clone(step, safe=False)\n", "            copied = step\n"),
        (PRIVATE_STEP, "type(self)(clone(self.estimator).set_params(", "type(self)(self.estimator.set_params("),
        (PIPELINE, "super().__init__(target, clone(target))", "super().__init__(target, copy(target))"),
        (PIPELINE, "import contextlib\n", "import contextlib\nfrom copy import copy\n"),
        tests="releases",
        select="while_it_fits or two_threads or last_step",
    ),
    mutant(
        "what a part learns later is left out of the price of the whole",
        (RELEASES, "    for part in fitted._private_parts():\n", "    for part in ():\n"),
        tests="releases",
        select="moves_the_price or fitted_anew",
    ),
    mutant(
        "a part counted by its event and not by its release",
        (RELEASES, "if release.id not in known})", "if release.event not in [each.event for each in own]})"),
        tests="releases",
        select="moves_the_price or fitted_anew",
    ),
    mutant(
        "a part of another adjacency priced as if it were of the whole's",
        (BASE, "        if others:\n", "        if False:\n"),
        tests="releases",
        select="another_adjacency",
    ),
    mutant(
        "an accountant that is set while a pipeline fits forgotten",
        (
            PIPELINE,
            "            own = copy(own) if copied else own\n            publish(own, learned)\n",
            "            own = learned\n",
        ),
        tests="releases",
        select="is_kept",
    ),
    mutant(
        "wild rows refused behind a private step",
        (
            RUNNING,
            "made = zero_wild_rows(run_publicly(name, step, _zero_row_like(X) if is_empty else X, y, params))",
            "made = run_publicly(name, step, _zero_row_like(X) if is_empty else X, y, params)",
        ),
        tests="refusals",
        select="no_value_is_refused",
    ),
    mutant(
        "words among objects refused behind a private step",
        (RUNNING, "    made = _without_objects(made)\n", ""),
        tests="refusals",
        select="no_object_is_refused",
    ),
    mutant(
        "gaps of a frame with columns of several types refused behind a private step",
        (RUNNING, 'if values.dtype.kind == "O" and', 'if values.dtype.kind == "f" and'),
        tests="refusals",
        select="keep_their_types",
    ),
    mutant(
        "a frame of polars without rows refused behind a private step",
        (RUNNING, "if column_names(X) is not None:", "if False:"),
        tests="parts_without_rows",
        select="takes_a_part",
    ),
    mutant(
        "a row that cannot be scored left out of the score",
        (SCORES, "return np.array([self._worst - self.sensitivity])", "return np.array([0.0])"),
        tests="search",
        select="cannot_be_predicted",
    ),
    mutant(
        "steps behind a private one that are first run after the charge",
        (JOINT_FIT, "        self._rehearse(self._checked.shape[1])\n", ""),
        tests="refusals",
        select="cannot_run_behind",
    ),
    mutant(
        "a slice that spends a budget of its own",
        (
            PIPELINE,
            "            taken = PipelineSlice(Pipeline(self.steps)[ind].steps)\n",
            "            taken = type(self)(Pipeline(self.steps)[ind].steps)\n",
        ),
        tests="releases",
        select="slice",
    ),
    mutant(
        "a pipeline that checks its rows after the charge",
        (PIPELINE, "        self._steps.prepare(self._X, self._y)\n", ""),
        (
            PIPELINE,
            "        self.rows, interrupted =",
            "        self._steps.prepare(self._X, self._y)\n        self.rows, interrupted =",
        ),
        tests="refusals pipeline",
        select="before_the_charge or costs_nothing or category",
    ),
    mutant(
        "a ceiling that is asked for nothing before the rows are read",
        (
            PAYMENT,
            "            self.accountant.check(event, self.adjacency, parameters=self.parameters, unit=self.unit)\n",
            "            pass\n",
        ),
        tests="refusals",
        select="looked_at_before_the_rows",
    ),
    mutant(
        "two steps of one name",
        (FINDINGS, "    if len(set(names)) < len(names):\n", "    if False:\n"),
        tests="pipeline",
        select="of_one_name",
    ),
    mutant(
        "a file hidden in a subclass that a pipeline resumes",
        (PIPELINE, 'getattr(step.estimator, "checkpoint", None)', 'step.estimator.get_params().get("checkpoint")'),
        (GRADIENT, "        if self.checkpoint is not None or self.warm_start:\n", "        if False:\n"),
        tests="pipeline",
        select="subclass_hides",
    ),
    mutant(
        "rows handed on by a private step as they are",
        (JOINT_FIT, "takes_codes else zero_wild_rows(rows)\n", "takes_codes else rows\n"),
        tests="extending",
        select="row_of_zeros",
    ),
    mutant(
        "what an earlier fit learned kept under the price of a later one",
        (CONDUCTOR, "    forget(work)\n    return work\n", "    return work\n"),
        tests="extending",
        select="second_fit",
    ),
    mutant(
        "a refusal that the ledger does not note",
        (
            PAYMENT,
            "                self.accountant.record_refusal(self.label, adjacency=self.adjacency)\n",
            "                pass\n",
        ),
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
        tests="search",
        select="says_nothing_of_its_tries",
    ),
    mutant(
        "Ctrl-C in a try that ends that try alone",
        (CANDIDATES, "            raise KeyboardInterrupt\n", "            pass\n"),
        tests="search",
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
        (RUN_FIT, "        lock.take()\n", ""),
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
        (GRADIENT, "        if checkpoint is not None and checkpoint.continues(earlier):\n", "        if False:\n"),
        tests="checkpoint",
        select="interrupted_instalment",
    ),
    # --- a run on disk ---
    mutant(
        "a run that goes on from a file is charged anew",
        (RUN_FIT, "return any(charge.note == plan.note and", "return False and any(charge.note == plan.note and"),
        tests="checkpoint",
        select="seeded_run",
    ),
    mutant(
        "a run that goes on from a file is never charged",
        (RUN_FIT, "return any(charge.note == plan.note and", "return True or any(charge.note == plan.note and"),
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
        "the first file of a run written after its charge",
        (
            RUN_FIT,
            "            self.work._begin_file(plan, rows.dtype)\n",
            "",
        ),
        (
            RUN_FIT,
            "        interrupted: str = self.work._learn(",
            "        if self._plan.checkpoint is not None:\n"
            "            self.work._begin_file(self._plan, self._rows.dtype)\n"
            "        interrupted: str = self.work._learn(",
        ),
        tests="checkpoint",
        select="full_disk_before or kill_between",
    ),
    mutant(
        "a file that began before its charge counts as a charge",
        (RUN_FIT, "return any(charge.note == plan.note and", "return True or any(charge.note == plan.note and"),
        tests="checkpoint",
        select="kill_between",
    ),
    mutant(
        "an unwritten file that does not tell of the charge",
        (CHECKPOINT, "        raise failure from None\n", "        raise\n"),
        tests="checkpoint",
        select="full_disk",
    ),
    mutant(
        "the file of a run whose charge was refused",
        (RUN_FIT, "                self._plan.checkpoint.discard()\n", "                pass\n"),
        tests="checkpoint",
        select="refused_at_the_last_moment",
    ),
    mutant(
        "memory that ran out after the charge tells the size of a lot",
        (PAYMENT, "    except MemoryError:\n        pass\n", "    except MemoryError:\n        raise\n"),
        tests="base",
        select="memory",
    ),
    mutant(
        "the state of the generator in every file",
        (CHECKPOINT, "for stream in streams] if self._seeded else None", "for stream in streams]"),
        tests="checkpoint",
        select="no_state",
    ),
    mutant(
        "a rehearsal that is charged",
        (REHEARSAL, "made.set_params(**free, **seeds)", "made.set_params(**seeds)"),
        tests="rehearsal",
        select="nothing_is_charged",
    ),
]
