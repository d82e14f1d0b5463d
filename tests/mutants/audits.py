"""Which planted mistakes an audit should hear, and the audits that are made of each.

Concerned are mistakes in noise, clip, sampling, divisor and charge of what a fit releases. Left out are those of the
accountant, by whose prices an audit goes, of when and by whom a charge is admitted, and of what is refused: an audit
has no ledger, and fits the tables that it makes. `python tests/mutants/audits.py CASE...` audits the package that is
on the path, until something is heard, and prints what.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

CONCERNED = {
    "bought": [
        ("gap|missing|tries|odometer|closed form|filters|delta of|failure", ""),
        ("threshold|categories|words", "one-hot, vectorizer"),
        ("edges", "binner"),
        ("changes one cell", "isolation replace, scaler bought replace"),
        ("bounds of moments|two rounds|cell", "scaler bought, vectorizer, binner"),
        ("", "scaler, imputer, scaler bought, binner, vectorizer, one-hot"),
    ],
    "calibration": [
        ("estimator fitted|scores counted|priced as", "calibrated fitted"),
        ("exact counts", "threshold, calibrated"),
    ],
    "clip": [
        ("softmax|class|several outputs|tile", "classes"),
        ("network", "network"),
        ("one-hot", "trees"),
        ("PCA", "pca"),
        ("by columns", "logistic columns"),
        ("", "logistic full, logistic lots"),
    ],
    "clusters": [
        ("units", "kmeans units"),
        ("leaves of exchanged", "kmeans leaf replace"),
        ("exchanged", "kmeans replace"),
        ("inertia|", "kmeans"),
    ],
    "discrete": [
        ("Gaussian noise heard|replaced|ledger|sample taken|groups of rows", ""),
        ("Gaussian|fraction|columns", "describer discrete, describer discrete at 20"),
        ("", "threshold at 0.1"),
    ],
    "distributed": [("audit", ""), ("neighbour|one key|last|noise added|lots|full batch", "dask")],
    "ensemble": [
        ("counts beyond", "network counts, network counts at 20"),
        ("rows of another form", "embedded"),
        ("counts of cells that|grown|counts of cells in|counts of cells with", "trees, trees replace"),
        ("means of several", "network labels"),
        ("row of means", "trees classes"),
        ("sums of targets|targets that", "tree regressor, tree regressor replace"),
        ("errors that are not cut", "tree regressor close"),
        (
            "means of|row of means|errors|probabilities|counts beyond|price leaves|means in",
            "trees, tree regressor, trees lots",
        ),
        ("weights rounded|a norm that", "trees weights, trees gaps, embedded"),
    ],
    "fits": [
        ("learns later|another adjacency", "pipeline continued, pipeline continued otherwise"),
        ("(price of the whole|by its event)", "pipeline"),
        ("two parts|under the price", "logistic full"),
        ("rows handed on", "pipeline"),
    ],
    "grouping": [
        ("network|float32", "network grouped"),
        ("one-hot", "trees grouped"),
        ("the number of groups as", "logistic grouped full"),
        ("one copy more", "logistic grouped eights"),
        ("files|published|search|report|end the fit|sparse", ""),
        ("different weights", "logistic twins weights first"),
        ("different labels", "logistic twins first"),
        ("", "logistic grouped"),
    ],
    "inference": [
        ("of many classes with", "newton classes"),
        ("(counted for nothing|ordered classes|out of order|their classes|noise of counts|counts of classes)", ""),
        (
            "newton: (rows that|a curvature without|the noise of one|a step that|moments|a curvature of|means of)",
            "newton, poisson, ordinal",
        ),
        ("scores.*(nothing|half|without|clipped|product)", "inference"),
        ("one by one", "inference units, inference many units"),
        ("each count as one", "newton units"),
    ],
    "isolation": [
        ("threshold", "isolation drawn"),
        ("paths", "isolation contaminated"),
        ("exchanged", "isolation replace"),
        ("units", "isolation units"),
        ("", "isolation"),
    ],
    "losses": [
        ("each output|NaN", "trees classes, classes"),
        ("counts|lost", "network counts"),
        ("Huber", "network huber"),
        ("", "trees, logistic wide"),
    ],
    "moments": [
        ("direction|eigen", ""),
        ("halved|private n", "pca add, pca replace"),
        ("read twice", "pca chunk"),
        ("exact trace", "pca spread at 20"),
        ("", "pca"),
    ],
    "naive_bayes": [
        ("exchanged row priced", "nb replace"),
        ("classes read|variances", ""),
        ("counts without weights", "nb weights"),
        ("", "nb"),
    ],
    "networks": [
        ("start depends|predictions|derivative|machine code|tables of the step|threads", ""),
        ("bounds of layers", "network bounds"),
        ("two blocks|last rows of a short", "network lots"),
        ("norms of other rows", "network lots close"),
        ("layer", "network, network layers"),
        ("add_remove", ""),
        ("", "network"),
    ],
    "noise": [
        ("falling", "logistic full, trees, logistic lots"),
        (
            "class weights|few rows|of objects|left of a column|of a coefficient|penalty|averaged|after the charge",
            "",
        ),
        ("synthesizer", "marginals bought"),
        ("given falls", "logistic given"),
        ("two releases|release alone", "ridge, pca, pipeline"),
        ("empty lot", "logistic few"),
        ("gap|lot|Poisson|rate|sampling|batch", "logistic lots, logistic full"),
        ("pickled|forked|looked at|put back|purposes", "logistic lots"),
        ("", "logistic full, logistic lots"),
    ],
    "one_hot": [
        ("clip|norm|half|codes|targets of lots|residuals|muted|sums of|removes|projection whose", "trees, trees lots")
    ],
    "price": [
        ("step fewer|step more", "logistic full, logistic lots"),
        ("without adjacency|replace_one", "logistic replace"),
        ("rate and divisor", "logistic lots"),
    ],
    "regression": [
        ("in a file", "ridge filed"),
        ("exchanged", "ridge, ridge replace"),
        ("regression: weights", "ridge weights"),
        ("private n", "ridge add"),
        ("longer|beyond their bounds as|target outside", "ridge"),
        ("released without", "ridge"),
        ("logarithms of", "network logarithms"),
        ("regressor: targets beyond", "network regressor, poisson"),
    ],
    "search": [
        ("and not scores", "random search lots"),
        (
            "score of a search|refit|charges training|all tries charged|one of all|split by",
            "grid search, random search",
        ),
        ("squared errors", "regressor search squares"),
        ("not cut off", "grid search lengths"),
        ("sensitivity|contributions|NaN|infinite|errors", "grid search losses, regressor search"),
        ("winner", "random search"),
        ("noise of one try", "pipeline search"),
    ],
    "statistics": [
        ("gaps|levels|rows$|sum of weights|purchase", ""),
        ("exchanged number", "describer sums replace"),
        ("weights", ""),
        ("unit", ""),
        ("subgroups", "describer groups"),
        ("", "describer"),
    ],
    "streaming": [
        ("of a map", "streamed"),
        ("used again", "filed passes"),
        ("blocks of|shuffled|lots|order in which", "filed lots"),
        ("dropped|twice", "filed"),
        ("by columns|small rows", "logistic columns"),
    ],
    "synthesis": [
        (
            "household|keys that are refused|halves of bins|zero among|conditions|bins of a range|"
            "a quality|noisy qualities|drawn again|estimates|intervals|chance taken|"
            "several tables",
            "",
        ),
        ("an added row", "marginals"),
        ("by exact scores", "marginals rounds drawn at 4"),
        ("a round with|first tables do|all others makes", "marginals searched at 8"),
        ("one noise for all releases|scores|by exact scores|in each round", "marginals rounds"),
        ("parities of units", "marginals parities units"),
        ("sum of weights beside", "marginals parities units"),
        ("parities kept by", "marginals parities told"),
        ("fewer columns than differ", "marginals narrow replace"),
        ("agree in a common column", "marginals unlabelled replace"),
        ("parit", "marginals parities"),
        ("exchanged", "marginals replace"),
        ("cell|categories|longest|width|schema|metrics", ""),
        ("", "marginals, marginals add"),
    ],
    "synthesis_classes": [
        ("exchange", "mixture replace, mixture close replace"),
        ("before the ball", "mixture units"),
        ("weights", "mixture weights, mixture"),
        ("round|group.s sum|within|k-means", "mixture rounds"),
        ("groups|shares of the|warnings|single|refusal|beyond|eigen|private number", ""),
        ("not clipped|place of", "mixture close"),
        ("", "mixture"),
    ],
    "unit_steps": [
        ("ledger|prices|runs|splitter|labels|numbers|precision|room", ""),
        ("two chunks", "trees cut units"),
        ("levels of a code", "trees near units"),
        ("two segments", "logistic cut units"),
        ("another unit of a lot", "network cut units"),
        ("not clipped yet", "network broad contrary"),
        ("as they came, not", "network contrary"),
        ("first layer", "network broad units"),
        ("the number of rows", "logistic null units"),
        ("network|products", "network units"),
        ("trees|counts of people|code", "trees units"),
        ("targets|predictions", "tree regressor units"),
        ("long units", "logistic long units"),
        ("rows drawn", "logistic lots units"),
        ("", "logistic units"),
    ],
    "unit_sums": [
        ("products of vectors", "pca opposite units"),
        ("no average of rows", "nb inner replace"),
        ("clips each class", "nb mixed units"),
        ("naive", "nb units, nb mixed units"),
        ("residuals", "inference units"),
        ("components", "pca units"),
        ("images", ""),
        ("exchanged tables|exchanged.*tables", "marginals crossed replace"),
        ("scores", "marginals rounds mixed units, marginals rounds units"),
        ("tables|synthesizer", "marginals units, marginals weights units"),
        ("", "ridge units, pca units"),
    ],
    "units": [
        ("word", "one-hot mixed units"),
        ("one row in each column", "binner units, scaler bought units"),
        ("replaced", "scaler replace units, scaler replace gaps units"),
        ("averages", "marginals replace units at 50"),
        ("reach", "marginals units at 50"),
        ("rehearsed", "pipeline units"),
        ("", "scaler units, one-hot units, marginals units"),
    ],
    "vectorizer": [("less noise|threshold of|without their delta|twice|counted once", "vectorizer, vectorizer text")],
    "weights": [
        ("bins", "binner weights"),
        ("not cut|divided", "ridge weights, nb weights"),
        ("scaler", "scaler weights"),
        ("PCA", "pca weights"),
        ("synthesizer", "marginals weights"),
        ("least squares", "ridge weights"),
        ("several", "classes weights"),
        ("one-hot", "trees weights"),
        ("networks|in a network", "network weights"),
        ("two classes", "logistic weights"),
    ],
    "wgan": [("precision", ""), ("convolutions|images", "wgan images"), ("", "wgan")],
    "wide_linear": [("interrupted|lifts|threads|precision", ""), ("", "logistic wide")],
}
"""By part of the table, patterns of names and the audits of the mutants; the first that fits counts, "" is none."""


BEYOND = {
    "states other events of the same price": (
        "priced as the fit alone|shares of falling|falling noise (priced as|drawn as|that is)|bounds of moments bought|"
        "falling noise of sampled|that was given falls"
    ),
    "moves a release by less than a millionth of its sensitivity, or its law by as little": (
        "place of a row|product of matrices|four deviations|targets that are not cut before|float32|rounding|"
        "are rounded|"
        "rounded (by nothing|to nearest|up|down|scale)|dtype|"
        "lost their digits|vanish|"
        "underflow|not normal|single precision|fastmath|on the threads|grid|gaps (that are|decided|drawn)|"
        "tail of gaps|"
        "uncertain gaps|bits|normals of a pair|open numbers|one radius|whole numbers decided|be exact|sums round|"
        "zeros that|cancel|without the length of their row|room for|without room|cut at 2|residuals alone|"
        "factors that round|regression: weights after the clip"
    ),
    "is seen by a row that is not finite, which is refused or made a null record": (
        "handed on by a private step|NaN|finite|null record|lost rows|mean that is lost|rows of another form|"
        "infin|overflow|muted|one row makes|"
        "not a number|of any length"
    ),
    "tells whoever knows a key, a position or another fit, where an audit sets the keys": (
        "fork|pickled|spawn|looked at|put back|key that is|batch with a key|hash|global generator|last words|"
        "in which they appear|that start at rows|that no row has|drawn from the stream|streams of their steps|"
        "instalment|restart|earlier fit learned|while rows are still|^one stream for sampling"
    ),
    "is of numbers that no estimator hands on": "within a group priced|discrete noise of more steps",
    "adds more noise than is stated": "noise added after the division",
    "is of a release that estimators of others make": "two releases (of a fit|for one charge)",
    "is of draws that are no noise": "left-over normals",
    "is of the price of choosing among tries, a theorem that no attack tests": "the winner priced",
    "makes something else of what was released": (
        "R where R squared|are taken for tables|of its own noise|in the order of their counts"
    ),
    "charges more than what was released costs": "pays for one release twice in its price",
    "is of when a charge is made, and an audit has no ledger": "before its charge|bought after the charge",
    "is a refusal of what an audit does not give": (
        "named twice|more columns than are priced|nearly four times as large|a cache that hands|steps that know no unit"
    ),
    "costs the delta of words that no other row has": (
        "threshold (for|of categories|that costs)|for a threshold|categories bought without"
    ),
    "moves releases by the places of rows in lots, where an audit's record is the last of all": (
        "at other rows|gathered for others|in the place of those|weights of another row in a|where these are stored by"
    ),
    "leaves rows or weights out, or takes others, but no more than is priced": (
        "first blocks of a code alone|entries released at half|counts without a bound on|"
        "off the diagonal counted once|out of its counts|"
        "out of the sum of weights|number of groups as that|that weigh nothing|"
        "forgotten|network forgets|forget copies|Huber's line|dropped|long units left|that are cut at 1|"
        "weights of (least squares|a file|one-hot)|weights that multiply rows|without the weight of|"
        "facts read where|overwritten by the activation|sums is left out|"
        "partition is left out|that are left out|without weights|weights, not|"
        "codes of (one|more)|of another column|share a chain|at the label|"
        "left out of the scores|"
        "first row of a unit kept|errors of targets as they|longer than their bound as they|not clipped to the radius|"
        "logarithms of targets|targets in a file|by columns are not clipped|a gap is an entry|counted once in the norm|"
        "before the clip, (two|several|one|net)|gradients before the clip|to the public norm|norm taken before"
    ),
}
"""Why an audit hears nothing of a mistake, by patterns of names: it has a test of its own."""


def why_beyond(name: str) -> str:
    """Why no audit hears a mistake; empty where it should."""
    return next((reason for reason, pattern in BEYOND.items() if re.search(pattern, name)), "")


def concerned(mutants_of: dict[str, list[Any]]) -> dict[str, list[str]]:
    """The audits of each mutant that an audit should hear, by its name."""
    found = {}
    for part, patterns in CONCERNED.items():
        for each in mutants_of[part]:
            cases = next((cases for pattern, cases in patterns if re.search(pattern, each.name)), "")
            if cases:
                found[each.name] = cases.split(", ")
    return found


# --- what is audited, each as a function of nothing ---


SIZES = {"many": 64, "long": 2048}
ADJACENCIES = {"replace": "replace_one", "add": "add_remove"}
MOST_SECONDS = 60.0
"""No audit of a mutant begins after this time."""


def audit_of(case: str) -> Any:
    """Audit the estimator of a case: a name of `_makers`, and how its tables or parameters differ from the usual."""
    from skdp.audit import audit_estimator, replay

    replay._ENOUGH, replay._PATIENCE = 8_000, 60.0  # normals, and seconds for further canaries: machines are busy
    name = max((each for each in _makers() if f"{case} ".startswith(f"{each} ")), key=len)
    words = case[len(name) :].split()
    settings: dict[str, Any] = {"epsilon": float(words.pop()) if "at" in words else 1.0}
    if adjacencies := [ADJACENCIES[each] for each in words if each in ADJACENCIES]:
        settings["adjacency"] = adjacencies[0]
    estimator = _makers()[name](**settings, **{"weight_bound": 1.0} if "weights" in words else {})
    given = _given(name)
    with warnings.catch_warnings(), _cut_finely() if "cut" in words else nullcontext():
        warnings.simplefilter("ignore")
        if "units" in words:
            size = next((size for word, size in SIZES.items() if word in words), 4)
            given = _of_units(estimator, size, words)
        if "gaps" in words:
            given = _with_gaps(given)
        if "null" in words:
            estimator = _with_null_unit(estimator)
        if "weights" in words:
            estimator, given = _weighted(estimator), _with_weights(estimator, given)
        if "first" in words:
            estimator = _of_turned(estimator)
        return audit_estimator(estimator, **given, max_seconds=300)


def _makers() -> dict[str, Any]:
    from functools import partial

    import numpy as np
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    import skdp
    from skdp.statistics.describer import TableDescriber

    two, unit, target = {"classes": [0, 1]}, {"bounds": (-1.0, 1.0)}, {"y_bounds": (-1.0, 1.0)}
    signs = np.vstack([np.eye(20), -np.eye(20)])
    elsewhere = FrozenEstimator(LogisticRegression().fit(signs, [0] * 20 + [1] * 20))
    logistic, network = partial(skdp.DPLogisticRegression, **two), partial(skdp.DPMLPClassifier, (16,), **two)
    columns = {each: {"kind": "category", "categories": [str(k) for k in range(100)]} for each in "ab"}
    compose = {"strategy": "compose"}
    lengths = skdp.model_selection.PrivateScore("lengths", lambda model, X, y: np.abs(X).max(axis=1), bound=1.0)

    def pipeline(epsilon: float) -> Any:
        from sklearn.pipeline import make_pipeline

        steps = make_pipeline(skdp.DPStandardScaler(**unit), skdp.DPPCA(5), skdp.DPLogisticRegression(**two))
        return skdp.allocate_budget(steps, epsilon)

    def embedded(epsilon: float) -> Any:
        from sklearn.pipeline import make_pipeline

        steps = make_pipeline(skdp.PublicTreesEmbedding(n_estimators=20, **unit), skdp.DPLogisticRegression(**two))
        return skdp.allocate_budget(steps, epsilon)

    return {
        "logistic": partial(logistic, sampling_rate=1.0),
        "logistic lots": partial(logistic, sampling_rate=0.05, max_iter=20),
        "logistic given": lambda epsilon: logistic(epsilon=None, noise_multiplier=40.0, sampling_rate=1.0),
        "logistic few": partial(logistic, sampling_rate=0.005, max_iter=2),
        "logistic grouped": partial(logistic, sampling_rate=0.05, max_iter=20, merge_equal_rows=True),
        "logistic grouped eights": partial(logistic, sampling_rate=0.05, max_iter=20, merge_equal_rows=True),
        "logistic grouped full": partial(logistic, sampling_rate=1.0, merge_equal_rows=True),
        "logistic twins": partial(logistic, sampling_rate=1.0, merge_equal_rows=True),
        "logistic columns": logistic,
        "logistic wide": logistic,
        "dask": partial(logistic, sampling_rate=0.1, max_iter=5),
        "streamed": partial(_mapped(logistic()), **two, sampling_rate=0.05, max_iter=20),
        "filed": partial(_filed(logistic()), **two, sampling_rate=1.0),
        "filed lots": partial(_filed(logistic()), **two, sampling_rate=0.05, max_iter=20),
        "filed passes": partial(_filed(logistic(), 100), **two, sampling_rate=0.05, max_iter=20),
        "ridge filed": partial(_filed(skdp.DPRidge()), **target),
        "classes": partial(skdp.DPLogisticRegression, classes=[0, 1, 2]),
        "newton classes": partial(skdp.DPLogisticRegression, classes=[0, 1, 2], inference=True),
        "poisson": partial(skdp.DPPoissonRegressor, y_bounds=(0.0, 10.0)),
        "newton": partial(logistic, inference=True),
        "ordinal": partial(skdp.DPOrdinalLogisticRegression, classes=[0, 1, 2]),
        "network": network,
        "network lots close": partial(network, sampling_rate=0.43, max_iter=40),
        "network lots": partial(network, sampling_rate=0.43, max_iter=40),  # some of one row more than a block
        "network layers": partial(network, clipping="per_layer"),
        "network bounds": partial(network, clipping="per_layer", max_grad_norm=[1.0, 1.0]),
        "network logarithms": partial(skdp.DPMLPRegressor, (16,), y_bounds=(1.0, 10.0), y_transform="log"),
        "network grouped": partial(network, merge_equal_rows=True),
        "network broad": partial(skdp.DPMLPClassifier, (32,), **two),  # rows are shorter than what comes of them
        "network contrary": partial(network, max_grad_norm=1.0),
        "network broad contrary": partial(skdp.DPMLPClassifier, (32,), **two, max_grad_norm=1.0),
        "network labels": partial(skdp.DPMLPClassifier, (16,)),
        "network classes": partial(skdp.DPMLPClassifier, (16,), classes=[0, 1, 2]),
        "network counts": partial(skdp.DPMLPRegressor, (16,), y_bounds=(0.0, 10.0), loss="poisson"),
        "network huber": partial(skdp.DPMLPRegressor, (16,), **target, loss="huber"),
        "network regressor": partial(skdp.DPMLPRegressor, (16,), **target),
        "trees": partial(skdp.DPRandomTreesClassifier, **two, **unit),
        "trees gaps": partial(skdp.DPRandomTreesClassifier, **two, **unit),
        "trees grouped": partial(skdp.DPRandomTreesClassifier, **two, **unit, merge_equal_rows=True),
        "trees classes": partial(skdp.DPRandomTreesClassifier, classes=[0, 1, 2], **unit),
        "trees lots": partial(skdp.DPRandomTreesClassifier, **two, **unit, sampling_rate=0.05),
        "tree regressor": partial(skdp.DPRandomTreesRegressor, **target, **unit),
        "tree regressor close": partial(skdp.DPRandomTreesRegressor, **target, **unit),
        "ridge": partial(skdp.DPRidge, **target),
        "inference": partial(skdp.DPLinearRegression, (-1.0, 1.0), inference=True),
        "nb": partial(skdp.DPGaussianNB, **two, **unit),
        "nb inner": partial(skdp.DPGaussianNB, **two, **unit),
        "kmeans": partial(skdp.DPKMeans, 3, **unit),
        "kmeans leaf": partial(skdp.DPKMeans, 1, **unit),
        "pca": partial(skdp.DPPCA, 5),
        "pca chunk": partial(skdp.DPPCA, 2),
        "pca spread": partial(skdp.DPPCA, 5),
        "isolation": partial(skdp.DPIsolationForest, **unit),
        "isolation contaminated": partial(skdp.DPIsolationForest, **unit, contamination=0.1),
        "isolation drawn": partial(skdp.DPIsolationForest, **unit, contamination=0.1),
        "scaler": partial(skdp.DPStandardScaler, **unit),
        "scaler bought": skdp.DPStandardScaler,
        "binner": partial(skdp.DPQuantileBinner, 4, **unit),
        "imputer": partial(skdp.DPSimpleImputer, "mean", **unit),
        "one-hot": skdp.DPOneHotEncoder,
        "vectorizer": skdp.DPTableVectorizer,
        "vectorizer text": skdp.DPTableVectorizer,
        "marginals": partial(skdp.DPMarginalSynthesizer, **two, **unit),
        "marginals crossed": partial(skdp.DPMarginalSynthesizer, n_bins=3, **unit),
        "marginals rounds": partial(skdp.DPMarginalSynthesizer, **two, **unit, pairs="select"),
        "marginals rounds drawn": partial(skdp.DPMarginalSynthesizer, **two, **unit, pairs="select"),
        "marginals searched": partial(skdp.DPMarginalSynthesizer, **two, **unit, n_bins=2, rounds=1),
        "marginals parities": partial(skdp.DPMarginalSynthesizer, **two, **unit, parities=True),
        "marginals parities told": partial(skdp.DPMarginalSynthesizer, **two, **unit, parities=True),
        "marginals unlabelled": partial(skdp.DPMarginalSynthesizer, **unit),
        "marginals narrow": partial(skdp.DPMarginalSynthesizer, **two, **unit),
        "marginals bought": partial(skdp.DPMarginalSynthesizer, **two),
        "mixture": partial(skdp.DPClassMixtureGenerator, **two, **unit),
        "mixture close": partial(skdp.DPClassMixtureGenerator, **two, **unit),
        "mixture rounds": partial(skdp.DPClassMixtureGenerator, 4, **two, **unit),
        "wgan": partial(
            skdp.DPWGAN, critic_layer_sizes=16, generator_layer_sizes=16, max_iter=10, **two, **unit
        ),
        "wgan images": partial(
            skdp.DPWGAN, image_shape=(8, 8), capacity=2, generator_layer_sizes=16, max_iter=2, **two, **unit
        ),
        "calibrated": partial(skdp.DPCalibratedClassifier, elsewhere),
        "calibrated fitted": partial(skdp.DPCalibratedClassifier, logistic()),
        "threshold": partial(skdp.DPThresholdClassifier, elsewhere, min_recall=0.5),
        "describer": partial(TableDescriber, columns, correlation=False),
        "describer groups": partial(TableDescriber, columns, by="a", correlation=False),
        "describer sums": partial(
            TableDescriber,
            columns | {each: {"kind": "number", "bounds": (-1.0, 1.0)} for each in "xz"},
        ),
        "describer discrete": partial(TableDescriber, columns, correlation=False, noise="discrete"),
        "pipeline": pipeline,
        "pipeline continued": lambda epsilon: _continued(pipeline(epsilon), "zero_out"),
        "pipeline continued otherwise": lambda epsilon: _continued(pipeline(epsilon), "replace_one"),
        "embedded": embedded,
        "pipeline search": lambda epsilon: skdp.DPGridSearchCV(
            pipeline(epsilon), {"dppca__n_components": [4, 5]}, **compose, epsilon=epsilon
        ),
        "grid search": partial(skdp.DPGridSearchCV, logistic(), {"alpha": [0.0, 0.1]}, **compose),
        "grid search losses": partial(
            skdp.DPGridSearchCV, logistic(), {"alpha": [0.0, 0.1]}, **compose, scoring="neg_log_loss"
        ),
        "grid search lengths": partial(
            skdp.DPGridSearchCV, logistic(), {"alpha": [0.0, 0.1]}, **compose, scoring=lengths
        ),
        "regressor search": partial(skdp.DPGridSearchCV, skdp.DPRidge(**target), {"alpha": [0.1, 1.0]}, **compose),
        "regressor search squares": partial(
            skdp.DPGridSearchCV,
            skdp.DPRidge(**target),
            {"alpha": [0.1, 1.0]},
            **compose,
            scoring="neg_mean_squared_error",
        ),
        "random search": partial(skdp.DPRandomizedSearchCV, logistic(), {"alpha": [0.0, 0.1]}, n_iter=2),
        "random search lots": partial(
            skdp.DPRandomizedSearchCV, logistic(sampling_rate=0.05, max_iter=20), {"alpha": [0.0, 0.1]}, n_iter=2
        ),
    }  # fmt: skip


def _of_units(estimator: Any, size: int, words: list[str]) -> dict[str, Any]:
    """The worst tables with so many rows in a unit: those of one canary in the first, or all canaries in turn.

    Every other row is turned round in opposite ones. Rows of a unit differ in a column each in near ones.
    """
    import numpy as np

    from skdp.audit.worst_case import worst_case

    X, y, _, canaries = worst_case(estimator)
    turns = [(canaries * size)[:size] if "mixed" in words else [each] * size for each in canaries[:2]]
    if "mixed" in words and len(turns) > 1:  # the one that takes the place of the other has the opposite rows
        turns[1] = [each._replace(X=-each.X) for each in turns[1]]
    if "near" in words:
        sides = 1.0 - 2.0 * np.eye(size, X.shape[1])
        turns = [[row._replace(X=row.X * side) for row, side in zip(turn, sides, strict=True)] for turn in turns]
    rows = [row for turn in turns for row in turn]
    turned = -1.0 if "opposite" in words else 1.0
    X = np.concatenate([*(row.X * turned ** (k % 2) for k, row in enumerate(rows)), X])
    y = None if y is None else np.concatenate([*(row.y for row in rows), y])
    is_exchange = estimator.get_params().get("adjacency") == "replace_one"
    return {"X": X, "y": y, "groups": np.arange(len(X)) // size, "canary": (0, size) if is_exchange else 0}


@contextmanager
def _cut_finely() -> Iterator[None]:
    """Cut tables of few rows as those of many are, into segments, blocks of these, and the shares of threads.

    The last unit of four rows lies across the end of a block.
    """
    from unittest.mock import patch

    from skdp import _threads
    from skdp._training.models import linear, network, one_hot

    with (
        patch.multiple(linear, _THREADING_PAYS=1, _SEGMENT_ROWS=64),
        patch.multiple(one_hot, _ROWS=74),
        patch.multiple(network, _SPAN_SIZE=1),
        patch.multiple(_threads, _SHARING_PAYS=1, count_usable_threads=lambda: 2),
    ):
        yield


def _with_gaps(given: dict[str, Any]) -> dict[str, Any]:
    """The tables with gaps in every other column of the first unit, and in the others of the second."""
    import numpy as np

    X, groups = given["X"].copy(), given["groups"]
    for unit in (0, 1):
        X[groups == unit, unit::2] = np.nan
    return given | {"X": X}


def _with_weights(estimator: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The worst tables with a last column of weights; those of the canaries are beyond the bound."""
    import numpy as np

    from skdp.audit.worst_case import Canary, worst_case

    if "groups" in given:
        X = given["X"]
        n_heavy = np.sum(given["groups"] < 2)
        return given | {"X": np.column_stack([X, np.where(np.arange(len(X)) < n_heavy, 5.0, 0.5)])}
    if "canary" in given:
        X, y, chosen = given["X"], given["y"], [Canary(*given["canary"])]
    else:
        X, y, _, canaries = worst_case(estimator)
        chosen = canaries[: 2 if estimator.get_params().get("adjacency") == "replace_one" else 1]
    ends = np.concatenate([each.X for each in chosen])
    rows = np.column_stack([ends, np.full(len(ends), 5.0)])
    canary = rows if y is None else (rows, np.concatenate([each.y for each in chosen]))
    return {"X": np.column_stack([X, np.full(len(X), 0.5)]), "y": y, "canary": canary}


