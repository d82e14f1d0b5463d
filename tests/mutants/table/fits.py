"""Faults in the order of charging, delta, weights and targets."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp._checks.parameters": [
            (
                "default-delta-too-large",
                "default_delta",
                "len(str(10 * n_samples - 1))",
                "len(str(10 * n_samples - 1)) - 1",
            ),
        ],
        "skdp._checks.targets": [
            ("targets-not-clipped", "bring_into_bounds", "np.clip(targets, *bounds)", "targets", "least_squares"),
        ],
        "skdp._checks.weights": [
            (
                "weights-not-clipped",
                "WeightReader.shares",
                "np.minimum(weights / self.bound, 1.0)",
                "weights / self.bound",
            ),
            ("weight-bound-from-data", "WeightReader.shares", "self.bound", "min(self.bound, np.max(weights))"),
            ("weights-rounded-up", "exactly_summable", "np.floor", "np.ceil"),
        ],
        "skdp.pipeline.joint_fit": [
            ("pipeline-nonfinite-rows-passed-on", "JointFit._fit_for", "zero_wild_rows(rows)", "rows", "extending"),
        ],
        "skdp.base.budget": [
            ("pipeline-event-ignores-later-releases", "releases_of", "fitted._private_parts()", "()"),
            (
                "noise-calibrated-without-adjacency",
                "solve_noise",
                "calibrate_to(event_at, target, method=budget.method, adjacency=budget.adjacency)",
                "calibrate_to(event_at, target, method=budget.method)",
                "logistic",
            ),
        ],
        "skdp.base.private_step": [
            (
                "pipeline-steps-share-stream",
                "StepFit.__init__",
                "('step of a pipeline', number)",
                "('step of a pipeline', 0)",
                "seeds",
            ),
        ],
        "skdp.base.fit": [
            (
                "budget-not-checked-before-reading",
                "Account.check",
                "self.accountant.check(event, self.adjacency, parameters=self.parameters, unit=self.unit)",
                "pass",
            ),
            ("releases-not-compared-with-charge", "Fit.release", "self._check_released()", "None", "fit"),
            (
                "fit-plan-from-private-n",
                "Fit._settle",
                "n if n_public is None else n_public",
                "n",
                "guarantees_neighbors",
            ),
            ("fit-not-asked-before-read", "Fit._admit", "account.check(self.event)", "None", "fit"),
            ("fit-not-charged", "Fit.charge", "self._account.charge(self.event, _1)", "None", "fit"),
            ("fit-order-not-enforced", "Fit._advance", "self._stage not in allowed", "False", "fit"),
            ("fit-part-released-twice", "Fit._begin_part", "self._released[part] = 0.0", "None", "fit"),
            (
                "group-fit-planned-by-rows",
                "Fit.read_shape",
                "self.n_rows if self.units is None else self.units.n_units",
                "self.n_rows",
                "streamed_units",
            ),
            (
                "earlier-fits-not-charged",
                "Fit.plan",
                "compose([*(each.event for each in before), event])",
                "event",
                "logistic_runs",
            ),
            (
                "resumed-run-never-charged",
                "Fit._admit",
                "any(_1 for each in charges)",
                "True",
                "checkpoint",
            ),
            (
                "charge-of-another-partition-counts",
                "Fit._admit",
                "each.partition in (None, partition)",
                "True",
                "checkpoint",
            ),
            (
                "fit-release-without-noise",
                "Fit.release",
                "mechanism.release(total.vector, stream)",
                "total.vector",
                "guarantees_neighbors",
            ),
        ],
        "skdp.base.estimator": [
            (
                "group-fit-in-single-precision",
                "PrivateEstimator._shifts_rows",
                "adjacency_of(self) == 'add_remove' or self._unit() == GROUP",
                "adjacency_of(self) == 'add_remove'",
                "guarantees_units",
            ),
        ],
    }
)
