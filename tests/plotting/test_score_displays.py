"""Displays of private evaluations: what they draw is what the evaluation says, and costs nothing more."""

import numpy as np
import pytest

import skdp
from skdp import PrivacyAccountant
from skdp.plotting import (
    PrivateCalibrationDisplay,
    PrivateConfusionMatrixDisplay,
    PrivateRocCurveDisplay,
    PrivateSubgroupDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

N = 2_000


@pytest.fixture(scope="module")
def ledger():
    return PrivacyAccountant(2.0, 1e-5)


@pytest.fixture(scope="module")
def binary(ledger):
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=N)
    return skdp.evaluate(None, scores, (rng.uniform(size=N) < scores).astype(int), epsilon=1.0, accountant=ledger)


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    ("display", "curve", "named"),
    [
        (PrivateRocCurveDisplay, "roc_curve", "$m$, AUC = "),
        (PrivateCalibrationDisplay, "calibration_curve", "$m$, Brier score = "),
    ],
)
def test_curves_and_their_bands(binary, ledger, display, curve, named):
    spent = ledger.spent
    shown = display.from_evaluation(binary, name="$m$", color="#D55E00")
    expected = getattr(binary, curve)()
    np.testing.assert_array_equal(shown.line_.get_xydata(), np.column_stack([expected.x, expected.y]))
    corners = shown.band_.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(expected.low.min())
    assert corners[:, 1].max() == pytest.approx(expected.high.max())
    assert shown.line_.get_color() == "#D55E00"
    assert shown.ax_.get_legend().get_texts()[0].get_text().startswith(named)
    assert "95% intervals that account for noise and sampling, epsilon=1" in shown.note
    shown.figure_.canvas.draw()
    assert ledger.spent == spent


def test_curves_of_one_of_several_classes_or_labels():
    scores = np.random.default_rng(0).dirichlet([1, 1, 1], 500)
    kinds = scores.argmax(1)
    classes = skdp.evaluate(None, scores, kinds, classes=[0, 1, 2], one_vs_rest=True, epsilon=2.0)
    labels = skdp.evaluate(None, scores, np.eye(3, dtype=int)[kinds].tolist(), epsilon=2.0)
    for found in (classes, labels):
        shown = PrivateRocCurveDisplay.from_evaluation(found, pos_label=2)
        np.testing.assert_array_equal(shown.curve.y, found.each[2].roc_curve().y)
        with pytest.raises(ValueError, match="got None"):
            PrivateCalibrationDisplay.from_evaluation(found)
    assert PrivateConfusionMatrixDisplay.from_evaluation(classes).text_.shape == (3, 3)
    assert PrivateConfusionMatrixDisplay.from_evaluation(labels, pos_label=1).text_.shape == (2, 2)


def test_confusion_matrices_of_two_classes_and_more(binary):
    shown = PrivateConfusionMatrixDisplay.from_evaluation(binary, threshold=0.7)
    found = binary.confusion_matrix(0.7)
    reach = (found.high - found.low) / 2
    assert shown.text_[1, 0].get_text() == f"{found.value[1, 0]:.0f}\n±{reach[1, 0]:.0f}"
    np.testing.assert_allclose(shown.im_.get_array().sum(1), 1.0)
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "$c$"], N)
    several = skdp.evaluate(None, y, y, epsilon=1.0, classes=["a", "b", "$c$"])
    drawn = PrivateConfusionMatrixDisplay.from_evaluation(several)
    assert [tick.get_text() for tick in drawn.ax_.get_xticklabels()] == several.classes_.tolist()


def test_figures_of_subgroups_and_their_intervals(binary):
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=N)
    y, sex = (rng.uniform(size=N) < scores).astype(int), rng.choice(["F", "M"], N)
    found = skdp.evaluate(None, scores, y, epsilon=1.0, by=sex, categories=["F", "M"])
    for metric in ("roc_auc", "accuracy"):
        shown = PrivateSubgroupDisplay.from_evaluation(found, metric=metric)
        expected = [getattr(part, metric) for part in found.subgroups.values()]
        expected = [each() if metric == "accuracy" else each for each in expected]
        points, _, (bars,) = shown.bars_
        np.testing.assert_array_equal(points.get_xdata(), [each.value for each in expected])
        ends = [segment[:, 0] for segment in bars.get_segments()]
        np.testing.assert_allclose(ends, [(each.low, each.high) for each in expected])
        assert [each.get_text() for each in shown.ax_.get_yticklabels()] == ["F", "M", "other"]
    with pytest.raises(ValueError, match="must have subgroups"):
        PrivateSubgroupDisplay.from_evaluation(binary)
    with pytest.raises(ValueError, match="`metric` must be"):
        PrivateSubgroupDisplay.from_evaluation(found, metric="_replicates")