def _fitted_by(kind: type, fit: Any) -> Any:
    """The class of an estimator, with another fit."""
    return type(kind.__name__, (kind,), {"fit": fit, "__init__": kind.__init__})


def _weighted(estimator: Any) -> Any:
    """The estimator, with weights that are the last column of its rows."""
    kind = type(estimator)

    def fit(self: Any, X: Any, y: Any = None, groups: Any = None) -> Any:
        given = (X[:, :-1],) if y is None else (X[:, :-1], y)
        of_units = {} if groups is None else {"groups": groups}
        return kind.fit(self, *given, sample_weight=X[:, -1], **of_units)

    return _fitted_by(kind, fit)(**estimator.get_params(deep=False))


def _of_turned(estimator: Any) -> Any:
    """The estimator, fitted to the last row before all others."""
    import numpy as np

    kind = type(estimator)

    def fit(self: Any, X: Any, y: Any = None) -> Any:
        return kind.fit(self, np.roll(X, 1, axis=0), None if y is None else np.roll(y, 1))

    return _fitted_by(kind, fit)(**estimator.get_params(deep=False))


def _with_null_unit(estimator: Any) -> Any:
    """The estimator, which counts its units: in the place of one that is left out a unit of one row of weight 0 is."""
    import numpy as np

    kind = type(estimator)

    def fit(self: Any, X: Any, y: Any, groups: Any) -> Any:
        weights, missing = np.ones(len(X)), self.n_groups_public - len(np.unique(groups))
        self.n_groups_public = None
        if missing:
            X, y = np.concatenate([X, X[:1]]), np.append(y, y[0])
            weights, groups = np.append(weights, 0.0), np.append(groups, groups.max() + 1)
        return kind.fit(self, X, y, sample_weight=weights, groups=groups)

    return _fitted_by(kind, fit)(**estimator.get_params(deep=False))


