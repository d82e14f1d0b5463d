"""The one path through a gradient fit, alone and as a step of a pipeline."""

import sys

import numpy as np
from combinations import over_rows
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, allocate_budget
from skdp._dpsgd.solver import fit_run

X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
Y = (X[:, 0] > 0).astype(int)
UNUSED = ("checkpoint", "run_lock", "earlier_runs", "unit_layout", "group_clip", "conductor", "streamed", "dask")


def entered(fit):
    """Code objects that a second call enters."""
    found = set()

    def hook(frame, event, argument):
        if event == "call":
            found.add(frame.f_code)

    fit()
    sys.setprofile(hook)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return found


def test_default_fit_enters_no_unused_part():
    """Groups, files, locks, sources, and earlier runs, and the phases of other fits."""
    found = entered(lambda: DPLogisticRegression(classes=[0, 1]).fit(X, Y))
    places = [code.co_filename.removesuffix(".py").split("/") for code in found]
    assert not [place for place in places if "skdp" in place and set(place[-2:]) & set(UNUSED)]


@over_rows("of_pipeline", [False, True])
def test_gradient_fit_has_one_path(of_pipeline):
    model = DPLogisticRegression(classes=[0, 1])
    made = allocate_budget(make_pipeline(model), 1.0, 1e-5) if of_pipeline else model
    assert fit_run.__code__ in entered(lambda: made.fit(X, Y))
