"""Checks of the releases of a fit: sensitivity to a record, and post-processing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skdp.accounting import AddRemove, PrivacyAccountant
from skdp.audit import checking
from skdp.audit.checking import RELATIVE_ERROR, ROW, CheckedEstimator, Inapplicable, answers, demand, moves
from skdp.audit.checks import check_release_noise
from skdp.audit.replay import differences
from skdp.audit.subjects import AuditedFit, recorded_fit
from skdp.audit.worst_case import leaves
from skdp.exceptions import QualityWarning
from skdp.mechanisms.release_log import Transcript
from skdp.report.document import privacy_report

_FITS, _FEW_FITS = 100, 8


def check_noise_has_its_law(subject: CheckedEstimator) -> None:
    """The noise of releases is Gaussian with the declared scale, and no two releases share it."""
    parts: list[Any] = []
    for seed in range(_FITS):
        fitted = recorded_fit(subject.make(), subject.table, Transcript(seed))
        parts += [each.noise for track in fitted.tracks for each in track.releases if each.exact.size]
        if not parts:
            raise Inapplicable("it releases nothing as configured")
        # Normals for the law of noise; half of its scale is recorded of 200.
        if sum(each.size for each in parts) > (2_000 if seed < _FEW_FITS else 200):
            break
    found = check_release_noise(parts)
    demand(
        not found, "; ".join(map(str, found)), "Release through a mechanism, with a separate stream for each release"
    )


def _same_releases(one: AuditedFit, other: AuditedFit, what: str) -> None:
    """Demand that a fit leaves behind what another one does that saw the same releases."""
    found = differences(one, other)
    remedy = "Attributes, decisions and messages must follow from releases and public numbers only"
    demand(not found, f"{what}: {'; '.join(map(str, found))}", remedy)


def _moved_by_two_at_most(one: AuditedFit, other: AuditedFit, what: str, remedy: str) -> None:
    """Demand that what takes the place of another row moves no release by more than two sensitivities."""
    far = max(moves(one, other), default=0.0)
    wrong = f"{what} changes a release by {far:.4g} times its sensitivity, but at most 2 is allowed"
    demand(far <= 2.0 * (1.0 + RELATIVE_ERROR), wrong, remedy)


def check_neighbors_move_releases_by_the_sensitivity(subject: CheckedEstimator) -> None:
    """Replacing a row, by any row, changes each release by at most twice its sensitivity, and nothing else."""
    one, seen = subject.fit(subject.table), 0
    for what, row in checking.far_rows(subject.table):
        table = checking.with_row(subject.table, row)
        try:
            other = subject.fit(table, one)
        except (ValueError, TypeError) as error:
            wrong = f"{what} is rejected ({type(error).__name__}), which reveals it"
            demand(what in checking.MAY_BE_REJECTED, wrong, "Clip finite numbers, and reject none because of its size")
            continue
        seen += 1
        _same_releases(one, other, f"a row of {what}")
        remedy = "Clip the contribution of a row to the sensitivity that is accounted for, in double precision"
        _moved_by_two_at_most(one, other, f"a row of {what}", remedy)
    demand(seen > 0, "no replacement row was accepted", "Pass X and y that the estimator accepts")


def check_a_removed_row_moves_releases_by_the_sensitivity(subject: CheckedEstimator) -> None:
    """Removing any row changes each release by at most its sensitivity, under add/remove."""
    places, n = subject.places("adjacency"), subject.table.X.shape[0]
    if not places:
        raise Inapplicable("it does not support add_remove")
    change, others = dict.fromkeys(places, AddRemove(n)), np.delete(np.arange(n), ROW)
    without = subject.fit(subject.table.chosen(others), None, **change)
    for what, row in checking.far_rows(subject.table):
        if what in checking.MAY_BE_REJECTED:
            continue
        # the last one: it moves no other's place
        table = checking.with_row(subject.table, row).chosen(np.append(others, ROW))
        far = max(moves(without, subject.fit(table, without, **change)), default=0.0)
        wrong = (
            f"removing a row of {what} changes a release by {far:.4g} times its sensitivity, but at most 1 is allowed"
        )
        remedy = (
            "State the largest norm of the contribution of a row, and clip rows to it; a sum of vectors clips only "
            "groups"
        )
        demand(far <= 1.0 + RELATIVE_ERROR, wrong, remedy)


def check_the_number_of_strings_is_private(subject: CheckedEstimator) -> None:
    """A string of a single record changes a release by at most its sensitivity, and neither noise nor output."""
    near = checking.with_strings(subject.table, [ROW])
    many = checking.with_strings(subject.table, list(range(subject.table.X.shape[0])))
    if near is None or many is None:
        return  # no column of strings
    one, other = subject.fit(subject.table), subject.fit(many)
    same = subject.fit(near, one)
    _same_releases(one, same, "a string of a single record")
    fix = "Bound the number of counts that a record changes, in double precision"
    _moved_by_two_at_most(one, same, "a string of a single record", fix)
    for a, b in zip(one.transcript.tracks[0].releases, other.transcript.tracks[0].releases, strict=False):
        if a.exact.size != b.exact.size and not a.is_whole:
            one_noise, other_noise = (np.ravel(each.noisy - each.exact) for each in (a, b))
            size = min(one_noise.size, other_noise.size)
            equal = np.array_equal(one_noise[:size], other_noise[:size])
            demand(
                equal, "the noise of counts depends on the number of counts", "Release counts with GaussianMechanism"
            )


def check_weights_move_releases_by_the_sensitivity(subject: CheckedEstimator) -> None:
    """No weight makes the contribution of a row larger than the sensitivity."""
    if not subject.takes("sample_weight"):
        raise Inapplicable("fit has no parameter sample_weight")
    weights = np.linspace(0.1, 1.0, subject.table.X.shape[0])
    table = subject.table._replace(sample_weight=weights)
    one = subject.fit(table)
    for weight in (0.0, 5e-324, 1e30):
        near = weights.copy()
        near[ROW] = weight
        other = subject.fit(table._replace(sample_weight=near), one)
        _same_releases(one, other, f"a weight of {weight!r}")
        _moved_by_two_at_most(one, other, f"a weight of {weight!r}", "Clip weights to a public bound")


def check_what_is_fitted_follows_from_the_releases(subject: CheckedEstimator) -> None:
    """Other rows and targets with the same releases give the same attributes, messages, report and answers."""
    one = subject.fit(subject.table)
    other = subject.fit(subject.other, one)
    _same_releases(one, other, "other rows")
    for name, answer in answers(one.model, subject.table.X).items():
        twin = answers(other.model, subject.table.X)[name]
        equal = dict(leaves(answer)) == dict(leaves(twin))
        demand(
            equal,
            f"{name} differs although the releases are equal",
            "Keep no row and nothing that was computed from the rows outside releases",
        )


def check_the_number_of_rows_is_private_under_add_remove(subject: CheckedEstimator) -> None:
    """Under ``"add_remove"`` the number of rows affects the result only through the releases."""
    places = subject.places("adjacency")
    if not places:
        raise Inapplicable("it does not support add_remove")
    change = dict.fromkeys(places, AddRemove(subject.table.X.shape[0]))
    one = subject.fit(subject.table, None, **change)
    n = subject.other.X.shape[0]
    other = subject.fit(subject.other.chosen(np.append(np.arange(n), 0)), one, **change)
    _same_releases(one, other, "an additional row")


def check_a_seed_repeats_a_fit(subject: CheckedEstimator) -> None:
    """All randomness comes from the stream of the fit: the same seed gives the same releases."""
    one, other = subject.fit(subject.table), subject.fit(subject.table)
    remedy = "Draw only from the stream of the fit: the state of another generator allows removing the noise"
    demand(not differences(one, other) and not any(moves(one, other)), "two fits with the same seed differ", remedy)


def check_a_report_can_be_written(subject: CheckedEstimator) -> None:
    """`privacy_report` states the privacy cost, as text and as JSON, and depends only on the releases."""
    one = subject.fit(subject.table)
    other = subject.fit(subject.other, one)
    report = privacy_report(one.model)
    content = json.loads(report.to_json())
    remedy = "Inherit from PrivateEstimator, and publish through the fit object"
    demand(f"{one.model.epsilon_:.2g}"[:3] in str(report), "the report does not contain epsilon", remedy)
    demand(isinstance(content, dict), "the JSON of the report is not an object", remedy)
    demand(str(report) == str(privacy_report(other.model)), "the report depends on the rows", remedy)


def check_settings_of_arithmetic_reveal_no_row(subject: CheckedEstimator) -> None:
    """Under ``numpy.errstate(all="raise")`` a row that underflows raises no error."""
    if hasattr(subject.table.X, "iloc"):
        raise Inapplicable("its rows are not a numeric array")
    table, single = subject.table, subject.table._replace(X=np.asarray(subject.table.X, np.float32))
    remedy = "Compute under numpy.errstate(all='ignore'), as a fit object does"
    fits = {id(each): subject.fit(each) for each in (table, single)}
    for given, tiny in ((table, 5e-324), (table, 1e-310), (table, 1e300), (single, 1e-40)):
        near, fitted = checking.with_row(given, tiny), fits[id(given)]
        with np.errstate(all="raise"):
            try:
                said = _of_arithmetic(subject.fit(near).messages)
                answers(fitted.model, near.X)
            except ArithmeticError as error:
                said = [(type(error), "")]
        demand(
            said == _of_arithmetic(fitted.messages),
            f"a row of {tiny!r} is revealed by a floating-point warning or error",
            remedy,
        )


def _of_arithmetic(messages: list[tuple[type, str]]) -> list[tuple[type, str]]:
    """Leave out messages of quality, which quote what was released, with other noise in each fit."""
    return [each for each in messages if each[0] is not QualityWarning]


def check_units_are_bounded_together(subject: CheckedEstimator) -> None:
    """All rows of a group together change a release by at most the sensitivity of one row; or groups are rejected."""
    one_table = checking.with_units(subject.table, 3, ROW)
    other_table = checking.with_units(subject.table, 40, ROW + 1)
    ledger = PrivacyAccountant(unit="household")
    counted = dict.fromkeys(subject.places("adjacency"), AddRemove(60))
    fits: list[AuditedFit] = []
    error = checking.rejection(
        lambda: fits.append(recorded_fit(subject.make(ledger, **counted), one_table, Transcript()))
    )
    remedy = (
        "Pass groups to begin, and clip the joint contribution of the rows of a group (skdp.mechanisms.bounded_sum)"
    )
    if error is not None:
        demand(
            not ledger.history, "groups are rejected after the charge", "Reject unknown parameters before the charge"
        )
        demand(not subject.takes("groups"), f"a fit with groups raises {type(error).__name__}", remedy)
        return
    # Groups are taken: the fit and its charge state the unit.
    model = fits[0].model
    demand(model.privacy_unit_ == "group", f"privacy_unit_ is {model.privacy_unit_!r} after a fit with groups", remedy)
    units = [charge.unit for charge in ledger.history]
    demand(units in ([], ["household"]), f"a fit with groups is charged for the privacy units {units}", remedy)
    # However many rows a group has, it moves a release as far as one row may.
    one = subject.fit(one_table, None, **counted)
    other = subject.fit(other_table, one, **counted)
    _same_releases(one, other, "a group of 40 rows in place of a group of 3")
    _moved_by_two_at_most(one, other, "a group of 40 rows", remedy)
    # A accountant of rows rejects the charge.
    rows = PrivacyAccountant()
    error = checking.rejection(
        lambda: subject.make(rows, **counted).fit(one_table.X, one_table.y, groups=one_table.groups)
    )
    is_rejected = not ledger.history or (error is not None and not rows.history)
    demand(
        is_rejected,
        "an accountant for rows accepts a charge for groups",
        "Let a fit object charge the fit (skdp.base.begin)",
    )