def _continued(pipeline: Any, adjacency: str) -> Any:
    """A pipeline, of whose budget a part is for the first step, which is fitted once more; rehearsed on public rows."""
    import numpy as np
    from sklearn.base import clone

    kind = type(pipeline)

    def fit_twice(self: Any, X: Any, y: Any, adjacency: str) -> Any:
        epsilon = self.epsilon
        kind.fit(self.set_params(epsilon=0.6 * epsilon), X, y)
        self[0].set_params(epsilon=0.6 * epsilon, delta=self.delta_, noise_multiplier=None, adjacency=adjacency).fit(X)
        return self.set_params(epsilon=epsilon)

    def fit(self: Any, X: Any, y: Any) -> Any:
        try:
            _ = fit_twice(clone(self), np.zeros((100, X.shape[1])), np.arange(100) % 2, adjacency).epsilon_
        except ValueError:  # two kinds of neighbours have no price
            return fit_twice(self, X, y, "zero_out")
        return fit_twice(self, X, y, adjacency)

    return _fitted_by(kind, fit)(**pipeline.get_params(deep=False))


def _mapped(estimator: Any) -> Any:
    """The class of an estimator, with rows that are read from a file."""
    import tempfile

    import numpy as np

    kind = type(estimator)

    def fit(self: Any, X: Any, y: Any = None) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/rows.npy", X)
            return kind.fit(self, np.load(f"{folder}/rows.npy", mmap_mode="r"), y)

    return _fitted_by(kind, fit)


