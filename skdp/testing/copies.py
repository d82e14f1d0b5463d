"""Checks of copies, threads and processes: each is charged, and has noise of its own."""

from __future__ import annotations

import copy
import gc
import json
import os
import pathlib
import pickle
import tempfile
import threading
import types
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp.accounting import PrivacyAccountant
from skdp.mechanisms.streams import SecretStream
from skdp.mechanisms.tape import Tape
from skdp.testing.demands import Inapplicable, demand
from skdp.testing.subjects import (
    CheckedEstimator,
    answers,
    heard_fit,
    learned,
    refusal,
)
from skdp.testing.tables import GivenRows


def check_copies_charge_the_same_ledger(subject: CheckedEstimator) -> None:
    """Clones, copies and pickles charge the ledger that they were given, or refuse to fit."""
    table = subject.table
    mend = "Store accountant in __init__ as it is (absolute_path of it), and return it from get_params"
    with tempfile.TemporaryDirectory() as folder:
        kept = PrivacyAccountant(1e6, 1e-3, path=pathlib.Path(folder) / "ledger.budget")
        for ledger in (PrivacyAccountant(), kept):
            model = subject.make(ledger)
            for copied in (clone, copy.copy, copy.deepcopy, _pickled):
                before = len(ledger.history)
                error = refusal(partial(_fit_copy, copied, model, table))
                charged = len(ledger.history) - before
                what = f"{copied.__name__.strip('_')} of an estimator"
                demand(error is not None or charged == 1, f"{what} is fitted, and its ledger is not charged", mend)
                demand(
                    error is None or copied is _pickled,
                    f"{what} cannot be fitted ({type(error).__name__})",
                    "Store every parameter in __init__ as it is",
                )
    fitted = heard_fit(subject.make(), table, Tape()).model
    demand(
        learned(_pickled(fitted)) == learned(fitted), "a pickled estimator is another one", "Pickle all that is learned"
    )


def _fit_copy(copied: Callable[[Any], Any], model: Any, table: GivenRows) -> None:
    heard_fit(copied(model), table, Tape())


def _pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def check_threads_have_charges_and_noise_of_their_own(subject: CheckedEstimator) -> None:
    """Fits of clones in several threads are charged one by one, and share no noise."""
    ledger, start = PrivacyAccountant(), threading.Barrier(3)
    models = [subject.make(ledger) for _ in range(3)]

    def fit(model: Any) -> list[float]:
        start.wait()
        return _noise_of_a_fit(model, subject)

    with ThreadPoolExecutor(3) as pool, warnings.catch_warnings():
        drawn = list(pool.map(fit, models))
    mend = "Take stream and charge from a fit object (skdp.base.begin)"
    paid = sum(model.epsilon_ > 0.0 for model in models)
    demand(len(ledger.history) == paid, f"{paid} fits in threads make {len(ledger.history)} charges", mend)
    _no_noise_twice(drawn, "threads")


def check_processes_have_charges_and_noise_of_their_own(subject: CheckedEstimator) -> None:
    """A forked process charges the file of the ledger, and draws other noise than its parent."""
    if not hasattr(os, "fork"):
        raise Inapplicable("this system does not fork")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ledger.budget"
        model = subject.make(PrivacyAccountant(1e6, 1e-3, path=path))
        ours = _noise_of_a_fit(clone(model), subject)  # kernels are compiled before the fork
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a child does not have
            child = os.fork()
        if child == 0:
            try:
                os.write(writing, json.dumps(_noise_of_a_fit(model, subject)).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        demand(bool(told), "a fit in a forked process fails", "Make no stream, pool or file before fit")
        theirs, again = json.loads(told), _noise_of_a_fit(model, subject)
        charges = len(PrivacyAccountant.open(path).history)
    mend = "Keep the accountant as it is, so that each process opens its file"
    demand(charges in (0, 3), f"3 fits in two processes make {charges} charges", mend)
    _no_noise_twice([ours, theirs, again], "processes")


def _noise_of_a_fit(model: Any, subject: CheckedEstimator) -> list[float]:
    """Some of the noise of a fit, with secret streams. Whole numbers are taken together: single ones may be equal."""
    fitted = heard_fit(model, subject.table, Tape())
    some = [each for track in fitted.tracks for each in track.releases[:3]]
    normals = [float(x) for each in some if not each.is_whole for x in each.noise[:3].round(9)]
    return normals + [zlib.crc32((each.noisy - each.exact).tobytes()) for each in some if each.is_whole]


def _no_noise_twice(drawn: list[list[float]], what: str) -> None:
    together = [number for part in drawn for number in part]
    mend = "Make a stream in each fit, and keep none on the estimator"
    demand(len(set(together)) == len(together), f"fits of several {what} share noise", mend)


def check_no_stream_is_kept(subject: CheckedEstimator) -> None:
    """Nothing that can be reached from a fitted estimator holds the state of its noise."""
    model = heard_fit(subject.make(), subject.table, Tape()).model
    answers(model, subject.table.X)
    left, found = [model], set()
    while left:
        each = left.pop()
        if id(each) in found or isinstance(each, (type, types.ModuleType, types.FunctionType)):
            continue
        found.add(id(each))
        kept = isinstance(each, (SecretStream, np.random.Generator, np.random.RandomState))
        demand(not kept, "a fitted estimator holds a stream of noise", "Keep no stream: who has it takes the noise off")
        left += gc.get_referents(each)
