"""`EffectDisplay` draws the numbers of `column_effects`."""

import numpy as np
import pytest

from skdp import tabular_pipeline
from skdp.datasets import make_census
from skdp.ensemble import DPRandomTreesClassifier
from skdp.inspection import column_effects
from skdp.plotting import EffectDisplay

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    people = make_census(2000, features=["age", "sex", "educ"], as_frame=True, random_state=0)
    trees = DPRandomTreesClassifier(20, classes=people.classes)
    return tabular_pipeline(trees, schema=people.schema, random_state=0).fit(people.data, people.target)


def test_curves_and_bands_are_the_numbers(model):
    display = EffectDisplay.from_estimator(model, features=["age"], level=0.9)
    (age,) = column_effects(model, features=["age"])
    curve = next(line for line in display.axes_[0].lines if line.get_drawstyle() == "steps-mid")
    n = age.n_ordered[0]
    assert np.array_equal(curve.get_ydata(), age.effect[:n])
    low, high = display.axes_[0].collections[0].get_datalim(display.axes_[0].transData).get_points()[:, 1]
    reach = 1.6448536269514722 * age.noise[:n]
    assert low == pytest.approx((age.effect[:n] - reach).min())
    assert high == pytest.approx((age.effect[:n] + reach).max())


def test_the_columns_that_do_most_come_first(model):
    display = EffectDisplay.from_estimator(model, max_features=2)
    sizes = {each.names[0]: each.difference[2] for each in column_effects(model)}
    best = sorted(sizes, key=lambda name: -sizes[name])[:2]
    assert [ax.get_title() for ax in display.axes_] == best
    assert len({ax.get_ylim() for ax in display.axes_}) == 1


def test_pairs_are_maps(model):
    display = EffectDisplay.from_estimator(model, features=[("age", "sex")])
    (pair,) = column_effects(model, features=[("age", "sex")])
    assert np.array_equal(display.axes_[0].images[0].get_array(), pair.effect.T)
    hatched = sum(patch.get_hatch() == "////" for patch in display.axes_[0].patches)
    assert hatched == np.sum(np.abs(pair.effect) < 1.959963984540054 * pair.noise)
    assert display.axes_[0].get_title() == "age x sex"


def test_rejections(model):
    with pytest.raises(ValueError, match="at least one effect"):
        EffectDisplay(effects=[]).plot()
    with pytest.raises(ValueError, match=r"`level` must be .*, got 1\.0"):
        EffectDisplay.from_estimator(model, features=["age"], level=1.0)