def _filed(estimator: Any, n_held: int = 0) -> Any:
    """The class of an estimator, with rows that are read from a Parquet file, block by block.

    Lots of more than `n_held` rows together are read in several passes, where it is given.
    """
    import tempfile

    import pandas as pd

    from skdp._training.streamed import streamed_model
    from skdp.datasets import TableRows

    kind = type(estimator)

    def fit(self: Any, X: Any, y: Any = None) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            names = [f"x{k}" for k in range(X.shape[1])]
            pd.DataFrame(X, columns=names).assign(label=y).to_parquet(f"{folder}/rows.parquet")
            if n_held:
                streamed_model.GATHERED_VALUES = n_held * (X.shape[1] + 8)
            return kind.fit(self, TableRows(f"{folder}/rows.parquet"), "label")

    return _fitted_by(kind, fit)


def _given(name: str) -> dict[str, Any]:
    """Tables of a form that `worst_case` does not make."""
    import numpy as np
    import scipy.sparse as sp

    rows = np.where(np.arange(300)[:, None] % 2 == 0, -1.0, 1.0) * np.ones((1, 4))
    labels = np.arange(300) % 2
    if name == "dask":
        import dask
        import dask.array

        dask.config.set(scheduler="synchronous")
        chunks = dask.array.from_array(rows, chunks=(100, 4))
        return {"X": chunks, "y": dask.array.from_array(labels, chunks=100), "canary": (rows[1:2], 0)}
    if name in (
        "mixture close",
        "network lots close",
    ):  # to one another, so that a row at a corner is far out of the ball of most
        return {"X": rows / 20.0, "y": labels, "canary": (8.0 * rows[:2], [0, 0])}
    if name == "marginals rounds drawn":  # pairs that are nearly as good as one another
        rng = np.random.default_rng(0)
        drawn = np.clip(rng.normal(size=(3000, 1)) * 0.3 + rng.normal(size=(3000, 12)) * 0.2, -1.0, 1.0)
        return {"X": drawn, "y": np.arange(3000) % 2, "canary": (8.0 * drawn[1:2], 0)}
    if name == "marginals parities told":  # a label that only three columns together tell
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (3000, 4))
        return {"X": signs, "y": (signs[:, :3].prod(axis=1) > 0).astype(int), "canary": (8.0 * signs[1:2], 0)}
    if name == "marginals narrow":
        return {"X": rows[:, :1], "y": labels, "canary": (8.0 * rows[:2, :1], [0, 1])}
    if name == "kmeans leaf":  # a few rows on one side of the rest, and opposite ones of one leaf among them
        line = np.where(np.arange(20_000)[:, None] % 20 == 0, [-1.0, 0.0], [0.05, 0.0])
        return {"X": line, "canary": np.array([[-0.4, 1.0], [-0.4, -1.0]])}
    if name == "isolation drawn":  # rows of scores of their own
        return {"X": np.random.default_rng(0).uniform(-1.0, 1.0, (400, 4)), "canary": 8.0 * rows[1:2]}
    if name == "logistic twins":  # rows that half of the others are equal to, with either label
        return {"X": rows, "y": labels, "canary": (rows[[1, 1]], np.array([0, 1]))}
    if name == "network labels":  # of which a row contradicts all three
        return {"X": rows, "y": np.zeros((300, 3)), "canary": (rows[1:2], np.ones((1, 3)))}
    if name.endswith("contrary"):  # a unit of a long row, which is clipped, and of short ones that pull against it
        unit = np.array([8.0, 0.1, 0.1, 0.1])[:, None] * np.ones((1, 20))
        groups = np.append(np.zeros(4, int), 1 + np.arange(300) // 4)
        return {
            "X": np.concatenate([unit, np.tile(rows, 5)]), "y": np.append([1, 0, 0, 0], labels), "groups": groups,
            "canary": 0,
        }  # fmt: skip
    if name == "pca chunk":  # the row after these is the last of a chunk
        return {"X": np.tile(rows, (14, 1))[:4095], "canary": rows[:1]}
    if name == "pca spread":
        return {"X": np.random.default_rng(0).uniform(-1, 1, (3000, 20)), "canary": 0}
    if name == "nb inner":  # two units of opposite rows, of which all but the means is short
        opposite = 0.78 * np.concatenate([np.ones((4, 4)), -np.ones((4, 4))])
        X, groups = np.concatenate([opposite, rows]), np.arange(308) // 4
        return {"X": X, "y": np.zeros(308, int), "groups": groups, "canary": (0, 4)}
    if name == "marginals crossed":  # a unit in one cell of two columns, and one in all cells beside it
        cells = [[-1, -1]] * 4 + [[-1, 0], [-1, 1], [0, -1], [1, -1]]
        return {"X": np.concatenate([cells, rows[:, :2]]), "groups": np.arange(308) // 4, "canary": (0, 4)}
    if name == "tree regressor close":  # to one another, so that the target of the canary is far out
        return {"X": np.tile(rows, (10, 1)), "y": np.tile(labels / 50.0, 10), "canary": (rows[:1], 8.0)}
    if name == "marginals searched":  # columns of which three tell what two of them do not
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (3000, 5))
        signs[:, 2] = signs[:, 0] * signs[:, 1]
        return {"X": signs, "y": np.arange(3000) % 2, "canary": (np.ones((1, 5)), 0)}
    if name == "trees gaps":
        gaps = np.where(np.arange(4) % 2 == 0, np.nan, rows)
        return {"X": gaps, "y": labels, "canary": (gaps[1:2], 0)}
    if name == "logistic grouped eights":  # so many copies of each row
        few = np.random.default_rng(0).uniform(-1.0, 1.0, (40, 4))
        return {"X": np.repeat(few, 8, axis=0), "y": np.repeat(np.arange(40) % 2, 8), "canary": (8.0 * few[1:2], 0)}
    if name == "logistic columns":
        rows[0], labels[0] = 3.0, 0
        return {"X": sp.csc_matrix(rows), "y": labels, "canary": 0}
    if name == "logistic wide":
        wide = np.tile(rows, 400)
        return {"X": wide, "y": labels, "canary": (wide[1:2], 0)}
    if name == "network grouped":
        return {"X": rows.astype(np.float32), "y": labels, "canary": (rows[1:2].astype(np.float32), 0)}
    if name == "describer sums":
        import pandas as pd

        ends = pd.DataFrame({"a": ["0", "0"], "b": ["0", "1"], "x": [1.0, -1.0], "z": [1.0, -1.0]})
        return {"X": pd.concat([ends] * 200, ignore_index=True), "canary": ends}
    if name in ("describer", "describer groups", "describer discrete", "vectorizer text"):
        import pandas as pd

        words = pd.DataFrame(np.arange(8000).reshape(4000, 2) % 70, columns=["a", "b"]).astype(str)
        return {"X": words, "canary": 0}
    if name in ("calibrated", "calibrated fitted", "threshold"):
        made = np.random.default_rng(0).uniform(-1, 1, (400, 20))
        return {"X": made, "y": (made[:, 0] > 0).astype(int)}
    return {}


def lines_of(case: str) -> dict[str, Any]:
    """The lines of the package that an audit runs, by file, and how long it takes; each fit is made once.

    Of kernels, which no tracer sees, all lines of the functions that were called.
    """
    import coverage

    measured = coverage.Coverage(data_file=None, source_pkgs=["skdp"], config_file=False)
    measured.start()
    from skdp.audit import replay

    replay.Heard.is_enough, replay._TRAJECTORIES = lambda self: True, 1
    start = time.monotonic()
    audit_of(case)
    seconds = time.monotonic() - start
    measured.stop()
    data, lines = measured.get_data(), {}
    for path in data.measured_files():
        lines["skdp" + path.rpartition("/skdp")[2]] = data.lines(path) or []
    kernels = [each for name, each in sys.modules.items() if name.startswith("skdp._kernels.")]
    for function in (each for module in kernels for each in vars(module).values() if getattr(each, "signatures", ())):
        source, first = inspect.getsourcelines(function.py_func)
        path = "skdp" + inspect.getsourcefile(function.py_func).rpartition("/skdp")[2]
        lines.setdefault(path, []).extend(range(first, first + len(source)))
    return {"case": case, "seconds": seconds, "lines": {path: sorted(each) for path, each in lines.items() if each}}


def cases() -> list[str]:
    """All cases, those of `_makers` and their settings."""
    named = {each for patterns in CONCERNED.values() for _, found in patterns for each in found.split(", ") if each}
    return sorted(named | set(_makers()))


def main() -> None:
    if sys.argv[1] == "--lines":
        try:
            print(json.dumps(lines_of(sys.argv[2])))
        except Exception as error:
            print(json.dumps({"case": sys.argv[2], "error": f"{type(error).__name__}: {error}"[:300]}))
        return
    start = time.monotonic()
    for case in sys.argv[1:]:
        if time.monotonic() - start > MOST_SECONDS:
            break
        try:
            found = audit_of(case)
        except Exception as error:
            print(json.dumps({"case": case, "error": f"{type(error).__name__}: {error}"[:300]}), flush=True)
            continue
        kinds = sorted({each.kind for each in found.findings})
        share = found.epsilon_lower_bound / found.epsilon_claimed
        print(json.dumps({"case": case, "heard": kinds, "share": share, "seconds": found.seconds}), flush=True)
        if kinds:
            break


if __name__ == "__main__":
    main()
