"""Each sentence under *Guarantees* in a docstring has a test, and each test named here a sentence."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re

import pytest

import skdp
from skdp import (
    DPPCA,
    DPCalibratedClassifier,
    DPGridSearchCV,
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPOneHotEncoder,
    DPOrdinalLogisticRegression,
    DPPoissonRegressor,
    DPQuantileBinner,
    DPRidge,
    DPSimpleImputer,
    DPStandardScaler,
    DPThresholdClassifier,
    privacy_report,
)
from skdp._checks.unit_runs import RunReader
from skdp._checks.weights import WeightReader
from skdp._fit.conductor import learn_under_charge
from skdp._kernels.losses import clip_residuals
from skdp._training.dask.distributed_model import DistributedModel
from skdp._training.dask.lots import lots_of_step
from skdp._training.models.columns import ColumnModel
from skdp._training.models.linear import LinearModel
from skdp._training.models.merged_rows import GroupedModel
from skdp._training.models.network import Clip
from skdp._training.models.one_hot import OneHotModel
from skdp._training.models.unit_layout import add_clipped, unit_room
from skdp._training.models.wide_linear import WideLinearModel
from skdp._training.offset import ClassMeans, CountMean, OutcomeCounts, SumOfTerms, TargetMean
from skdp._training.plan import DPSGDPlan
from skdp._training.streamed.memory_map import MappedModel
from skdp._training.streamed.streamed_model import StreamedModel
from skdp.base import PrivateEstimator
from skdp.calibration.table_classifier import TableClassifier
from skdp.cluster.clustering import Clustering
from skdp.cluster.kmeans import DPKMeans
from skdp.cluster.noisy_moments import release_moments as release_moments_of_rows
from skdp.cluster.noisy_steps import run_steps
from skdp.cluster.noisy_tree import grow
from skdp.cluster.rows import SharedNoise, within
from skdp.effects import column_effects, make_monotonic
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor, PublicTreesEmbedding
from skdp.ensemble.isolation_forest import DPIsolationForest
from skdp.ensemble.people import count_people
from skdp.ensemble.target_units import sum_targets
from skdp.evaluation.amounts import amounts_of
from skdp.evaluation.counted import CountedEvaluation
from skdp.evaluation.one_vs_rest import MultilabelEvaluation, OneVsRestEvaluation
from skdp.evaluation.regression import RegressionEvaluation
from skdp.evaluation.scored_rows import ScoredRows
from skdp.export import skops_types, to_onnx, to_sklearn
from skdp.image import PatchTransformer, ScatteringTransformer
from skdp.linear_model.likelihoods import BoundedCounts, Likelihood, Logistic, Multinomial, Ordinal
from skdp.linear_model.newton import BoundRows
from skdp.linear_model.scores import sum_scores
from skdp.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, GaussianMechanism
from skdp.mechanisms.second_moments import MomentSum
from skdp.mechanisms.streams import SecretStream
from skdp.mechanisms.unit_norms import average_units, clip_moments
from skdp.mechanisms.unit_shares import shares_of_units
from skdp.model_selection.cross_validation import cross_validate
from skdp.model_selection.parts import private_train_test_split
from skdp.model_selection.scores import Errors, PrivateScore
from skdp.model_selection.search_plan import SearchPlan
from skdp.model_selection.table_scores import TableScore
from skdp.naive_bayes import DPGaussianNB
from skdp.pipeline import PrivatePipeline
from skdp.plotting import PrivacyUtilityDisplay
from skdp.plotting._study import Study
from skdp.preprocessing import DPTableVectorizer, dp_bounds
from skdp.preprocessing.histograms.bought_bounds import BoughtBounds
from skdp.preprocessing.histograms.counts import CountedColumns
from skdp.statistics import describe
from skdp.statistics.table_release import TableRelease
from skdp.synthesis import DPWGAN, DPClassMixtureGenerator, DPMarginalSynthesizer
from skdp.synthesis.class_mixture.noisy_moments import ClassMeasurement
from skdp.synthesis.class_mixture.row_blocks import ClassRows
from skdp.synthesis.class_mixture.row_sums import ClusterSums, GroupMoments
from skdp.synthesis.gan.convolutions import ConvolutionalModel
from skdp.synthesis.gan.critic import CriticModel, PairModel
from skdp.synthesis.generator import PrivateGenerator
from skdp.synthesis.linking import HouseholdSynthesizer
from skdp.synthesis.marginals.bought_table import TablePurchase
from skdp.synthesis.marginals.contingency_tables import TableSums
from skdp.synthesis.marginals.exchanges import farthest_exchange
from skdp.synthesis.marginals.noisy_tables import Measurement
from skdp.synthesis.marginals.redrawn_tables import Redrawing
from skdp.synthesis.pair_quality import SynthesisEvaluation
from skdp.tabular import TabularPipeline

SENTENCES = {
    learn_under_charge: {
        "The accountant is asked before a row is read, wherever the price does not depend on what is read first: the "
        "number of units, the classes, the bounds of targets, or the shape of rows that show none.": [
            "tests/_fit/test_conductor.py::test_every_fit_asks_and_pays_before_a_row_is_learned_from",
            "tests/_fit/test_conductor.py::test_above_the_ceiling_no_row_is_read",
        ],
        "The charge is made before training reads a row.": [
            "tests/_fit/test_conductor.py::test_every_fit_asks_and_pays_before_a_row_is_learned_from",
            "tests/_fit/test_conductor.py::test_every_fit_to_words_asks_and_pays_before_a_row_is_learned_from",
        ],
        "Rows are checked before it, or read after it.": [
            "tests/_fit/test_conductor.py::test_every_fit_asks_and_pays_before_a_row_is_learned_from",
            "tests/_training/streamed/test_streaming.py::test_the_charge_precedes_the_first_block",
        ],
        "A refusal of rows is recorded.": ["tests/_fit/test_conductor.py::test_a_refusal_of_rows_is_recorded"],
        "A fit that fails or is interrupted after the charge keeps it.": [
            "tests/_fit/test_conductor.py::test_a_fit_that_fails_is_charged_if_it_may_have_learned_and_publishes_nothing",
        ],
    },
    PrivateEstimator: {
        "Parameters are checked and the accountant is asked before a row is read; rows in memory are checked before "
        "the charge; the charge is made before training reads a row.": [
            "tests/test_guarantees_charges.py::test_the_charge_stands_before_training_sees_the_rows",
            "tests/test_guarantees_charges.py::test_training_never_sees_the_rows_of_a_fit_above_the_ceiling",
            "tests/_fit/test_refusals.py::test_parameters_and_ceiling_are_looked_at_before_the_rows",
            "tests/_fit/test_refusals.py::test_rows_are_refused_before_the_charge_and_the_ledger_notes_it",
        ],
        "``fit`` works on a copy and publishes what it learned in one assignment: after an error or an interrupt at "
        "any line the estimator is what it was or what it became, each with its own price.": [
            "tests/_fit/test_releases.py::test_a_refit_that_is_refused_leaves_the_old_state_and_its_price",
            "tests/_fit/test_releases.py::test_an_interrupt_at_any_line_leaves_no_state_that_costs_more_than_it_says",
            "tests/_fit/test_releases.py::test_an_interrupt_at_any_line_of_an_instalment_is_paid_for",
        ],
        "A fit that fails or is interrupted later keeps its charge.": [
            "tests/test_guarantees_charges.py::test_an_aborted_fit_keeps_its_charge_and_publishes_nothing",
            "tests/test_guarantees_charges.py::test_an_aborted_instalment_leaves_the_model_before_it",
        ],
        "`epsilon_` prices jointly every event on which the fitted state depends, `privacy_event_`, at `delta_`.": [
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        '``delta="auto"`` is the delta of the accountant, or a function of the public number of rows.': [
            "tests/_checks/test_default_delta.py::test_each_follows_the_rule_and_no_row",
            "tests/_checks/test_default_delta.py::test_each_takes_the_delta_of_its_ledger_and_writes_down_the_number",
        ],
        "Under ``add_remove`` that is `n_samples_public`.": [
            "tests/_checks/test_default_delta.py::test_under_add_remove_the_number_of_rows_has_no_say",
        ],
        "It does not increase with the number of rows, and stays the same over all instalments.": [
            "tests/_checks/test_default_delta.py::test_the_rule_does_not_increase_and_stays_well_below_one_record",
            "tests/_checks/test_default_delta.py::test_instalments_keep_the_first_delta",
        ],
        "What ``fit`` publishes besides noisy parameters is a function of constructor parameters, of public shape and "
        "names (the number of rows included, but for ``add_remove``) and of the classes.": [
            "tests/test_guarantees_charges.py::test_fit_publishes_what_is_on_the_list",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_removing_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_plan_and_price_under_add_remove_do_not_see_the_number_of_rows",
        ],
    },
    DPLogisticRegression: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is "
        "given and `random_state` is None.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_exchanging_a_row_moves_releases_by_twice_the_clip",
            "tests/test_guarantees_noise.py::test_spread_of_the_release_on_null_records_is_that_of_the_price",
            "tests/test_guarantees_noise.py::test_every_step_adds_noise_of_its_own",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_in_single_precision",
            "tests/test_guarantees_neighbours.py::test_copies_of_a_row_move_the_sum_by_so_many_clips",
            "tests/linear_model/test_embedded_rows.py::test_one_row_moves_releases_by_the_clip",
        ],
        "Rows of `skdp.PublicTreesEmbedding` are compared with the public form that came along, one by one: a "
        "row of another form is a null row.": [
            "tests/linear_model/test_embedded_rows.py::test_each_row_is_held_to_the_form_for_itself",
            "tests/linear_model/test_embedded_rows.py::test_a_row_of_another_form_is_a_null_row",
            "tests/linear_model/test_embedded_rows.py::test_nothing_says_how_many_rows_have_another_form",
        ],
        "With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and "
        "the sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
            "tests/test_guarantees_units.py::test_the_price_is_that_of_rows",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "tests/test_guarantees_noise.py::test_sums_are_divided_by_the_public_number_of_rows",
            "tests/test_guarantees_noise.py::test_spread_of_the_release_on_null_records_is_that_of_the_price",
        ],
        "`intercept_` is that of the last step, moved by a function of sums over the rows, of probabilities and of "
        "what these lack, which are released once, with noise, after the last step.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_sums_are_of_the_published_model_and_priced",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "A first run starts at scores that are a function of the counts of the classes, which are released once, with "
        "noise, before the first step.": [
            "tests/_training/test_offset.py::test_run_starts_at_released_class_counts",
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "Counts and sums have 1 % of mu**2 of a fit to all rows each, sums without counts 2 %, and are part of "
        "`privacy_event_`.": [
            "tests/_training/test_offset.py::test_means_are_bought_where_an_intercept_and_the_loss_fit_them",
            "tests/_training/test_offset.py::test_sums_are_of_the_published_model_and_priced",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "With `inference` one row moves the score and the curvature that a step releases, taken together, by a norm of "
        "1 at most, whatever it and its weight contain; with `groups` so do all rows of a label.": [
            "tests/linear_model/test_newton.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_newton.py::test_score_and_curvature_are_together_no_longer_than_one",
            "tests/linear_model/test_newton_many_classes.py::test_score_and_curvature_are_together_no_longer_than_one",
            "tests/linear_model/test_newton_many_classes.py::test_a_unit_of_many_rows_adds_no_more_than_one",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "Nothing is clipped, but longer rows are scaled down to `data_norm_`.": [
            "tests/linear_model/test_newton.py::test_without_noise_it_is_maximum_likelihood_with_the_sandwich",
            "tests/linear_model/test_newton.py::test_a_unit_is_weighted_by_its_rows_and_never_by_its_targets",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the "
        "steps done.": [
            "tests/test_guarantees_charges.py::test_the_charge_stands_before_training_sees_the_rows",
            "tests/linear_model/test_logistic_runs.py::test_interrupted_fit_keeps_model_and_full_charge",
            "tests/linear_model/test_logistic_runs.py::test_interrupted_model_is_that_of_the_steps_done",
        ],
        "Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge, or "
        "after it in the block that holds it if the rows are not in memory.": [
            "tests/_training/streamed/test_streaming.py::test_a_fault_in_a_block_is_one_line_and_the_charge_stands",
            "tests/linear_model/test_logistic_input.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "tests/test_guarantees_neighbours.py::test_refusals_that_lie_in_the_data_are_the_documented_ones",
        ],
    },
    PublicTreesEmbedding: {
        "``fit`` reads shape, names and types of the table and no cell.": [
            "tests/ensemble/test_embedding.py::test_a_fit_reads_no_cell_and_costs_nothing",
        ],
        "Trees are a function of schema, parameters and seed, so that the embedding is a public step: it has no event, "
        "and is free.": [
            "tests/ensemble/test_embedding.py::test_trees_do_not_follow_the_rows",
            "tests/ensemble/test_embedding.py::test_the_seed_is_public_and_gives_the_same_trees_again",
            "tests/ensemble/test_embedding.py::test_it_is_a_step_that_reads_nothing",
            "tests/ensemble/test_embedding.py::test_a_budget_goes_to_the_private_steps_alone",
        ],
        "``transform`` treats rows one by one: a row of the output is a function of that row, of the schema, of the "
        "seed and of public types.": [
            "tests/ensemble/test_embedding.py::test_one_row_changes_its_own_row_and_nothing_else",
            "tests/ensemble/test_embedding.py::test_a_row_alone_is_the_row_among_others",
            "tests/ensemble/test_embedding.py::test_all_kinds_of_tables_give_the_same_rows",
        ],
        "Each row has one entry for each plain column and one for each tree, whose values do not depend on the row.": [
            "tests/ensemble/test_embedding.py::test_the_pattern_of_a_row_does_not_depend_on_the_row",
        ],
        "Its norm is at most 1, and at least 1 - 2 ** -23.": [
            "tests/ensemble/test_embedding.py::test_every_row_has_the_norm_1_and_none_is_longer",
        ],
        "The norm and the form that rows carry follow from schema and parameters.": [
            "tests/linear_model/test_embedded_rows.py::test_the_form_says_what_all_rows_are",
        ],
        "A refusal is one line without a cell.": [
            "tests/ensemble/test_embedding.py::test_a_bad_table_is_refused_by_one_line_without_a_cell",
            "tests/ensemble/test_embedding.py::test_a_bad_parameter_is_refused_by_one_line",
        ],
    },
    PatchTransformer: {
        "``fit`` reads shape, names and types of the table and no pixel.": [
            "tests/image/test_patches.py::test_a_fit_reads_no_pixel_and_costs_nothing",
        ],
        "The transformer is a public step: it has no event, and is free.": [
            "tests/image/test_patches.py::test_it_is_a_step_that_reads_nothing",
            "tests/image/test_patches.py::test_a_budget_goes_to_the_private_step_alone",
        ],
        "``transform`` treats images one by one: a row of the output is a function of that image and of the "
        "parameters, in every bit.": [
            "tests/image/test_patches.py::test_one_image_changes_its_own_row_and_nothing_else",
            "tests/image/test_patches.py::test_an_image_alone_is_the_image_among_others",
        ],
        "Filters are drawn from the seed, and whitening is learned from images that are made up.": [
            "tests/image/test_patches.py::test_filters_follow_the_seed",
            "tests/image/test_patches.py::test_filters_are_white_on_made_up_patches",
        ],
        "Every row has the norm sqrt(n_features), within rounding; it is 0 for an image without any response above the "
        "threshold.": [
            "tests/image/test_patches.py::test_rows_have_one_norm",
            "tests/image/test_patches.py::test_an_image_without_contrast_is_a_row_of_zeros",
        ],
        "The norm is the default clip of private estimators, whether or not they stand in a pipeline.": [
            "tests/image/test_patches.py::test_a_budget_goes_to_the_private_step_alone",
        ],
        "A refusal is one line without a pixel.": [
            "tests/image/test_patches.py::test_what_is_refused_is_refused_by_one_line_without_a_pixel",
        ],
    },
    ScatteringTransformer: {
        "``fit`` reads shape, names and types of the table and no pixel.": [
            "tests/image/test_scattering.py::test_a_fit_reads_no_pixel_and_costs_nothing",
        ],
        "The transformer is a public step: it has no event, and is free.": [
            "tests/image/test_scattering.py::test_it_is_a_step_that_reads_nothing",
            "tests/image/test_scattering.py::test_a_budget_goes_to_the_private_step_alone",
        ],
        "``transform`` treats images one by one: a row of the output is a function of that image and of the "
        "parameters, in every bit.": [
            "tests/image/test_scattering.py::test_one_image_changes_its_own_row_and_nothing_else",
            "tests/image/test_scattering.py::test_an_image_alone_is_the_image_among_others",
        ],
        "Images that whitening is learned from are made up: they are the same at each fit, and depend on nothing but "
        "the shape of an image and on parameters.": [
            "tests/image/test_scattering.py::test_whitening_is_learned_from_made_up_images",
            "tests/image/test_scattering.py::test_a_fit_reads_no_pixel_and_costs_nothing",
        ],
        'Unless ``normalization=None``, every row has the norm sqrt(n_features), within rounding; with "groups" it is '
        "0 for an image without any contrast.": [
            "tests/image/test_scattering.py::test_groups_have_mean_0_variance_1_and_rows_one_norm",
            "tests/image/test_scattering.py::test_rows_have_one_norm",
            "tests/image/test_scattering.py::test_an_image_without_contrast_is_a_row_of_zeros",
        ],
        "It is the default clip of private estimators, whether or not they stand in a pipeline.": [
            "tests/image/test_scattering.py::test_a_budget_goes_to_the_private_step_alone",
        ],
        "A refusal is one line without a pixel.": [
            "tests/image/test_scattering.py::test_what_is_refused_is_refused_by_one_line_without_a_pixel",
        ],
    },
    CountedColumns: {
        "The counts of m columns are nonnegative, and what one row adds to them, or one unit, has a norm of at most "
        "sqrt(m).": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_count_and_no_sum_by_more_than_its_sensitivity",
            "tests/test_guarantees_units.py::test_a_unit_of_weighted_rows_moves_nothing_by_more",
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_moves_each_round_by_its_sensitivity_at_most",
        ],
        "A unit of one row adds what the row adds.": [
            "tests/test_guarantees_units.py::test_units_of_one_row_buy_what_rows_do",
        ],
    },
    DPTableVectorizer: {
        "With `groups` all of this holds for all rows of one label together: of the numbers of a unit no more is "
        "counted than of one row, and of its categories one row in each column, drawn at random.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_count_and_no_sum_by_more_than_its_sensitivity",
            "tests/test_guarantees_units.py::test_a_unit_adds_one_to_one_word_of_each_column",
            "tests/test_guarantees_units.py::test_the_row_that_is_kept_is_drawn_evenly_and_has_no_gap",
        ],
        "Which columns a release counts follows from the schema, public types and public numbers of rows and noise. "
        "Where rows are few these are fewer columns, with less noise at the same price: no bins within public bounds, "
        "or no categories beside numbers, whose columns `schema_` then drops.": [
            "tests/preprocessing/test_skewed_columns.py::test_one_record_changes_bin_counts_by_the_sensitivity",
            "tests/preprocessing/test_skewed_columns.py::test_few_rows_drop_categories_beside_numbers",
            "tests/preprocessing/test_skewed_columns.py::test_few_rows_estimate_no_bins_within_bounds",
        ],
        "``transform`` knows no units.": [
            "tests/test_guarantees_units.py::test_a_raw_table_is_fitted_for_households",
        ],
        "With a complete schema and ``fit_bins=False``, ``fit`` reads shape, names and types of the table and no "
        "cell.": [
            "tests/preprocessing/test_vectorizer.py::test_a_complete_schema_reads_no_cell_and_pays_nothing",
        ],
        "``transform`` treats rows one by one: a row of the output is a function of that row, of the schema and of "
        "public types.": [
            "tests/preprocessing/test_vectorizer.py::test_rows_are_those_of_the_plain_reading",
            "tests/preprocessing/test_vectorizer_input.py::test_one_row_changes_its_own_row_and_nothing_else",
        ],
        "It does not depend on whether a gap elsewhere made a library store integers as floats, or booleans as "
        "objects.": [
            "tests/preprocessing/test_vectorizer_input.py::test_the_type_of_storage_changes_nothing",
            "tests/preprocessing/test_vectorizer_input.py::test_the_type_of_storage_of_flags_changes_nothing",
            "tests/preprocessing/test_vectorizer_input.py::test_numbers_as_categories_have_one_key_whatever_their_type",
        ],
        "A fit that buys is (`epsilon_`, `delta_`)-differentially private for one row.": [
            "tests/preprocessing/test_vectorizer_input.py::test_one_row_changes_its_own_row_and_nothing_else",
            "tests/preprocessing/test_vectorizer.py::test_the_noise_of_a_purchase_is_what_was_priced",
            "tests/preprocessing/test_vectorizer.py::test_a_purchase_is_charged_once_at_the_price_that_is_stated",
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_moves_each_round_by_its_sensitivity_at_most",
        ],
        "Its release, sensitivity and proof are those of `skdp.preprocessing.histograms.purchase.Purchase`; everything "
        "else is post-processing.": [
            "tests/preprocessing/test_vectorizer.py::test_the_noise_of_a_purchase_is_what_was_priced",
            "tests/preprocessing/test_vectorizer_input.py::test_one_row_changes_its_own_row_and_nothing_else",
        ],
        "Kinds of columns come from the schema, else from their types: numeric columns, nullable or not, are numbers, "
        "dates are dates, anything else is a category, truth values too (of which one gap makes objects).": [
            "tests/preprocessing/test_vectorizer_input.py::test_kinds_come_from_types_and_not_from_cells",
            "tests/preprocessing/test_vectorizer_input.py::test_the_type_of_storage_changes_nothing",
        ],
        "A list of rows has no types, so its columns are numbers.": [
            "tests/preprocessing/test_vectorizer_input.py::test_a_list_of_rows_has_no_types_and_so_no_words",
        ],
        "Categories are never read from a type.": [
            "tests/preprocessing/test_vectorizer_input.py::test_only_keys_that_occur_are_counted",
            "tests/preprocessing/test_vectorizer_input.py::test_the_type_of_storage_changes_nothing",
        ],
        '``numbers="auto"`` is decided by the columns, as they are in `schema_`, and by public numbers: under '
        "``add_remove`` not by the number of rows, but by `n_samples_public`.": [
            "tests/test_tabular.py::test_the_rule_knows_no_private_number_of_rows",
            "tests/test_tabular.py::test_bins_where_rows_and_budget_are_enough_for_them",
            "tests/test_tabular.py::test_alone_it_scales",
        ],
        "The price depends on parameters alone. Where the types decide whether categories are bought, it is that of "
        "buying them.": [
            "tests/preprocessing/test_vectorizer.py::test_the_price_depends_on_parameters_and_not_on_what_types_leave_to_buy",
        ],
        "A refusal is one line without a cell, and is not charged. Refused are tables without rows or columns, "
        "columns of one name, complex numbers, and nested cells.": [
            "tests/preprocessing/test_vectorizer_input.py::test_a_bad_table_is_refused_by_one_line_without_a_cell_and_without_a_charge",
            "tests/preprocessing/test_vectorizer_input.py::test_what_transform_refuses_shows_no_cell_either",
            "tests/preprocessing/test_vectorizer_input.py::test_drawn_frames_go_through_fit_and_predict",
        ],
        "Months and weekdays of a date are functions of its own cell and of the schema: they cost nothing.": [
            "tests/preprocessing/schema/test_date_parts.py::test_they_cost_nothing_and_a_row_changes_its_own",
            "tests/preprocessing/schema/test_date_parts.py::test_a_date_that_is_bought_has_them_at_the_same_price",
        ],
        "Each row has one 1 in each block, parts of a date included (or one number in [-1, 1], or both for "
        '``numbers="both"``): its norm is at most the root of the number of these entries, with equality for bins.': [
            "tests/preprocessing/test_vectorizer.py::test_the_norm_of_a_row_is_at_most_the_one_that_is_stated",
            "tests/preprocessing/schema/test_date_parts.py::test_each_part_has_one_entry_and_counts_in_the_norm",
        ],
        "Codes are bought like bins, at the same price and with the same noise. The schema that they carry is a "
        "function of `schema_`.": [
            "tests/preprocessing/test_codes.py::test_codes_are_bought_like_bins",
            "tests/preprocessing/test_codes.py::test_trees_of_a_bought_schema_are_post_processing",
        ],
    },
    average_units: {
        "What a unit adds to any sum is in `limit` times the convex hull of zero and what one row can add.": [
            "tests/mechanisms/test_unit_norms.py::test_weights_of_units_add_up_to_one_at_most_and_reach_that",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
    },
    clip_moments: {
        "The sum of w z z' over a unit, with the weights w that are returned, has a Frobenius norm of at most 1.": [
            "tests/mechanisms/test_unit_norms.py::test_moments_of_units_are_no_longer_than_those_of_a_row_and_reach_that",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "Two such sums differ by at most sqrt(2).": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
    },
    Likelihood: {
        "A row adds its score (t - mean) z and c slope z z' to a release: a vector of norm at most 1, whatever the "
        "row, its target and the coefficients are, so that nothing is ever clipped.": [
            "tests/linear_model/test_newton.py::test_score_and_curvature_are_together_no_longer_than_one",
            "tests/linear_model/test_newton.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
        ],
    },
    Multinomial: {
        "See `Likelihood`; the curvature costs nothing.": [
            "tests/linear_model/test_newton_many_classes.py::test_score_and_curvature_are_together_no_longer_than_one",
            "tests/linear_model/test_newton_many_classes.py::"
            "test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
        ],
    },
    Logistic: {
        "See `Likelihood`; the curvature costs nothing.": [
            "tests/linear_model/test_newton.py::test_score_and_curvature_are_together_no_longer_than_one"
        ]
    },
    BoundedCounts: {
        "See `Likelihood`; the curvature costs nothing.": [
            "tests/linear_model/test_newton.py::test_score_and_curvature_are_together_no_longer_than_one"
        ]
    },
    Ordinal: {
        "A row adds its part of the score, c times that of the curvature and r times its class to a release: a vector "
        "of norm at most 1 after a division by sqrt(1 + r**2), whatever the row, its target and the coefficients "
        "are.": [
            "tests/linear_model/test_newton_ordinal.py::test_a_row_adds_no_more_than_one_wherever_the_thresholds_are",
            "tests/linear_model/test_newton_ordinal.py::test_the_bound_is_reached_by_each_of_its_parts",
        ]
    },
    BoundRows: {
        "A row adds to `sums` a vector of norm 1 at most, and nothing if its weight is 0.": [
            "tests/linear_model/test_newton.py::test_a_row_of_weight_0_adds_nothing_and_others_in_proportion",
            "tests/linear_model/test_newton.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
        ],
        "So does a unit: its rows have a share that depends on their lengths and weights alone, and on no target.": [
            "tests/linear_model/test_newton.py::test_a_unit_is_weighted_by_its_rows_and_never_by_its_targets",
            "tests/linear_model/test_newton_ordinal.py::test_a_unit_of_many_rows_adds_no_more_than_one",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
    },
    DPPoissonRegressor: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is "
        "None and `y_bounds` is given.": [
            "tests/linear_model/test_newton.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_newton.py::test_the_noise_of_each_release_is_that_which_is_priced",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "One row moves the score and the curvature that a step releases, taken together, by a norm of 1 at most, in "
        "units of the largest count, whatever it and its weight contain; with `groups` so do all rows of a label.": [
            "tests/linear_model/test_newton.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_newton.py::test_score_and_curvature_are_together_no_longer_than_one",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "All that is fitted is a function of six noisy releases and of public quantities.": [
            "tests/linear_model/test_newton.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "tests/linear_model/test_newton.py::test_an_interrupt_leaves_the_steps_that_are_done_and_the_whole_charge",
        ],
    },
    DPOrdinalLogisticRegression: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is "
        "None and `classes` is given.": [
            "tests/linear_model/test_newton_ordinal.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_newton_ordinal.py::test_the_noise_of_each_release_is_that_which_is_priced",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "One row moves the score, the curvature and the counts that a step releases, taken together, by a norm of 1 at "
        "most, whatever it and its weight contain; with `groups` so do all rows of a label.": [
            "tests/linear_model/test_newton_ordinal.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_newton_ordinal.py::test_a_row_adds_no_more_than_one_wherever_the_thresholds_are",
            "tests/linear_model/test_newton_ordinal.py::test_a_unit_of_many_rows_adds_no_more_than_one",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "All that is fitted is a function of six noisy releases and of public quantities.": [
            "tests/linear_model/test_newton_ordinal.py::test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "tests/linear_model/test_newton.py::test_an_interrupt_leaves_the_steps_that_are_done_and_the_whole_charge",
        ],
    },
    sum_scores: {
        "A unit adds x x' with a norm of x of at most 1 to the sum, whatever its rows, its weights and `how` are; one "
        "whose rows have weight 0 adds nothing.": [
            "tests/linear_model/test_inference.py::test_one_row_moves_both_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_inference.py::test_a_row_reaches_the_sensitivity_of_scores",
        ],
        "What it adds depends on its own rows alone.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
    },
    TableSums.clip_units: {
        "The rows of a unit together change `vector` by at most `reach`, 1 or more, times what one row may under "
        "``zero_out``.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_units_add_no_more_than_their_reach_and_reach_that",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "A unit of one row keeps its weight.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_units_add_no_more_than_their_reach_and_reach_that",
        ],
    },
    SharedNoise: {
        "`release` adds the noise of a share of mu**2: its event is that of `noise_multiplier` divided by"
        " the root of the share.": [
            "tests/cluster/test_kmeans.py::test_the_noise_is_as_priced",
        ],
        "Releases whose shares add up to 1 compose to one of `noise_multiplier`, also where "
        "what is released is chosen by earlier releases.": [
            "tests/cluster/test_kmeans.py::test_the_event_is_worth_one_release",
        ],
    },
    within: {
        "No vector is longer than 1, rounding included, and none is more than 1 in its squared norm.": [
            "tests/cluster/test_kmeans.py::test_no_offset_is_longer_than_one",
        ],
    },
    release_moments_of_rows: {
        "The rows have a say by one Gaussian release of this share alone.": [
            "tests/cluster/test_kmeans.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
        ],
    },
    grow: {
        "The rows have a say by `levels` Gaussian releases, of `COUNTS` / `levels` of the share each, and"
        " one of the rest of it.": [
            "tests/cluster/test_kmeans.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
        ],
        "A tree that ends early makes fewer.": [
            "tests/cluster/test_kmeans.py::test_releases_are_no_more_than_the_event_has",
        ],
    },
    run_steps: {
        "The rows have a say by `n_steps` Gaussian releases, of equal parts of the share.": [
            "tests/cluster/test_kmeans.py::test_no_row_exceeds_the_sensitivity_of_a_step_and_the_worst_reaches_it",
            "tests/cluster/test_kmeans.py::test_the_noise_is_as_priced",
        ],
    },
    Clustering: {
        "`find` makes the releases whose event `event_at` states for their noise multiplier, or fewer.": [
            "tests/cluster/test_kmeans.py::test_releases_are_no_more_than_the_event_has",
            "tests/cluster/test_kmeans.py::test_the_event_is_worth_one_release",
        ],
        "All that it returns is a function of these releases, of its coins and of public numbers.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
        ],
    },
    BoughtBounds: {
        "Bounds that are bought are a function of what a "
        "`skdp.preprocessing.histograms.purchase.Purchase` releases, and of public numbers, and what that"
        " costs is part of `event_beside`.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/cluster/test_kmeans.py::test_bought_bounds_hold_the_rows",
        ],
    },
    DPIsolationForest: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if "
        "`random_state` is None.": [
            "tests/ensemble/test_isolation_forest.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
            "tests/ensemble/test_isolation_forest.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
        ],
        "All that is fitted is a function of one noisy release, of trees and coins that no row decides, and of "
        "public quantities.": [
            "tests/ensemble/test_isolation_forest.py::test_trees_are_those_of_the_public_seed_and_no_row_decides_them",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are counted, and what is refused is refused before any charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "tests/ensemble/test_isolation_forest.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
        ],
        "With `groups` all of this holds for all rows of one label together: what they add up to is clipped to "
        "the norm of what one row adds.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
            "tests/ensemble/test_isolation_forest.py::test_weights_and_units_are_what_is_counted",
        ],
    },
    DPKMeans: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if "
        "`random_state` is None.": [
            "tests/cluster/test_kmeans.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/cluster/test_kmeans.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
        ],
        "All that is fitted is a function of noisy releases, of coins that no row decides, and of public quantities.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are summed, and what is refused is refused before any charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "tests/cluster/test_kmeans.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
            "tests/cluster/test_kmeans.py::test_no_row_exceeds_the_sensitivity_of_a_step_and_the_worst_reaches_it",
        ],
        "With `groups` all of this holds for all rows of one label together: their weights are scaled "
        "down to add up to 1 at most, so that a group counts as an average of its rows.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
            "tests/cluster/test_kmeans.py::test_weights_and_units_decide_where_centers_are",
        ],
    },
    DPGaussianNB: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is given "
        "and `random_state` is None.": [
            "tests/test_naive_bayes.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
            "tests/test_naive_bayes.py::test_the_worst_row_reaches_the_sensitivity_and_none_exceeds_it",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "tests/test_naive_bayes.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "All that is fitted is a function of one noisy release and of public quantities.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are summed, and what is refused is refused before any charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "tests/test_naive_bayes.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
            "tests/test_naive_bayes.py::test_the_worst_row_reaches_the_sensitivity_and_none_exceeds_it",
        ],
        "With `groups` all of this holds for all rows of one label together: what they add up to is clipped to what "
        "one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
    },
    PrivateGenerator: {
        "``sample`` is a function of what was fitted and of its own `random_state`: it costs nothing, however often it "
        "is called.": [
            "tests/synthesis/test_generator.py::test_samples_of_none_of_many_and_of_a_seed",
            "tests/synthesis/test_generator.py::test_the_draws_of_samples_have_no_part_in_the_noise_of_the_fit",
        ],
        "Noise of the fit is not drawn from that `random_state`.": [
            "skdp/testing/releases.py::check_noise_has_its_law",
            "tests/synthesis/test_generator.py::test_the_draws_of_samples_have_no_part_in_the_noise_of_the_fit",
        ],
        "Labels of samples are drawn uniformly, by public shares, or by the noisy counts that the fit paid for; never "
        "by exact counts.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_labels_are_drawn_by_noisy_or_public_shares",
        ],
        "They are those of the fit, whatever becomes of the parameters.": [
            "tests/synthesis/test_generator.py::test_samples_have_the_shares_of_the_fit_whatever_becomes_of_the_parameters",
        ],
    },
    TableSums: {
        "A row changes `vector` by at most `sensitivity` in Euclidean norm.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_every_row_reaches_the_sensitivity_and_no_exchange_exceeds_it",
            "tests/synthesis/marginals/test_synthesizer.py::test_an_exchange_reaches_the_sensitivity_of_a_single_table",
        ],
    },
    farthest_exchange: {
        "No two rows change the interactions by a larger squared norm than twice the result.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_every_row_reaches_the_sensitivity_and_no_exchange_exceeds_it",
            "tests/synthesis/marginals/test_synthesizer.py::test_bounds_of_an_exchange_hold_for_every_difference",
        ],
    },
    SynthesisEvaluation: {
        "One row, or one unit, changes all distances together by no more than is priced, and everything that is shown "
        "is a function of the noisy distances and of public numbers.": [
            "tests/synthesis/test_pair_quality.py::test_a_row_or_a_unit_moves_the_release_by_its_sensitivity_and_nothing_else",
            "tests/synthesis/test_pair_quality.py::test_the_noise_is_as_priced",
        ],
    },
    Measurement: {
        "`measure`, with `shapes` where its terms have them, makes the releases whose event `event_of` states for its "
        "noise multiplier.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_the_noise_is_as_priced",
        ],
        "All that it returns is a function of these releases and of public numbers.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
        ],
        "A unit moves each of them by at most `reach` times what one row may, and the noise is `reach` times as "
        "large.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_noise_of_units_is_as_many_times_larger_as_their_reach",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
    },
    TablePurchase: {
        "Bounds, bins and categories are released by `skdp.preprocessing.histograms.purchase.Purchase`, whose proof "
        "they have; its event is a part of the fit's.": [
            "tests/synthesis/marginals/test_bought_table.py::test_one_row_moves_no_release_further_than_it_is_priced",
            "tests/synthesis/marginals/test_bought_table.py::test_the_purchase_is_priced",
        ],
        "The tables of counts are those of a fit with that schema, which is public once it is bought (adaptive "
        "composition).": [
            "tests/synthesis/marginals/test_bought_table.py::test_one_row_moves_no_release_further_than_it_is_priced",
        ],
        "Every cell has a level of a bought column, so no row is refused for what was bought.": [
            "tests/synthesis/marginals/test_bought_table.py::test_a_raw_table_is_synthesized_in_one_line",
            "tests/synthesis/marginals/test_bought_table.py::test_what_was_bought_is_accepted_by_the_next_step",
        ],
    },
    DPMarginalSynthesizer: {
        "What the schema leaves out is bought in the same fit: its release is part of `privacy_event_`, and no row is "
        "refused for what was bought.": [
            "tests/synthesis/marginals/test_bought_table.py::test_the_purchase_is_priced",
            "tests/synthesis/marginals/test_bought_table.py::test_a_raw_table_is_synthesized_in_one_line",
        ],
        "With `groups` all of this holds for all rows of one label together: what they add up to is clipped to a "
        "public multiple of what one row may add, by which the noise is larger.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_noise_of_units_is_as_many_times_larger_as_their_reach",
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_no_two_weighted_rows_exceed_the_sensitivity",
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
        ],
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, its label included, under `adjacency`, "
        "if `random_state` is None, and `classes` is given or there are no labels.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/synthesis/marginals/test_synthesizer.py::test_every_row_reaches_the_sensitivity_and_no_exchange_exceeds_it",
            "tests/synthesis/marginals/test_synthesizer.py::test_scores_move_by_at_most_their_sensitivity",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "tests/synthesis/marginals/test_synthesizer.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "All that is fitted is a function of noisy releases and of public quantities: parameters, names and types of "
        "the columns, and the public number of rows.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "Of categorical types the list of categories is not kept.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_a_pandas_frame_comes_back_as_one",
            "tests/synthesis/marginals/test_synthesizer.py::test_a_saved_generator_holds_no_row_and_no_exact_count",
        ],
        "`accountant` is charged before the rows are counted, and what is refused is refused before any charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "tests/synthesis/marginals/test_synthesizer.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "``sample`` and ``sample_sets`` cost nothing, and a saved generator holds no row and no exact count.": [
            "tests/synthesis/marginals/test_redrawn_tables.py::test_nothing_is_charged_and_the_generator_stays_as_it_was",
            "tests/synthesis/test_generator.py::test_the_draws_of_samples_have_no_part_in_the_noise_of_the_fit",
            "tests/synthesis/marginals/test_synthesizer.py::test_a_saved_generator_holds_no_row_and_no_exact_count",
        ],
        "Labels of samples are drawn by noisy or by public shares.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_labels_are_drawn_by_noisy_or_public_shares",
        ],
        "Numbers lie within bins evenly, or by noisy counts of cells of the bins, which are released with the "
        "tables.": [
            "tests/synthesis/marginals/test_bin_shapes.py::test_the_release_is_that_of_the_plain_reading",
            "tests/synthesis/marginals/test_synthesizer.py::test_the_noise_is_as_priced",
            "tests/synthesis/marginals/test_synthesizer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
        "In columns of another type than whole numbers they come back whole if noisy counts of the other numbers are "
        "small.": [
            "tests/synthesis/marginals/test_bin_shapes.py::test_whole_release_is_plain_count",
            "tests/synthesis/marginals/test_bought_table.py::test_synthesize_float_column_of_whole_numbers_stays_whole",
        ],
        "Whether pairs are selected, how many rounds and which fraction of the budget they take, whether triples and "
        "cells are measured, and the iterations of the fit are decided by public numbers.": [
            "tests/synthesis/marginals/test_bin_shapes.py::test_whether_cells_are_measured_is_decided_by_public_numbers",
            "tests/synthesis/marginals/test_synthesizer.py::test_rules_are_public",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
        ],
        "The number of pairs that are selected, and which, is decided by noisy scores.": [
            "tests/synthesis/marginals/test_synthesizer.py::test_pairs_are_selected_by_noisy_scores_alone",
            "tests/synthesis/marginals/test_synthesizer.py::test_selection_takes_the_pairs_that_depend_on_each_other",
            "tests/synthesis/marginals/test_synthesizer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
    },
    HouseholdSynthesizer: {
        "A household adds no more than one row may, with all of its persons, however many these are.": [
            "tests/synthesis/test_linking.py::test_a_household_moves_each_release_by_no_more_than_a_row_may",
            "tests/synthesis/test_linking.py::test_the_noise_is_that_of_rows_and_the_price_is_one",
        ],
    },
    Redrawing: {
        "It holds public numbers and what was released, and nothing else: all that it does is post-processing.": [
            "tests/synthesis/marginals/test_redrawn_tables.py::test_nothing_is_charged_and_the_generator_stays_as_it_was",
            "tests/synthesis/marginals/test_synthesizer.py::test_a_saved_generator_holds_no_row_and_no_exact_count",
        ],
    },
    ClassRows: {
        "What is made of a row depends on that row, its class and public or released tables alone: not on its place, "
        "on the rows beside it or on threads.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_what_is_made_of_a_row_depends_on_no_other",
        ],
        "Sums of squares are float64.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_the_releases_are_those_of_the_plain_reading",
        ],
    },
    ClusterSums: {
        "A row changes the vector by at most `sensitivity`.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_the_worst_row_reaches_the_sensitivity_and_none_exceeds_it",
            "tests/synthesis/class_mixture/test_class_generator.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
    },
    GroupMoments: {
        "A row changes the vector by at most `sensitivity`, but for the rounding of float64 sums.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_the_worst_row_reaches_the_sensitivity_and_none_exceeds_it",
            "tests/synthesis/class_mixture/test_class_generator.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
    },
    ClassMeasurement: {
        "What `measure` releases is no less private than one Gaussian release of `noise_multiplier`.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_the_noise_is_as_priced",
            "tests/synthesis/class_mixture/test_class_generator.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/synthesis/class_mixture/test_class_generator.py::test_counts_and_totals_reach_their_sensitivity",
        ],
        "All that it returns is a function of these releases and of public numbers.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/synthesis/class_mixture/test_class_generator.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
    },
    DPClassMixtureGenerator: {
        "Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
            "skdp/testing/releases.py::check_weights_move_releases_by_the_sensitivity",
            "tests/synthesis/class_mixture/test_class_generator.py::test_counts_and_totals_reach_their_sensitivity",
        ],
        "With `groups` all of this holds for all rows of one label together: what they add up to is an average of what "
        "one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, its label included, under `adjacency`, "
        "if `random_state` is None, and `classes` is given or there are no labels.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/synthesis/class_mixture/test_class_generator.py::test_the_worst_row_reaches_the_sensitivity_and_none_exceeds_it",
            "tests/synthesis/class_mixture/test_class_generator.py::test_counts_and_totals_reach_their_sensitivity",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "tests/synthesis/class_mixture/test_class_generator.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "All that is fitted is a function of noisy releases and of public quantities.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are summed, and what is refused is refused before any charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "tests/synthesis/class_mixture/test_class_generator.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "``sample`` costs nothing, and a saved generator holds no row and no exact sum.": [
            "tests/synthesis/test_generator.py::test_the_draws_of_samples_have_no_part_in_the_noise_of_the_fit",
            "tests/synthesis/class_mixture/test_class_generator.py::test_a_saved_generator_holds_no_row_and_no_exact_sum",
        ],
        "Labels of samples are drawn by noisy or by public shares, and samples lie within the bounds.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_labels_are_drawn_by_noisy_or_public_shares",
            "tests/synthesis/class_mixture/test_class_generator.py::test_samples_lie_within_the_bounds_and_have_the_type_of_the_rows",
        ],
        "The numbers of components and of directions are decided by public numbers.": [
            "tests/synthesis/class_mixture/test_class_generator.py::test_rules_are_public",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
        ],
    },
    PairModel: {
        "What is made up for a row, and the share of the row in the point between, depend on no other row.": [
            "tests/synthesis/gan/test_critic.py::test_what_is_made_up_for_a_row_depends_on_its_noise_and_label_alone",
            "tests/synthesis/gan/test_critic.py::test_the_label_of_a_row_is_in_its_own_gradient_alone",
            "tests/synthesis/gan/test_critic.py::test_noise_of_fakes_differs_from_step_to_step_and_from_the_lots",
        ],
    },
    ConvolutionalModel: {
        "A row changes the sum of a lot by at most the clip, whatever it and its label contain, and by exactly nothing "
        "if it holds NaN or infinity.": [
            "tests/synthesis/gan/test_convolutions.py::test_every_row_is_clipped_by_its_own_whole_norm",
            "tests/synthesis/gan/test_convolutions.py::"
            "test_a_row_that_is_exchanged_moves_the_sum_by_two_clips_and_one_that_is_muted_by_one",
            "tests/synthesis/gan/test_convolutions.py::test_rows_that_are_not_finite_add_exactly_nothing",
        ],
    },
    CriticModel: {
        "A row changes the sum of a lot by at most the clip, whatever it and its label contain, rounding within a "
        "block included, and by exactly nothing if it holds NaN or infinity.": [
            "tests/synthesis/gan/test_critic.py::test_every_row_is_clipped_by_its_own_whole_norm",
            "tests/synthesis/gan/test_critic.py::test_no_row_is_longer_than_the_clip_and_many_are_as_long",
            "tests/synthesis/gan/test_critic.py::test_a_row_that_is_exchanged_moves_the_sum_by_two_clips_and_one_that_is_muted_by_one",
            "tests/synthesis/gan/test_critic.py::test_the_label_of_a_row_is_in_its_own_gradient_alone",
            "tests/synthesis/gan/test_critic.py::test_the_error_of_products_by_the_features_is_in_the_norm",
            "tests/synthesis/gan/test_critic.py::test_rows_that_are_not_finite_add_exactly_nothing",
        ],
    },
    DPWGAN: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, its label included, under `adjacency`, "
        "if `random_state` is None, and `classes` is given or there are no labels.": [
            "tests/synthesis/gan/test_wgan.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/synthesis/gan/test_wgan.py::test_the_price_is_that_of_counts_and_steps",
            "tests/synthesis/gan/test_wgan.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "One row changes the sum of a step by at most `max_grad_norm`, rounding within a block included.": [
            "tests/synthesis/gan/test_critic.py::test_a_row_that_is_exchanged_moves_the_sum_by_two_clips_and_one_that_is_muted_by_one",
            "tests/synthesis/gan/test_wgan.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
        "Its label enters its own gradient and no other, and what is made up for one row is a function of noise, and "
        "of the label of that row, alone: nothing is normalised over a lot.": [
            "tests/synthesis/gan/test_critic.py::test_the_label_of_a_row_is_in_its_own_gradient_alone",
            "tests/synthesis/gan/test_critic.py::test_what_is_made_up_for_a_row_depends_on_its_noise_and_label_alone",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "tests/synthesis/gan/test_wgan.py::test_sums_are_divided_by_the_expected_size_of_a_lot",
        ],
        "The generator learns from the critic's noisy parameters, and from labels drawn by noisy or public shares. It "
        "reads no private row.": [
            "tests/synthesis/gan/test_critic.py::test_the_generator_steps_after_so_many_of_the_critic_and_reads_no_gradient_of_rows",
            "tests/synthesis/gan/test_wgan.py::test_steps_of_the_generator_see_no_exact_count",
            "tests/synthesis/gan/test_wgan.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
        "`accountant` is charged before training reads the rows, and what is refused is refused before any charge.": [
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "tests/synthesis/gan/test_wgan.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "An interrupted fit keeps its charge, and the generator of the steps done.": [
            "tests/synthesis/gan/test_wgan.py::test_an_interrupted_fit_keeps_its_charge_and_what_it_learned",
        ],
        "``sample`` costs nothing, and a saved generator holds no row and no exact count.": [
            "tests/synthesis/test_generator.py::test_samples_of_none_of_many_and_of_a_seed",
            "tests/synthesis/gan/test_wgan.py::test_a_saved_generator_holds_no_row_and_no_critic",
        ],
    },
    DPPCA: {
        "With `groups` all of this holds for all rows of one label together: what they add up to is clipped to what "
        "one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "Weights act after the clip, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/test_decomposition.py::test_no_two_weighted_rows_are_further_apart_than_the_sensitivity_says",
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
        ],
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is "
        "None.": [
            "tests/test_decomposition.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
            "tests/test_decomposition.py::test_no_pair_is_further_apart_than_the_sensitivity_says",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "tests/test_decomposition.py::test_noise_of_the_moments_is_symmetric_and_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "All that is fitted is a function of one noisy release and of public quantities.": [
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "The noise on the Gram matrix is symmetric, of standard deviation sigma R**2 on the diagonal and sigma R**2 / "
        "sqrt(2) off it, but for the factors of the mean, of `adjacency` and of rounding below.": [
            "tests/test_decomposition.py::test_noise_of_the_moments_is_symmetric_and_as_priced",
            "tests/test_decomposition.py::test_the_edge_is_where_random_matrices_end",
        ],
        "`accountant` is charged before the first block of an iterator is drawn, and before the rows of an array are "
        "summed.": [
            "tests/test_decomposition.py::test_nothing_is_read_above_the_ceiling",
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "tests/test_decomposition.py::test_the_charge_stands_before_the_first_block",
            "tests/test_decomposition.py::test_an_aborted_fit_keeps_its_charge_and_publishes_nothing",
        ],
        "An array that is refused (NaN, infinity) is refused before any charge; a block of an iterator that is refused "
        "leaves the charge standing.": [
            "tests/test_decomposition.py::test_bad_rows_are_refused_before_any_charge",
            "tests/test_decomposition.py::test_a_bad_block_is_refused_and_the_charge_stands",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "tests/test_decomposition.py::test_bad_rows_are_refused_before_any_charge",
        ],
    },
    DPLinearRegression: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is "
        "None and `y_bounds` is given.": [
            "tests/linear_model/test_least_squares.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
            "tests/linear_model/test_least_squares.py::test_the_worst_row_reaches_the_sensitivity",
            "tests/_training/streamed/test_streaming.py::test_a_row_moves_what_least_squares_release_by_at_most_the_sensitivity",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "tests/linear_model/test_least_squares.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "All that is fitted is a function of one noisy release, or of two with `inference`, and of public "
        "quantities.": [
            "tests/linear_model/test_inference.py::test_one_row_moves_both_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_inference.py::test_the_scores_have_noise_that_is_priced_and_charged_before",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are summed.": [
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "tests/_training/streamed/test_streaming.py::test_the_charge_precedes_the_first_block",
        ],
        "What is refused is refused before any charge, or after it in the block that holds it if the rows are not in "
        "memory.": [
            "tests/linear_model/test_least_squares.py::test_bad_input_is_refused_in_one_line_before_any_charge",
            "tests/_training/streamed/test_streaming.py::test_a_fault_in_a_block_of_least_squares_is_one_line_and_the_charge_stands",
        ],
        "With `groups` all of this holds for all rows of one label together: what they add up to is clipped to what "
        "one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "Weights act after the clip, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/linear_model/test_least_squares.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
        ],
    },
    DPRidge: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is "
        "None and `y_bounds` is given.": [
            "tests/linear_model/test_least_squares.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
            "tests/linear_model/test_least_squares.py::test_the_worst_row_reaches_the_sensitivity",
            "tests/_training/streamed/test_streaming.py::test_a_row_moves_what_least_squares_release_by_at_most_the_sensitivity",
            "skdp/testing/charges.py::check_releases_cost_what_is_charged",
            "tests/linear_model/test_least_squares.py::test_the_noise_is_as_priced",
            "skdp/testing/releases.py::check_noise_has_its_law",
        ],
        "All that is fitted is a function of one noisy release, or of two with `inference`, and of public "
        "quantities.": [
            "tests/linear_model/test_inference.py::test_one_row_moves_both_releases_by_their_sensitivity_and_nothing_else",
            "tests/linear_model/test_inference.py::test_the_scores_have_noise_that_is_priced_and_charged_before",
            "skdp/testing/releases.py::check_what_is_fitted_follows_from_the_releases",
            "tests/test_private_checks.py::test_fit_publishes_what_is_on_the_list",
        ],
        "`accountant` is charged before the rows are summed.": [
            "skdp/testing/charges.py::check_ceiling_is_asked_before_rows_are_read",
            "skdp/testing/charges.py::check_charge_precedes_releases",
            "tests/_training/streamed/test_streaming.py::test_the_charge_precedes_the_first_block",
        ],
        "What is refused is refused before any charge, or after it in the block that holds it if the rows are not in "
        "memory.": [
            "tests/linear_model/test_least_squares.py::test_bad_input_is_refused_in_one_line_before_any_charge",
            "tests/_training/streamed/test_streaming.py::test_a_fault_in_a_block_of_least_squares_is_one_line_and_the_charge_stands",
        ],
        "With `groups` all of this holds for all rows of one label together: what they add up to is clipped to what "
        "one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_sums_by_no_more_than_a_row_may",
        ],
        "Weights act after the clip, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/linear_model/test_least_squares.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
        ],
    },
    TabularPipeline: {
        "The model is a function of the schema, of names and types of the columns, of `epsilon` and of the public "
        "number of rows.": [
            "tests/test_tabular.py::test_one_row_does_not_choose_the_model_where_their_number_is_private",
            "tests/test_tabular.py::test_where_noise_rules_numbers_of_three_quarters_are_enough",
        ],
        "No cell is read to choose it, and the price is that of the chosen one.": [
            "tests/test_tabular.py::test_numbers_alone_are_for_a_network",
            "tests/test_tabular.py::test_each_fit_chooses_and_keeps_what_is_of_the_fit",
        ],
    },
    PrivatePipeline: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row as the whole of its steps, each of which "
        "may depend on what the ones before it released (adaptive composition).": [
            "tests/test_pipeline.py::test_the_joint_price_meets_the_budget",
            "tests/test_pipeline.py::test_the_steps_ran_with_the_noise_that_was_priced",
            "tests/test_pipeline.py::test_each_adjacency",
        ],
        "With `groups` all of this holds for all rows of one label together: every private step is given the labels, "
        "or the fit is refused.": [
            "tests/test_contract_groups.py::test_rows_may_keep_the_column_of_labels_that_fit_was_given",
            "tests/test_contract_groups.py::test_steps_that_take_no_groups_are_refused_before_the_charge",
        ],
        "Parameters of all steps are checked and the accountant is asked before a row is read.": [
            "tests/test_pipeline.py::test_above_the_ceiling_no_row_is_read_and_nothing_is_charged",
            "tests/_fit/test_refusals.py::test_parameters_and_ceiling_are_looked_at_before_the_rows",
        ],
        "The leading public steps run, and rows and labels are checked, before the charge.": [
            "tests/test_pipeline.py::test_rows_and_labels_are_checked_before_the_charge",
            "tests/_fit/test_refusals.py::test_rows_are_refused_before_the_charge_and_the_ledger_notes_it",
        ],
        "The accountant is charged once, with the joint event.": [
            "tests/test_pipeline.py::test_the_accountant_is_charged_once_and_jointly",
            "tests/test_pipeline.py::test_the_charge_stands_before_training_reads_a_row",
        ],
        "A step that is not known to treat rows one by one, and to read nothing of them, is refused.": [
            "tests/test_pipeline.py::test_a_step_that_reads_without_paying_is_refused",
            "tests/test_pipeline.py::test_a_forbidden_step_that_is_set_later_is_refused_at_fit",
        ],
        "Every private step sees the rows that came in, one for one.": [
            "tests/test_pipeline.py::test_a_step_that_changes_the_number_of_rows_is_refused",
        ],
        "``fit`` works on copies of the steps, which replace the steps all at once when the last one is fitted.": [
            "tests/_fit/test_releases.py::test_public_steps_of_the_user_are_not_written_on",
            "tests/_fit/test_releases.py::test_a_clone_taken_and_parameters_read_while_it_fits_are_the_users_own",
            "tests/_fit/test_releases.py::test_two_threads_on_one_pipeline_are_two_charges",
        ],
        "After an error, an interrupt or in another thread the pipeline is as it was, with the price that it had.": [
            "tests/_fit/test_releases.py::test_a_pipeline_that_fails_at_its_last_step_keeps_all_of_its_old_steps",
            "tests/_fit/test_releases.py::test_an_interrupt_at_any_line_leaves_no_state_that_costs_more_than_it_says",
        ],
    },
    MomentSum: {
        "A row changes `isometric` by at most `sensitivity`, rounding within a block included, and not at all if it "
        "holds NaN or infinity.": [
            "tests/test_decomposition.py::test_worst_row_reaches_the_sensitivity",
            "tests/test_decomposition.py::test_a_block_of_equal_rows_in_single_precision",
            "tests/test_decomposition.py::test_rounding_of_a_block_is_within_what_is_declared",
            "tests/test_decomposition.py::test_rows_that_shift_are_summed_in_double_precision",
            "tests/test_decomposition.py::test_rows_of_any_length_end_in_the_ball",
            "tests/mechanisms/test_second_moments.py::test_a_row_that_holds_nan_or_infinity_adds_exactly_nothing",
        ],
        "The Euclidean norm of `isometric`, but for a factor that depends on dtype and width, is the Frobenius norm of "
        "the sums.": [
            "tests/test_decomposition.py::test_sums_are_those_of_the_plain_reading",
        ],
    },
    LinearModel: {
        "With `units`, the rows of a unit together add at most C.": [
            "tests/_training/models/test_unit_layout.py::test_a_unit_moves_the_sum_by_the_clip_at_most",
        ],
        "A row adds at most C (1 + 8 u), with u = 2**-53, in either dtype, and exactly nothing if its weight is 0 or "
        "if it holds NaN or infinity.": [
            "tests/_kernels/test_linear.py::test_one_row_adds_at_most_the_clip",
            "tests/_kernels/test_linear.py::test_wide_rows_at_extreme_scales_add_at_most_the_clip",
            "tests/_kernels/test_linear.py::test_norms_that_lose_their_digits_are_not_taken_for_shorter",
            "tests/_kernels/test_linear.py::test_weight_zero_is_the_null_record",
            "tests/_kernels/test_linear.py::test_a_row_that_holds_nan_or_infinity_is_the_null_record",
        ],
    },
    WideLinearModel: {
        "If all other rows keep their places, a row changes the sum of its block by at most C, rounding included, and "
        "no bit of the sums of other blocks.": [
            "tests/_training/models/test_wide_linear.py::test_rows_at_extreme_scales_add_at_most_the_clip",
            "tests/_training/models/test_wide_linear.py::test_rounding_on_the_edge_moves_the_sum_by_at_most_the_clip",
            "tests/_training/models/test_wide_linear.py::test_rounding_moves_the_sum_by_at_most_the_clip",
            "tests/_training/models/test_wide_linear.py::test_no_row_changes_a_bit_of_anothers_gradient",
            "tests/_training/models/test_wide_linear.py::test_no_row_moves_another_block",
        ],
        "Its weight 0, NaN or infinity in it make it add exactly nothing.": [
            "tests/_training/models/test_wide_linear.py::test_weight_zero_is_the_null_record",
            "tests/_training/models/test_wide_linear.py::test_a_row_that_holds_nan_or_infinity_is_the_null_record",
        ],
    },
    ColumnModel: {
        "As of `skdp._training.models.linear.LinearModel`: a row adds at most C (1 + 8 u), and exactly nothing if its "
        "weight is 0.": [
            "tests/_kernels/test_columns.py::test_no_row_adds_more_than_the_clip",
            "tests/_kernels/test_columns.py::test_sums_are_those_of_the_plain_reading",
        ],
        "A row that holds NaN or infinity is refused.": [
            "tests/_kernels/test_columns.py::test_cells_that_are_no_numbers_are_refused",
            "tests/_training/streamed/test_streaming.py::test_a_fault_in_a_block_is_one_line_and_the_charge_stands",
        ],
    },
    StreamedModel: {
        "The sum of a step is that of the clipped gradients of its lot, each row of it once, in float64.": [
            "tests/_training/streamed/test_streaming.py::test_a_pass_reads_each_row_once",
            "tests/_training/streamed/test_streaming.py::test_lots_that_are_drawn_ahead_are_poisson_samples",
        ],
        "It differs from the sum of a model in memory by the order of additions only.": [
            "tests/_training/streamed/test_streaming.py::test_a_full_batch_equals_one_in_memory",
            "tests/_training/streamed/test_streaming.py::test_lots_equal_those_drawn_in_memory_from_the_streams_of_their_steps",
        ],
        "A row changes it by at most what it may change the sum of the recipe's model.": [
            "tests/_training/streamed/test_streaming.py::test_a_row_moves_the_sum_of_a_step_by_at_most_the_clip",
        ],
        "Where rows have units, a unit changes it by at most C, wherever blocks cut it.": [
            "tests/_training/streamed/test_streamed_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
        ],
    },
    RunReader: {
        "No unit lies in several runs of the rows whose labels were read, or `finish` refuses them.": [
            "tests/_checks/test_unit_runs.py::test_a_unit_in_two_runs_is_refused_without_its_label",
            "tests/_training/streamed/test_streamed_units.py::test_labels_that_are_refused_are_a_refusal_of_data",
        ],
    },
    MappedModel: {
        "As of `StreamedModel`, but that a lot is drawn when its step begins, by the sampler of rows in memory.": [
            "tests/_training/streamed/test_streaming.py::test_lots_of_a_map_are_those_of_the_equal_array",
            "tests/_training/streamed/test_streamed_units.py::test_lots_of_a_map_are_those_of_the_equal_array",
        ],
    },
    shares_of_units: {
        "The sum of the vectors of a unit, times their shares, has a norm of at most `limit`.": [
            "tests/mechanisms/test_unit_shares.py::test_the_sum_of_a_unit_is_no_longer_than_the_limit",
        ],
        "A unit of one row, whose vector is no longer than `limit`, has a share of exactly 1.": [
            "tests/mechanisms/test_unit_shares.py::test_units_of_one_row_have_all_of_it",
        ],
    },
    add_clipped: {
        "The unit adds at most `max_norm` (1 + 4 u), u = 2**-53.": [
            "tests/_training/models/test_unit_layout.py::test_a_unit_moves_the_sum_by_the_clip_at_most",
        ],
    },
    unit_room: {
        "Let G be the true sum of the m <= 64 clipped gradients of a unit, S its squared norm as computed from "
        "products of pairs, A the sum of the norms of its rows, and f the factor C / sqrt(S + room A**2), where that "
        "is below 1. Then what the unit adds has a norm of at most C.": [
            "tests/_training/models/test_unit_layout.py::test_a_unit_moves_the_sum_by_the_clip_at_most",
        ],
    },
    OneHotModel: {
        "With `units`, the rows of a unit together add at most C.": [
            "tests/_training/models/test_unit_layout.py::test_a_unit_moves_the_sum_by_the_clip_at_most",
        ],
        "A row adds at most C (1 + 16 u), with u = 2**-53, and exactly nothing if its weight is 0.": [
            "tests/_training/models/test_one_hot.py::test_one_row_adds_at_most_the_clip",
            "tests/_training/models/test_one_hot.py::test_one_changed_row_moves_the_sum_by_its_own_gradients",
            "tests/_training/models/test_one_hot.py::test_weight_zero_is_the_null_record",
            "tests/_training/models/test_one_hot.py::test_every_row_has_norm_1",
        ],
    },
    DPRandomTreesClassifier: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is "
        "given and `random_state` is None.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_removing_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_exchanging_a_row_moves_releases_by_twice_the_clip",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
            "tests/ensemble/test_random_trees.py::test_spread_of_a_fit_to_null_records_is_that_of_the_price",
            "tests/ensemble/test_random_trees.py::test_instalments_have_noise_of_their_own",
        ],
        "One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/ensemble/test_random_trees.py::test_a_muted_row_of_a_raw_table_moves_releases_by_the_clip",
        ],
        "With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and "
        "the sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
            "tests/test_guarantees_units.py::test_the_price_is_that_of_rows",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "tests/ensemble/test_random_trees.py::test_one_step_is_the_clipped_mean_gradient",
            "tests/ensemble/test_random_trees.py::test_spread_of_a_fit_to_null_records_is_that_of_the_price",
        ],
        "`intercept_` is that of the last step, moved by a function of sums over the rows, of probabilities and of "
        "what these lack, which are released once, with noise, after the last step.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_sums_are_of_the_published_model_and_priced",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "A first run starts at scores that are a function of the counts of the classes, which are released once, with "
        "noise, before the first step.": [
            "tests/_training/test_offset.py::test_run_starts_at_released_class_counts",
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "Counts and sums have 1 % of mu**2 of a fit to all rows each, sums without counts 2 %, and are part of "
        "`privacy_event_`.": [
            "tests/_training/test_offset.py::test_means_are_bought_where_an_intercept_and_the_loss_fit_them",
            "tests/_training/test_offset.py::test_sums_are_of_the_published_model_and_priced",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the "
        "steps done.": [
            "tests/test_guarantees_charges.py::test_the_charge_stands_before_training_sees_the_rows",
            "tests/ensemble/test_random_trees.py::test_an_interrupted_fit_keeps_its_charge_and_the_model_of_the_steps_done",
        ],
        "Input that is refused (cells that cannot be read, unknown labels, negative weights) is refused before any "
        "charge.": [
            "tests/ensemble/test_random_trees.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "tests/test_guarantees_neighbours.py::test_refusals_that_lie_in_the_data_are_the_documented_ones",
        ],
        "`embedding_` is a function of the schema, of the seed of the trees, and of counts of people in the cells of "
        "each column, which are released once, with noise, before the first step.": [
            "tests/ensemble/test_random_trees.py::test_trees_follow_from_noisy_counts_and_what_is_public",
            "tests/ensemble/test_random_trees.py::test_a_row_moves_the_counts_by_their_sensitivity_at_most",
            "tests/preprocessing/test_codes.py::test_trees_of_a_bought_schema_are_post_processing",
        ],
        "They have 3 % of mu**2 of a fit to all rows, and are part of `privacy_event_`.": [
            "tests/ensemble/test_random_trees.py::test_purchases_beside_steps_have_their_share_of_the_budget",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "`feature_importances_` cost nothing: they are a function of `embedding_` and of the coefficients.": [
            "tests/ensemble/test_random_trees.py::test_importances_follow_from_coefficients_and_what_is_public",
        ],
    },
    DPRandomTreesRegressor: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is "
        "given and `random_state` is None.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_removing_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_exchanging_a_row_moves_releases_by_twice_the_clip",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
            "tests/ensemble/test_random_trees.py::test_spread_of_a_fit_to_null_records_is_that_of_the_price",
            "tests/ensemble/test_random_trees.py::test_instalments_have_noise_of_their_own",
        ],
        "One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/ensemble/test_random_trees.py::test_a_muted_row_of_a_raw_table_moves_releases_by_the_clip",
        ],
        "With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and "
        "the sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
            "tests/test_guarantees_units.py::test_the_price_is_that_of_rows",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "tests/ensemble/test_random_trees.py::test_one_step_is_the_clipped_mean_gradient",
            "tests/ensemble/test_random_trees.py::test_spread_of_a_fit_to_null_records_is_that_of_the_price",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the "
        "steps done.": [
            "tests/test_guarantees_charges.py::test_the_charge_stands_before_training_sees_the_rows",
            "tests/ensemble/test_random_trees.py::test_an_interrupted_fit_keeps_its_charge_and_the_model_of_the_steps_done",
        ],
        "Input that is refused (cells that cannot be read, NaN as a target, negative weights) is refused before any "
        "charge.": [
            "tests/ensemble/test_random_trees.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "tests/test_guarantees_neighbours.py::test_refusals_that_lie_in_the_data_are_the_documented_ones",
        ],
        "`embedding_` is a function of the schema, of the seed of the trees, and of counts of people in the cells of "
        "each column, which are released once, with noise, before the first step.": [
            "tests/ensemble/test_random_trees.py::test_trees_follow_from_noisy_counts_and_what_is_public",
            "tests/ensemble/test_random_trees.py::test_a_row_moves_the_counts_by_their_sensitivity_at_most",
            "tests/preprocessing/test_codes.py::test_trees_of_a_bought_schema_are_post_processing",
        ],
        "They have 3 % of mu**2 of a fit to all rows, and are part of `privacy_event_`.": [
            "tests/ensemble/test_random_trees.py::test_purchases_beside_steps_have_their_share_of_the_budget",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "`target_center_` and `target_scale_` are functions of `y_bounds`, and of the sums of weights, targets and "
        "squared targets, which are released once, with noise, before the first step.": [
            "tests/ensemble/test_random_trees.py::test_a_row_moves_the_sums_of_targets_by_their_sensitivity_at_most",
            "tests/ensemble/test_random_trees.py::test_units_are_mean_and_spread_of_the_targets",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "`intercept_` is that of the last step and the mean error of its model, a function of the sums of weights and "
        "of weighted errors, which are released once, with noise, after the last step.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_the_mean_error_is_added_unless_noise_may_have_made_it",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "They have 2 % of mu**2 of a fit to all rows, and are part of `privacy_event_`.": [
            "tests/ensemble/test_random_trees.py::test_purchases_beside_steps_have_their_share_of_the_budget",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "`feature_importances_` cost nothing: they are a function of `embedding_` and of the coefficients.": [
            "tests/ensemble/test_random_trees.py::test_importances_follow_from_coefficients_and_what_is_public",
        ],
    },
    DPMLPClassifier: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is "
        "given and `random_state` is None.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_of_several_labels",
            "tests/test_guarantees_neighbours.py::test_removing_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_exchanging_a_row_moves_releases_by_twice_the_clip",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
            "tests/neural_network/test_classifier.py::test_spread_of_a_step_on_null_records",
            "tests/neural_network/test_classifier.py::test_instalments_of_one_seed_have_different_noise",
        ],
        "One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain, the "
        "rounding of the sum included.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_in_single_precision_in_a_network",
            "tests/test_guarantees_neighbours.py::test_rounding_in_a_network_does_not_add_up_to_more_than_the_clip",
            "tests/_training/models/test_network.py::test_one_row_adds_at_most_the_clip",
            "tests/_training/models/test_network.py::test_rounding_on_the_edge_moves_the_sum_by_at_most_the_clip",
            "tests/_training/models/test_network.py::test_rounding_moves_the_sum_by_at_most_the_clip",
        ],
        "With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and "
        "the sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
            "tests/test_guarantees_units.py::test_the_price_is_that_of_rows",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "tests/neural_network/test_classifier.py::test_one_step_is_the_clipped_mean_gradient",
            "tests/neural_network/test_classifier.py::test_spread_of_a_step_on_null_records",
        ],
        "`intercepts_` are those of the last step, moved by a function of sums over the rows, of probabilities and of "
        "what these lack, which are released once, with noise, after the last step.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_sums_are_of_the_published_model_and_priced",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "A first run starts at scores that are a function of the counts of the classes, which are released once, with "
        "noise, before the first step, unless the constructor names three classes or labels, or more.": [
            "tests/_training/test_offset.py::test_run_starts_at_released_class_counts",
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "Counts and sums have 1 % of mu**2 of a fit to all rows each, sums without counts 2 %, and are part of "
        "`privacy_event_`.": [
            "tests/_training/test_offset.py::test_means_are_bought_where_an_intercept_and_the_loss_fit_them",
            "tests/_training/test_offset.py::test_sums_are_of_the_published_model_and_priced",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the "
        "steps done.": [
            "tests/test_guarantees_charges.py::test_the_charge_stands_before_training_sees_the_rows",
            "tests/neural_network/test_classifier.py::test_interrupted_fit_keeps_the_model_of_the_steps_done_and_the_full_charge",
            "tests/neural_network/test_classifier.py::test_an_instalment_interrupted_in_its_first_step_keeps_the_model_before_it",
        ],
        "Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge, or "
        "after it in the block that holds it if the rows are not in memory.": [
            "tests/_training/streamed/test_streaming.py::test_a_fault_in_a_block_is_one_line_and_the_charge_stands",
            "tests/neural_network/test_classifier.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "tests/test_guarantees_neighbours.py::test_refusals_that_lie_in_the_data_are_the_documented_ones",
        ],
        "The initial weights are random and depend on no row.": [
            "tests/neural_network/test_classifier.py::test_start_depends_on_no_row",
            "tests/neural_network/test_classifier.py::test_start_is_random_scaled_by_the_inputs_and_zero_in_the_last_layer",
        ],
    },
    DPMLPRegressor: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is "
        "given and `random_state` is None.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/neural_network/test_regressor.py::test_targets_beyond_their_bounds_are_moved_to_the_nearest",
            "tests/test_guarantees_neighbours.py::test_removing_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/test_guarantees_neighbours.py::test_exchanging_a_row_moves_releases_by_twice_the_clip",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
            "tests/neural_network/test_regressor.py::test_spread_of_a_step_on_null_records",
            "tests/neural_network/test_regressor.py::test_instalments_go_on_and_are_billed_jointly",
        ],
        "One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain, the "
        "rounding of the sum included.": [
            "tests/test_guarantees_neighbours.py::test_muting_a_row_in_single_precision_in_a_network",
            "tests/test_guarantees_neighbours.py::test_rounding_in_a_network_does_not_add_up_to_more_than_the_clip",
            "tests/_training/models/test_network.py::test_one_row_adds_at_most_the_clip",
            "tests/_training/models/test_network.py::test_rounding_on_the_edge_moves_the_sum_by_at_most_the_clip",
            "tests/_training/models/test_network.py::test_rounding_moves_the_sum_by_at_most_the_clip",
        ],
        "With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and "
        "the sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
            "tests/test_guarantees_units.py::test_the_price_is_that_of_rows",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "tests/neural_network/test_regressor.py::test_one_step_is_the_clipped_mean_gradient",
            "tests/neural_network/test_regressor.py::test_spread_of_a_step_on_null_records",
        ],
        "`intercepts_` are those of the last step, moved by a function of the sums of errors and of weights, or of "
        "predicted counts, which are released once, with noise, after the last step.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_the_mean_of_a_network_is_that_of_its_targets",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
        ],
        "They have 2 % of mu**2 of a fit to all rows, and are part of `privacy_event_`.": [
            "tests/_training/test_offset.py::test_means_are_bought_where_an_intercept_and_the_loss_fit_them",
            "tests/_training/test_offset.py::test_sums_are_of_the_published_model_and_priced",
            "tests/test_guarantees_charges.py::test_epsilon_is_the_price_of_the_published_event",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the "
        "steps done.": [
            "tests/test_guarantees_charges.py::test_the_charge_stands_before_training_sees_the_rows",
            "tests/neural_network/test_regressor.py::test_interrupted_fit_keeps_the_model_of_the_steps_done_and_the_full_charge",
        ],
        "Input that is refused (NaN, infinity, negative counts, negative weights) is refused before any charge, or "
        "after it in the block that holds it if the rows are not in memory.": [
            "tests/_training/streamed/test_streaming.py::test_a_fault_in_a_block_is_one_line_and_the_charge_stands",
            "tests/neural_network/test_regressor.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "tests/test_guarantees_neighbours.py::test_refusals_that_lie_in_the_data_are_the_documented_ones",
        ],
        "The initial weights are random and depend on no row.": [
            "tests/neural_network/test_regressor.py::test_start_depends_on_no_row",
        ],
    },
    Clip: {
        'No row\'s clipped gradient is longer than C: by construction for "flat" and "automatic"; for "per_layer" '
        "its square is at most the sum of the C_k**2, which is C**2, and this is reached.": [
            "tests/_training/models/test_network.py::test_one_row_adds_at_most_the_clip",
            "tests/_training/models/test_network.py::test_no_product_of_magnitudes_adds_more",
            "tests/_training/models/test_network.py::test_layers_have_bounds_of_their_own_that_are_reached_together",
        ],
    },
    DPSGDPlan: {
        "A run that makes `n_steps` steps, each of which (1) draws rows by `sampling`, (2) adds up gradients of which "
        "none is longer than C, (3) releases the sum through `mechanism_at` that step and (4) divides by the constant "
        "L, is an adaptive composition of `sampling.event(mechanism.event)` over the mechanisms of the steps; that "
        "composition is `event`.": [
            "tests/test_guarantees_noise.py::test_a_run_is_the_composition_that_the_plan_prices",
            "tests/_training/test_noise_stages.py::test_fits_draw_the_noise_that_their_event_lists",
        ],
    },
    lots_of_step: {
        "Every row is in the lot of a step with probability `sampling.rate`, independently of all other rows and "
        "steps.": [
            "tests/_training/dask/test_dask_rows.py::test_rows_of_all_partitions_are_drawn_independently_at_the_rate",
            "tests/_training/dask/test_dask_rows.py::test_lots_of_partitions_are_the_lots_that_are_drawn_here_again",
        ],
        "Who knows the key of a lot learns from it neither another lot nor the noise.": [
            "tests/_training/dask/test_dask_rows.py::test_a_worker_is_sent_the_keys_of_its_lots_and_no_other",
            "tests/_training/dask/test_dask_rows.py::test_a_lot_is_the_same_whenever_it_is_drawn_and_others_differ",
        ],
    },
    DistributedModel: {
        "A row adds to the sum what it adds to that of its partition, at most C.": [
            "tests/_training/dask/test_dask_rows.py::test_one_row_moves_no_sum_by_more_than_the_clip",
            "tests/_training/dask/test_dask_rows.py::test_a_distributed_model_adds_up_what_one_machine_does",
        ],
        "Workers are sent public constants, the parameters of the step, which were released, and the lots of their "
        "partitions, and no other key than theirs.": [
            "tests/_training/dask/test_dask_rows.py::test_a_worker_is_sent_the_keys_of_its_lots_and_no_other",
            "tests/_training/dask/test_dask_rows.py::test_nothing_secret_is_sent_with_full_batches",
        ],
        "A part that a lost worker has to compute again is of the same lot, and the sum of a step is released once.": [
            "tests/_training/dask/test_cluster.py::test_steps_of_workers_that_die_are_computed_again_from_the_same_sample",
            "tests/_training/dask/test_dask_rows.py::test_parts_of_a_sum_are_left_as_they_are",
            "tests/_training/dask/test_dask_rows.py::test_one_release_a_step_and_one_charge_a_fit",
        ],
    },
    TableClassifier: {
        "With a fitted `estimator` the table alone is released, of all rows, and the price is that of the table.": [
            "tests/calibration/test_table_classifier.py::test_a_fitted_model_costs_the_table_alone",
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
        ],
        "With an unfitted one each row, or unit, is in the part that the estimator is fitted to or in the part whose "
        "scores are counted, and no record has a say in where any is.": [
            "tests/calibration/test_table_classifier.py::test_a_row_is_in_the_fit_or_in_the_table",
            "tests/calibration/test_table_classifier.py::test_a_unit_is_in_one_part_as_a_whole",
            "tests/calibration/test_table_classifier.py::test_labels_and_cells_move_nobody",
            "tests/calibration/test_table_classifier.py::test_a_row_that_leaves_has_a_coin_of_its_own",
            "tests/calibration/test_table_classifier.py::test_parts_are_drawn_anew_by_a_secret",
        ],
        "`privacy_event_` is the worst of the fit and the table, charged once, before either reads a row.": [
            "tests/calibration/test_table_classifier.py::test_fit_and_table_cost_epsilon_together",
            "tests/calibration/test_table_classifier.py::test_above_the_ceiling_nothing_is_read",
            "tests/calibration/test_table_classifier.py::test_rows_and_groups_are_not_mixed_in_a_ledger",
        ],
        "What follows is a function of what was released and of public parameters.": [
            "tests/calibration/test_table_classifier.py::test_a_row_is_in_the_fit_or_in_the_table",
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
            "tests/test_replay.py::test_one_weight_moves_the_releases_and_nothing_else",
        ],
    },
    DPCalibratedClassifier: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, or one unit with `groups`, if classes "
        "are named and `random_state` is None: `TableClassifier` has the proof.": [
            "tests/calibration/test_table_classifier.py::test_a_row_is_in_the_fit_or_in_the_table",
            "tests/calibration/test_table_classifier.py::test_fit_and_table_cost_epsilon_together",
        ],
        "The map is a function of the noisy table and of public parameters.": [
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
        ],
    },
    DPThresholdClassifier: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, or one unit with `groups`, if classes "
        "are named and `random_state` is None: `TableClassifier` has the proof.": [
            "tests/calibration/test_table_classifier.py::test_a_unit_is_in_one_part_as_a_whole",
            "tests/calibration/test_table_classifier.py::test_fit_and_table_cost_epsilon_together",
        ],
        "Thresholds are a function of the noisy table and of public parameters.": [
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
        ],
    },
    column_effects: {
        "Effects and their noise are a function of the fitted state and of public numbers: no row is read, and nothing "
        "is charged.": ["tests/effects/test_column_effects.py::test_effects_read_no_row_and_cost_nothing"],
    },
    make_monotonic: {
        "The result is a function of the fitted coefficients, of the public schema and of `monotonic_cst`: "
        "post-processing, at no price.": [
            "tests/effects/test_monotonic.py::test_the_curve_is_monotone_and_nothing_else_changes",
        ],
    },
    CountedEvaluation: {
        "One row, or one unit, adds at most one row's worth to all cells together: to those of all bins, classes and "
        "subgroups.": [
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
            "tests/test_replay.py::test_one_weight_moves_the_releases_and_nothing_else",
            "tests/evaluation/test_evaluate.py::test_one_unit_moves_the_counts_by_one_row_and_nothing_else",
        ],
        "That is the sensitivity of the release; another row in its place moves two counts, and is priced so.": [
            "tests/evaluation/test_evaluate.py::test_all_figures_together_cost_epsilon",
            "tests/evaluation/test_evaluate.py::test_normal_noise_is_priced_as_one_gaussian",
        ],
        "Cells are public: numbers of bins, classes and categories are parameters, or follow from the public number of "
        "rows and the noise.": [
            "tests/evaluation/test_evaluate.py::test_the_number_of_bins_follows_from_public_numbers",
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
        ],
    },
    TableScore: {
        "One row, or one unit of several rows, that is replaced by a null row, added or removed moves `total` by at "
        "most 1 in Euclidean norm; replaced by any other, by at most twice that.": [
            "tests/model_selection/test_table_scores.py::test_a_row_moves_one_count",
            "tests/model_selection/test_table_scores.py::test_a_unit_moves_as_much_as_a_row",
            "tests/model_selection/test_table_scores.py::test_a_row_moves_the_releases_of_a_search_by_their_sensitivity",
        ],
    },
    cross_validate: {
        "All fits and all scores together are (`epsilon`, `delta`)-differentially private for one row, or for one "
        "unit, if the estimator names its classes and `random_state` is None.": [
            "tests/model_selection/test_cross_validation.py::test_what_ran_is_what_was_priced",
            "tests/model_selection/test_cross_validation.py::test_a_row_moves_the_fits_that_read_it_and_one_count",
            "tests/model_selection/test_cross_validation.py::test_one_unit_moves_the_table_by_one_row",
            "tests/model_selection/test_cross_validation.py::test_labels_move_nobody_between_folds",
            "tests/model_selection/test_cross_validation.py::test_a_unit_is_in_one_fold_and_counts_once",
        ],
        "The fits are charged one after the other, never in parallel, and the scores of all folds at the price of "
        "one.": [
            "tests/model_selection/test_cross_validation.py::test_all_fits_but_one_and_one_table_are_charged",
            "tests/model_selection/test_cross_validation.py::test_folds_of_unequal_size_are_priced_at_the_worst",
        ],
    },
    RegressionEvaluation: {
        "One row, or one unit, adds at most 4 parts to the counts of errors and one to the sums of targets, in sizes "
        "and over all cells together, a part being `GRID`.": [
            "tests/evaluation/test_regression.py::test_a_row_adds_five_parts_at_most",
            "tests/evaluation/test_regression.py::test_one_unit_moves_the_sums_by_a_row",
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
            "tests/test_replay.py::test_one_weight_moves_the_releases_and_nothing_else",
        ],
        "That is the sensitivity of the release.": [
            "tests/evaluation/test_regression.py::test_all_figures_together_cost_epsilon",
        ],
    },
    OneVsRestEvaluation: {
        "One row, or one unit, adds at most 3 (n_classes - 1) parts to all cells together, a part being 1, or `GRID` "
        "with weights or units.": [
            "tests/evaluation/test_one_vs_rest.py::test_one_row_and_one_unit_move_no_more_than_is_priced",
            "tests/evaluation/test_one_vs_rest.py::test_a_row_is_counted_once_by_prediction_once_for_its_class_and_once_"
            "for_each_other",
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
            "tests/test_replay.py::test_one_weight_moves_the_releases_and_nothing_else",
        ],
        "That is the sensitivity of the release.": [
            "tests/evaluation/test_one_vs_rest.py::test_all_figures_together_cost_epsilon",
            "tests/evaluation/test_one_vs_rest.py::test_normal_noise_has_the_norm_of_what_a_row_adds",
        ],
    },
    MultilabelEvaluation: {
        "One row, or one unit, adds at most n_labels parts to all cells together, a part being 1, or `GRID` with "
        "weights or units.": [
            "tests/evaluation/test_one_vs_rest.py::test_one_row_and_one_unit_move_no_more_than_is_priced",
            "tests/evaluation/test_one_vs_rest.py::test_a_label_is_counted_once",
            "tests/test_replay.py::test_one_row_moves_the_releases_and_nothing_else",
            "tests/test_replay.py::test_one_weight_moves_the_releases_and_nothing_else",
        ],
        "That is the sensitivity of the release.": [
            "tests/evaluation/test_one_vs_rest.py::test_all_figures_together_cost_epsilon",
            "tests/evaluation/test_one_vs_rest.py::test_normal_noise_has_the_norm_of_what_a_row_adds",
        ],
    },
    amounts_of: {
        "What one row adds, or one unit over all of its rows, is at most `GRID` in sum, whatever cells it goes to.": [
            "tests/evaluation/test_evaluate.py::test_no_unit_adds_more_than_a_row",
            "tests/evaluation/test_evaluate.py::test_weights_are_divided_by_their_bound_and_cut_at_it",
        ],
        "It depends on the weight of the row, or on those of its unit's rows, alone.": [
            "tests/evaluation/test_evaluate.py::test_one_unit_moves_the_counts_by_one_row_and_nothing_else",
        ],
    },
    ScoredRows: {
        "Nothing that the model says of a row gets out but its score: no warning, and no error.": [
            "tests/evaluation/test_evaluate.py::test_what_a_model_says_of_a_row_stays_inside",
        ],
        "A row that the model refuses, or gives another number of scores than it should, has the score NaN, whatever "
        "the rows beside it are.": [
            "tests/evaluation/test_evaluate.py::test_a_row_that_is_refused_is_so_whatever_is_beside_it",
            "tests/evaluation/test_evaluate.py::test_a_row_of_another_number_of_scores_is_one_that_is_refused",
        ],
    },
    DiscreteGaussianMechanism: {
        "The noise of every count has exactly the law of s (Canonne, Kamath & Steinke 2020, algorithm 3): no "
        "floating-point number takes part in a draw.": [
            "tests/mechanisms/test_discrete_gaussian.py::test_noise_has_exactly_the_law_that_is_priced",
            "tests/mechanisms/test_discrete_gaussian.py::test_noise_of_a_large_deviation_falls_on_every_residue",
            "tests/mechanisms/test_discrete_gaussian.py::test_a_comparison_goes_on_where_64_bits_leave_it_open",
        ],
        "The event states that s.": [
            "tests/mechanisms/test_discrete_gaussian.py::test_the_event_and_the_noise_have_one_deviation",
            "tests/mechanisms/test_discrete_gaussian.py::test_the_event_is_the_very_pair_of_laws",
            "tests/mechanisms/test_discrete_gaussian.py::"
            "test_a_record_that_is_replaced_is_told_apart_no_better_than_is_priced",
        ],
        "`release` charges the accountant before it draws noise, and nothing that it refuses is charged.": [
            "tests/mechanisms/test_discrete_gaussian.py::test_a_release_alone_is_charged_before_it_draws",
            "tests/mechanisms/test_discrete_gaussian.py::test_what_is_no_whole_number_is_refused_without_its_value",
        ],
        "Every whole number can come of every value.": [
            "tests/mechanisms/test_discrete_gaussian.py::test_the_same_outputs_come_of_every_value",
        ],
    },
    DiscreteLaplaceMechanism: {
        "The noise of every coordinate has exactly the law of its scale (Canonne, Kamath & Steinke 2020, algorithm 2): "
        "no floating-point number takes part in a draw.": [
            "tests/mechanisms/test_discrete_laplace.py::test_noise_has_exactly_the_law_that_is_priced",
            "tests/mechanisms/test_discrete_laplace.py::test_noise_of_a_large_scale_falls_on_every_residue",
        ],
        "The event states that scale, or noise no larger.": [
            "tests/mechanisms/test_discrete_laplace.py::test_the_scale_is_rounded_up_and_priced_as_rounded",
            "tests/mechanisms/test_discrete_laplace.py::test_the_event_states_no_less_than_the_noise",
        ],
        "A release is private at ``sensitivity / scale``, with a delta of 0; at twice that under ``replace_one``.": [
            "tests/mechanisms/test_discrete_laplace.py::test_its_price_is_that_of_its_event",
        ],
        "`release` charges the accountant before it draws noise, and nothing that it refuses is charged.": [
            "tests/mechanisms/test_discrete_laplace.py::test_a_release_alone_is_charged_before_it_draws",
            "tests/mechanisms/test_discrete_laplace.py::test_what_is_no_whole_number_is_refused_without_its_value",
        ],
    },
    GaussianMechanism: {
        "The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`, and larger by one part "
        "in 4,055.": [
            "tests/test_guarantees_noise.py::test_noise_of_a_release_has_the_stated_standard_deviation",
            "tests/mechanisms/test_gaussian_mechanism.py::test_noise_has_room_for_rounded_sums",
        ],
        "The released value is the exact one with ideal normal noise, rounded to a grid.": [
            "tests/mechanisms/test_gaussian_mechanism.py::test_outputs_are_multiples_of_one_grid_whatever_the_value",
            "tests/mechanisms/test_rounded_normals.py::test_no_normal_is_further_from_the_ideal_than_the_bound",
            "tests/mechanisms/test_rounded_normals.py::test_what_the_kernel_rounds_stands_whatever_the_further_digits",
            "tests/mechanisms/test_rounded_normals.py::test_further_digits_are_those_of_the_same_two_numbers",
            "tests/mechanisms/test_rounded_normals.py::test_a_sum_near_a_half_takes_digits_for_its_own_value",
        ],
        "The grid and the standard deviation follow from the two parameters alone, and not from the value or its "
        "number of coordinates, which may therefore be private.": [
            "tests/mechanisms/test_gaussian_mechanism.py::test_noise_does_not_depend_on_the_number_of_values",
        ],
        "The value may be a sum of up to 2**20 records' contributions, added up as doubles in any order.": [
            "tests/mechanisms/test_gaussian_mechanism.py::"
            "test_a_sum_in_the_worst_order_moves_by_no_more_than_the_noise_has_room_for",
        ],
        "The event states the same `noise_multiplier` (Dwork & Roth 2014, appendix A; Balle & Wang 2018).": [
            "tests/test_guarantees_noise.py::test_a_mechanism_states_the_noise_it_adds",
        ],
        "`release` charges the accountant before it draws noise.": [
            "tests/mechanisms/test_gaussian_mechanism.py::test_the_charge_stands_when_noise_is_drawn",
            "tests/mechanisms/test_gaussian_mechanism.py::test_a_release_that_the_ceiling_refuses_draws_no_noise",
        ],
        "A value that it rejects is not charged.": [
            "tests/mechanisms/test_gaussian_mechanism.py::test_what_is_no_finite_number_is_refused_without_its_value",
        ],
    },
    PrivateScore: {
        "One row that is replaced by a null row, added or removed moves `total` by at most `sensitivity`, half of "
        "`bound`; replaced by any other row, by at most twice that. The same holds for a unit, however many rows it "
        "has.": [
            "tests/test_units_in_compositions.py::test_what_the_rows_of_a_unit_add_to_a_score_is_cut_off_together",
            "tests/model_selection/test_search.py::test_contributions_of_a_row_are_within_the_bound",
            "tests/model_selection/test_search.py::test_contributions_outside_the_bound_are_cut_off",
            "tests/model_selection/test_search.py::test_what_is_no_finite_number_counts_as_the_worst",
            "tests/model_selection/test_search.py::test_an_exchanged_row_moves_releases_by_twice_their_sensitivity",
        ],
    },
    Errors: {
        "A contribution is a function of its own row, and `PrivateScore` cuts it off at `bound`, the power of the "
        "distance between the bounds, which parameters alone decide.": [
            "tests/model_selection/test_scores.py::test_one_row_moves_a_total_by_at_most_the_sensitivity",
            "tests/model_selection/test_scores.py::test_an_exchanged_row_moves_its_own_releases_alone",
            "tests/model_selection/test_scores.py::test_the_noise_is_in_the_units_of_its_bound",
        ],
    },
    SearchPlan: {
        "`event` is the price of: a split of the rows that no row has a say in; tries, each of which fits one of "
        "`tried` to the part that trains and releases it with a score, of noise multiplier `score_noise`, on the part "
        "that scores; the best of them by that score; then one of `finals`, fitted to all rows.": [
            "tests/model_selection/test_search.py::test_what_ran_is_what_was_priced",
            "tests/model_selection/test_search.py::test_every_try_of_compose_is_paid_for",
            "tests/model_selection/test_search.py::test_the_choice_has_its_exact_law",
            "tests/model_selection/test_search.py::test_the_choice_is_as_private_as_its_price",
        ],
    },
    private_train_test_split: {
        "A record that changes, within the neighbouring relation of the charges to a part, moves no other to another "
        "part.": [
            "tests/model_selection/test_parts.py::test_a_replaced_row_moves_no_other",
            "tests/model_selection/test_parts.py::test_a_unit_is_on_one_side_in_any_table",
            "tests/model_selection/test_parts.py::test_which_neighbours_a_part_is_charged_for",
        ],
        "A ledger takes one split. No call, in any process, puts a unit into both parts.": [
            "tests/model_selection/test_parts.py::test_each_row_is_in_one_part_and_in_the_same_one_again",
            "tests/model_selection/test_parts.py::test_a_moment_is_on_one_side_whatever_it_is_counted_in",
            "tests/model_selection/test_parts.py::test_refused_in_one_line",
            "tests/model_selection/test_parts.py::test_two_processes_at_once_get_the_same_parts",
        ],
    },
    DPGridSearchCV: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, the choice and the final fit included, "
        "if the estimator names its classes and `random_state` is None.": [
            "tests/model_selection/test_search.py::test_a_muted_row_moves_its_own_releases_by_their_sensitivity",
            "tests/model_selection/test_search.py::test_a_row_that_leaves_moves_releases_by_their_sensitivity",
            "tests/model_selection/test_search.py::test_the_whole_costs_the_budget",
            "tests/model_selection/test_search.py::test_fit_publishes_what_is_on_the_list",
        ],
        "A row is in the part that trains or in the part that scores, and no label moves another row.": [
            "tests/model_selection/test_search.py::test_a_muted_row_moves_its_own_releases_by_their_sensitivity",
            "tests/model_selection/test_search.py::test_labels_move_nobody",
        ],
        "With `groups` all of this holds for all rows of one label together: they are in one part, and what they add "
        "to a score is cut off together, where one row would be.": [
            "tests/test_units_in_compositions.py::test_a_unit_trains_or_scores_and_moves_releases_by_their_sensitivity",
            "tests/test_units_in_compositions.py::test_what_the_rows_of_a_unit_add_to_a_score_is_cut_off_together",
            "tests/test_units_in_compositions.py::test_the_price_is_that_of_as_many_rows",
        ],
        "Parameters of all candidates are checked and the accountant is asked before a row is read; rows and labels "
        "are checked, for all candidates alike, before the charge; the accountant is charged once, for all of it.": [
            "tests/_fit/test_refusals.py::test_a_candidate_that_cannot_be_fitted_costs_nothing",
            "tests/_fit/test_refusals.py::test_rows_are_refused_before_the_charge_and_the_ledger_notes_it",
            "tests/model_selection/test_search.py::test_the_accountant_is_charged_once",
            "tests/model_selection/test_search.py::test_the_charge_stands_before_training_reads_a_row",
            "tests/model_selection/test_search.py::test_above_the_ceiling_no_row_is_read_and_nothing_is_charged",
        ],
        "Under random stopping nothing reveals the candidates that lost, nor how many were tried: no attribute, no "
        "entry of the ledger, no warning, no progress.": [
            "tests/model_selection/test_search.py::test_the_number_of_tries_is_not_told",
            "tests/model_selection/test_search.py::test_a_try_that_warns_is_not_heard",
        ],
        "A search over one candidate skips choice and score and costs one fit.": [
            "tests/model_selection/test_search.py::test_a_grid_of_one_costs_one_fit",
        ],
    },
    privacy_report: {
        "Figures are ``epsilon_`` and ``delta_`` of the model, and prices of its ``privacy_event_``.": [
            "tests/report/test_document.py::test_figures_are_those_of_the_model_and_of_its_event",
            "tests/report/test_document.py::test_the_listed_releases_cost_what_the_model_costs",
            "tests/report/test_document.py::test_the_choice_and_the_refit_compose_to_the_whole_search",
            "tests/report/test_document.py::test_an_epsilon_below_its_event_is_refused",
        ],
        "As text and HTML they are never below the exact ones.": [
            "tests/report/test_document.py::test_printed_figures_are_never_below_the_exact_ones",
            "tests/report/test_document.py::test_percentages_round_up",
        ],
        "A report reads no row: fits to neighbouring tables with the same noise have equal reports, if classes are "
        "named.": [
            "tests/report/test_document.py::test_reports_of_neighbouring_tables_are_equal",
        ],
        "The probability of a right guess is at most (e^epsilon + delta) / (1 + e^epsilon), and at most (1 + delta(0)) "
        "/ 2 by the privacy profile delta(epsilon).": [
            "tests/report/test_document.py::test_the_simple_bound_is_reached_by_the_worst_mechanism",
            "tests/report/test_document.py::test_the_bound_by_the_profile_is_the_exact_chance_against_gaussian_noise",
        ],
        "What the fit read without payment, and whether its noise was seeded, is reported as it was at the fit, "
        "without a label and without the seed.": [
            "tests/report/test_document.py::test_classes_that_were_read_are_told_of_and_not_shown",
            "tests/report/test_document.py::test_seeded_noise_is_told_of_and_the_seed_is_not",
            "tests/report/test_document.py::test_a_later_parameter_does_not_change_what_was_secret",
            "tests/report/test_document.py::test_a_new_fit_starts_a_new_record_and_an_instalment_continues_it",
            "tests/report/test_document.py::test_compositions_around_a_fit_are_told_of_each_time",
        ],
    },
    Study: {
        "The models and their scores on public rows, all of them together, are private at the price of `event`, which "
        "is known before a row is read.": [
            "tests/plotting/test_displays.py::test_every_fit_is_charged_repeats_included",
            "tests/plotting/test_displays.py::test_every_fit_has_noise_of_its_own",
            "tests/plotting/test_displays.py::test_the_plan_under_add_remove_does_not_see_the_number_of_rows",
            "tests/plotting/test_displays.py::test_one_row_changed_moves_what_is_released_by_its_bound_and_nothing_else",
        ],
    },
    DPStandardScaler: {
        "With `groups` all of this holds for all rows of one label together: no more of a unit is counted than of one "
        "row.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_count_and_no_sum_by_more_than_its_sensitivity",
        ],
        "``transform`` knows no units.": [
            "tests/test_guarantees_units.py::test_a_raw_table_is_fitted_for_households",
        ],
        "Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
            "skdp/testing/releases.py::check_weights_move_releases_by_the_sensitivity",
        ],
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` "
        "is None.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_fit_costs_what_was_asked_for",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
            "tests/preprocessing/test_purchasing_transformer.py::test_every_fit_draws_noise_of_its_own",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_sensitivity_of_sums_is_the_largest_change",
        ],
        "All that is fitted is a function of noisy counts and sums and of public quantities.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "skdp/testing/releases.py::check_neighbours_move_releases_by_the_sensitivity",
        ],
        "Proofs are in `skdp.preprocessing.histograms.sums.sums_sensitivity` and, for bounds, in "
        "`skdp.preprocessing.histograms.purchase.Purchase`.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_the_sensitivity_of_sums_is_the_largest_change",
            "tests/preprocessing/test_purchasing_transformer.py::test_sums_are_exact_in_any_order",
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_moves_each_round_by_its_sensitivity_at_most",
            "tests/preprocessing/histograms/test_purchase.py::test_the_bound_is_attained",
        ],
        "A gap adds nothing to any count or sum.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_the_null_row_of_zero_out_is_a_row_of_gaps",
        ],
        "``transform`` treats rows one by one.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_changes_its_own_output_and_nothing_else",
        ],
        "A table that is refused is refused before any charge, in one line without a cell.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_bad_tables_are_refused_without_a_charge",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_refusal_shows_no_cell_and_costs_nothing",
            "tests/preprocessing/test_purchasing_transformer.py::test_columns_of_dates_are_refused_without_a_charge",
            "tests/preprocessing/test_purchasing_transformer.py::test_no_number_makes_a_fit_fail_after_its_charge",
        ],
    },
    DPSimpleImputer: {
        "With `groups` all of this holds for all rows of one label together: no more of a unit is counted than of one "
        "row, and of its most frequent values one row in each column, drawn at random.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_count_and_no_sum_by_more_than_its_sensitivity",
            "tests/test_guarantees_units.py::test_a_unit_adds_one_to_one_word_of_each_column",
            "tests/test_guarantees_units.py::test_the_row_that_is_kept_is_drawn_evenly_and_has_no_gap",
        ],
        "``transform`` knows no units.": [
            "tests/test_guarantees_units.py::test_a_raw_table_is_fitted_for_households",
        ],
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` "
        "is None.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_fit_costs_what_was_asked_for",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
            "tests/preprocessing/test_purchasing_transformer.py::test_every_fit_draws_noise_of_its_own",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_sensitivity_of_sums_is_the_largest_change",
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_with_a_word_of_its_own_in_each_column_is_seen_as_rarely_as_delta_says",
        ],
        'With ``strategy="constant"`` no cell is read in ``fit``, and nothing is charged.': [
            "tests/preprocessing/test_purchasing_transformer.py::test_a_constant_is_the_same_whatever_the_cells_are",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_constant_costs_nothing_and_reads_no_cell",
        ],
        "All that is fitted is a function of noisy counts and sums and of public quantities.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "skdp/testing/releases.py::check_neighbours_move_releases_by_the_sensitivity",
            "tests/test_replay.py::test_one_cell_of_words_moves_the_releases_and_nothing_else",
        ],
        "Proofs are in `skdp.preprocessing.histograms.purchase.Purchase` and, for means, in "
        "`skdp.preprocessing.histograms.sums.sums_sensitivity`.": [
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_moves_each_round_by_its_sensitivity_at_most",
            "tests/preprocessing/histograms/test_purchase.py::test_the_bound_is_attained",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_sensitivity_of_sums_is_the_largest_change",
            "tests/preprocessing/test_purchasing_transformer.py::test_sums_are_exact_in_any_order",
        ],
        "A gap adds nothing to any count or sum.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_the_null_row_of_zero_out_is_a_row_of_gaps",
        ],
        "``transform`` treats rows one by one.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_changes_its_own_output_and_nothing_else",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_gap_changes_the_output_of_no_other_row",
        ],
        "A table that is refused is refused before any charge, in one line without a cell.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_bad_tables_are_refused_without_a_charge",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_refusal_shows_no_cell_and_costs_nothing",
            "tests/preprocessing/test_purchasing_transformer.py::test_columns_of_dates_are_refused_without_a_charge",
            "tests/preprocessing/test_purchasing_transformer.py::test_no_number_makes_a_fit_fail_after_its_charge",
        ],
    },
    DPOneHotEncoder: {
        "With `groups` all of this holds for all rows of one label together: in each column one row of a unit is "
        "counted, drawn at random.": [
            "tests/test_guarantees_units.py::test_a_unit_adds_one_to_one_word_of_each_column",
            "tests/test_guarantees_units.py::test_the_row_that_is_kept_is_drawn_evenly_and_has_no_gap",
        ],
        "``transform`` knows no units.": [
            "tests/test_guarantees_units.py::test_a_raw_table_is_fitted_for_households",
        ],
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` "
        "is None.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_fit_costs_what_was_asked_for",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
            "tests/preprocessing/test_purchasing_transformer.py::test_every_fit_draws_noise_of_its_own",
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_with_a_word_of_its_own_in_each_column_is_seen_as_rarely_as_delta_says",
        ],
        "`delta_` covers the threshold: of all columns of a row together, not of each.": [
            "tests/preprocessing/histograms/test_purchase.py::test_the_words_of_one_row_are_named_with_probability_delta_in_all_columns_together",
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_with_a_word_of_its_own_in_each_column_is_seen_as_rarely_as_delta_says",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_threshold_takes_its_part_of_delta",
        ],
        "All that is fitted is a function of one joint release of noisy counts, of a threshold and of public "
        "quantities.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/test_replay.py::test_one_cell_of_words_moves_the_releases_and_nothing_else",
            "tests/preprocessing/histograms/test_purchase.py::test_the_event_of_words_alone",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
        ],
        "Sensitivity, threshold and proof are those of `skdp.preprocessing.histograms.purchase.Purchase`.": [
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_moves_each_round_by_its_sensitivity_at_most",
            "tests/preprocessing/histograms/test_purchase.py::test_the_bound_is_attained",
            "tests/preprocessing/histograms/test_purchase.py::test_the_words_of_one_row_are_named_with_probability_delta_in_all_columns_together",
        ],
        "Named categories are sorted, and do not depend on the order of rows.": [
            "tests/preprocessing/histograms/test_purchase.py::test_words_are_named_sorted_whatever_their_order",
            "tests/preprocessing/histograms/test_purchase.py::test_the_order_of_rows_and_of_keys_changes_nothing",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_order_of_rows_changes_nothing",
        ],
        "Categories of a pandas type that no row has are not counted.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_a_category_of_a_type_that_no_row_has_changes_nothing",
            "tests/preprocessing/histograms/test_purchase.py::test_a_word_that_nobody_has_is_not_counted",
        ],
        "A gap adds nothing to any count.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_the_null_row_of_zero_out_is_a_row_of_gaps",
            "tests/preprocessing/histograms/test_purchase.py::test_a_gap_is_counted_nowhere",
        ],
        "``transform`` treats rows one by one.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_changes_its_own_output_and_nothing_else",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_gap_changes_the_output_of_no_other_row",
        ],
        "A table that is refused is refused before any charge, in one line without a cell.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_bad_tables_are_refused_without_a_charge",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_refusal_shows_no_cell_and_costs_nothing",
            "tests/preprocessing/test_purchasing_transformer.py::test_no_word_makes_a_fit_fail_after_its_charge",
        ],
        "Each row of the output has exactly one 1 for each column, so its norm is the root of the number of columns.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_rows_of_bins_and_categories_have_one_1_for_each_column",
            "tests/preprocessing/test_purchasing_transformer.py::test_one_hot_categories",
        ],
        "It is handed on: a private estimator that comes next uses it where ``data_norm=None``.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_rows_of_bins_and_categories_have_one_1_for_each_column",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_pipeline_has_one_budget",
        ],
    },
    DPQuantileBinner: {
        "With `groups` all of this holds for all rows of one label together: no more of a unit is counted than of one "
        "row.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_count_and_no_sum_by_more_than_its_sensitivity",
        ],
        "``transform`` knows no units.": [
            "tests/test_guarantees_units.py::test_a_raw_table_is_fitted_for_households",
        ],
        "Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
            "skdp/testing/releases.py::check_weights_move_releases_by_the_sensitivity",
        ],
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` "
        "is None.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_fit_costs_what_was_asked_for",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
            "tests/preprocessing/test_purchasing_transformer.py::test_every_fit_draws_noise_of_its_own",
        ],
        "All that is fitted is a function of noisy counts, released for all columns together, and of public "
        "quantities.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "skdp/testing/releases.py::check_neighbours_move_releases_by_the_sensitivity",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
        ],
        "Releases, sensitivity and proof are those of `skdp.preprocessing.histograms.purchase.Purchase`.": [
            "tests/preprocessing/histograms/test_purchase.py::test_a_row_moves_each_round_by_its_sensitivity_at_most",
            "tests/preprocessing/histograms/test_purchase.py::test_the_bound_is_attained",
            "tests/preprocessing/histograms/test_purchase.py::test_noise_is_that_of_the_event",
        ],
        "The price does not depend on the number of columns: they share it, and the noise grows with its root.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_the_price_does_not_depend_on_the_number_of_columns",
            "tests/preprocessing/test_purchasing_transformer.py::test_noise_grows_with_the_root_of_the_number_of_columns",
        ],
        "A gap adds nothing to any count.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_the_null_row_of_zero_out_is_a_row_of_gaps",
            "tests/preprocessing/histograms/test_purchase.py::test_a_gap_is_counted_nowhere",
        ],
        "``transform`` treats rows one by one.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_changes_its_own_output_and_nothing_else",
        ],
        "A table that is refused is refused before any charge, in one line without a cell.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_bad_tables_are_refused_without_a_charge",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_refusal_shows_no_cell_and_costs_nothing",
            "tests/preprocessing/test_purchasing_transformer.py::test_columns_of_dates_are_refused_without_a_charge",
            "tests/preprocessing/test_purchasing_transformer.py::test_no_number_makes_a_fit_fail_after_its_charge",
        ],
        "With one-hot output each row has exactly one 1 for each column, so its norm is the root of the number of "
        "columns.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_rows_of_bins_and_categories_have_one_1_for_each_column",
            "tests/preprocessing/test_purchasing_transformer.py::test_bins_of_bought_edges",
        ],
        "It is handed on: a private estimator that comes next uses it where ``data_norm=None``.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_rows_of_bins_and_categories_have_one_1_for_each_column",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_pipeline_has_one_budget",
        ],
    },
    describe: {
        "The description is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if "
        "`random_state` is None.": [
            "tests/statistics/test_table_release.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/statistics/test_table_release.py::test_what_is_bought_is_moved_by_no_more_either",
            "tests/statistics/test_table_release.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
        ],
        "With `groups` it is so for all rows of one label together: their weights add up to 1 at most.": [
            "tests/statistics/test_table_release.py::test_one_unit_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
        "With `sample_weight` a row weighs 1 at most, and what all weigh together is in no figure but through noise.": [
            "tests/statistics/test_table_release.py::test_one_weight_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/statistics/test_describe.py::test_a_row_counts_as_much_as_its_weight",
        ],
        "All of it is a function of noisy releases, whose sensitivities are proved in the notes of "
        "`skdp.statistics.table_release.TableRelease` and `skdp.preprocessing.histograms.purchase.Purchase`, and of "
        "what is public: parameters, names and types of the columns, and the number of rows but under "
        "``add_remove``.": [
            "tests/statistics/test_table_release.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/statistics/test_table_release.py::test_a_gap_is_imputed_by_a_noisy_mean_and_not_by_the_exact_one",
            "tests/statistics/test_describe.py::test_the_number_of_rows_is_not_in_a_description_where_it_is_private",
        ],
        "The accountant is charged before the rows are counted.": [
            "tests/statistics/test_describe.py::test_a_charge_is_made_once_and_before_the_release",
        ],
        "Refusals are one line without a cell and are not charged; no number, text or date is refused or warned of. A "
        "column with a cell of another kind, such as a list or a complex number, is refused.": [
            "tests/statistics/test_describe.py::test_refusals_are_one_line_and_cost_nothing",
            "tests/statistics/test_describe.py::test_no_row_is_warned_of_or_refused",
        ],
    },
    TableRelease: {
        "`measure` costs as much as one Gaussian release of this noise multiplier.": [
            "tests/statistics/test_table_release.py::test_the_noise_of_all_releases_is_that_of_one",
            "tests/statistics/test_table_release.py::test_the_noise_of_counts_has_the_deviation_that_is_stated",
        ],
        "What it returns is a function of its releases and of what is public.": [
            "tests/statistics/test_table_release.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/statistics/test_table_release.py::test_one_unit_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
    },
    dp_bounds: {
        "With `groups` all of this holds for all rows of one label together: no more of a unit is counted than of one "
        "row.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_count_and_no_sum_by_more_than_its_sensitivity",
        ],
        "The result is (epsilon, delta)-differentially private for one row, if `random_state` is None.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/preprocessing/test_purchasing_transformer.py::test_a_fit_costs_what_was_asked_for",
            "tests/preprocessing/test_purchasing_transformer.py::test_the_noise_that_is_added_is_the_noise_that_is_paid",
            "tests/preprocessing/test_purchasing_transformer.py::test_every_fit_draws_noise_of_its_own",
        ],
        "A row adds 1 to one count of each of d columns, or nothing where it has a gap: the sensitivity of all "
        "counts is sqrt(d), and sqrt(d / 2), half of the largest change, under ``replace_one``.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_a_row_adds_1_to_one_count_of_bounds_of_each_column",
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
            "tests/preprocessing/histograms/test_purchase.py::test_the_bound_is_attained",
        ],
        "The noise is normal; everything else is post-processing.": [
            "tests/mechanisms/test_gaussian_mechanism.py::test_noise_has_the_standard_deviation_that_is_priced",
            "tests/mechanisms/test_streams.py::test_noise_is_normal",
            "tests/preprocessing/test_purchasing_transformer.py::test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else",
        ],
        "The accountant is charged before the noise is drawn.": [
            "tests/preprocessing/test_purchasing_transformer.py::test_the_charge_stands_before_noise_is_drawn",
        ],
    },
    WeightReader: {
        "A share is a number in [0, 1], a function of the weight of its own row and of the bound.": [
            "tests/_checks/test_weights.py::test_shares_are_weights_divided_by_the_bound_and_cut_at_it",
            "tests/_checks/test_weights.py::test_shares_of_any_two_numbers_lie_between_0_and_1",
            "tests/_checks/test_weights.py::test_a_share_depends_on_no_other_weight",
        ],
        "It multiplies what the row adds to a sum, which was clipped before.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
            "tests/_kernels/test_losses.py::test_weights_act_after_the_clip",
            "tests/_kernels/test_linear.py::test_a_weight_scales_a_gradient_after_its_clip",
        ],
        "So no weight raises what a row may change, and a row of weight 0 is the null record.": [
            "tests/_checks/test_weights.py::test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else",
            "tests/_checks/test_weights.py::test_what_a_row_of_weight_0_holds_changes_no_bit",
        ],
        "Weights that are all equal to the bound have shares of exactly 1, and give the model of no weights; where the "
        "sum of weights is released because there are some, but for the noise.": [
            "tests/_checks/test_weights.py::test_weights_equal_to_the_bound_give_the_model_of_no_weights_but_for_the_noise",
            "tests/_checks/test_weights.py::test_weights_equal_to_the_bound_give_the_model_of_no_weights",
            "tests/_checks/test_weights.py::test_weights_equal_to_the_bound_search_as_without_weights",
        ],
    },
    count_people: {
        "With `units`, what the rows of a unit add together is clipped to sqrt(d).": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
        ],
        "A row of weight w in [0, 1] adds w to one cell of each of d columns, and a row of weight 0, the null "
        "record, adds nothing; so one row moves the counts by at most sqrt(d), and by at most sqrt(2 d) if it is "
        "replaced.": [
            "tests/ensemble/test_random_trees.py::test_a_row_moves_the_counts_by_their_sensitivity_at_most",
            "tests/ensemble/test_random_trees.py::test_counts_and_sums_are_one_gaussian_release",
        ],
        "All counts are one Gaussian release.": [
            "tests/ensemble/test_random_trees.py::test_counts_and_sums_are_one_gaussian_release",
        ],
        "Shares of the cells, and the trees that are grown from them, follow from it and from what is public.": [
            "tests/ensemble/test_random_trees.py::test_trees_follow_from_noisy_counts_and_what_is_public",
            "tests/test_guarantees_neighbours.py::test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "tests/ensemble/test_random_trees.py::test_a_muted_row_of_a_raw_table_moves_releases_by_the_clip",
        ],
    },
    sum_targets: {
        "With `units`, the sum of the rows of a unit is clipped to sqrt(3).": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
        ],
        "A row of weight w in [0, 1] and target y in [-1, 1] adds (w, w y, w y^2), whose norm is at most sqrt(3); a "
        "row of weight 0, the null record, adds nothing.": [
            "tests/ensemble/test_random_trees.py::test_counts_and_sums_are_one_gaussian_release",
            "tests/ensemble/test_random_trees.py::test_a_row_moves_the_sums_of_targets_by_their_sensitivity_at_most",
        ],
        "The sums are one Gaussian release.": [
            "tests/ensemble/test_random_trees.py::test_counts_and_sums_are_one_gaussian_release",
        ],
        "The units of the targets follow from it and from what is public.": [
            "tests/ensemble/test_random_trees.py::test_units_follow_from_the_noisy_sums",
        ],
    },
    SumOfTerms: {
        "With units the sum of the rows of a unit is clipped to that norm.": [
            "tests/test_guarantees_units.py::test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else",
        ],
        "A row of weight w in [0, 1] adds w times its terms, a vector of norm ``means.sensitivity`` at most that "
        "depends on no other row; a row of weight 0, the null record, adds nothing.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_sums_are_of_weighted_rows_however_they_come_in_blocks",
        ],
    },
    OutcomeCounts: {
        "A row of class y and weight w in [0, 1] adds w to the count of y, and a row of weight 0, the null record, "
        "adds nothing; with d labels, one such count each: a vector of norm sqrt(d) at most.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_run_starts_at_released_class_counts",
        ],
        "If a row is replaced, the counts move by sqrt(2 d) at most.": [
            "tests/_training/test_offset.py::test_replaced_row_moves_counts_by_twice_declared_sensitivity",
            "tests/_training/test_offset.py::test_counts_of_labels_have_sensitivity_of_adjacency",
            "tests/test_guarantees_neighbours.py::test_exchanging_a_row_moves_releases_by_twice_the_clip",
        ],
    },
    ClassMeans: {
        "A row of class y and probabilities p adds e - p, where e is 1 at y and 0 elsewhere, the matrix D = diag(p) - "
        "p p^T, and p / 2: a vector of norm 3/2 at most.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_a_row_of_the_surest_error_has_the_norm_of_the_sensitivity",
        ],
        "Several labels a row add one such vector each.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/_training/test_offset.py::test_a_row_of_the_surest_error_has_the_norm_of_the_sensitivity",
        ],
    },
    TargetMean: {
        "A row of the error e, cut to [-1, 1] in units of `largest`, adds (1, e), whose norm is at most sqrt(2).": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
            "tests/ensemble/test_random_trees.py::test_errors_are_those_of_the_published_model",
        ],
        "The cut of `at_noise` is a function of public numbers, and the norm does not depend on it.": [
            "tests/_training/test_offset.py::test_fit_cuts_errors_by_noise_and_public_rows",
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
        ],
    },
    CountMean: {
        "A row of the target y and the prediction m, both in [0, 1] in units of `largest`, adds (m, y - m), whose norm "
        "is at most sqrt(2): its square is convex in y and in m, and at most 2 where both are 0 or 1.": [
            "tests/_training/test_offset.py::test_a_row_moves_the_sums_by_their_sensitivity_at_most",
        ],
    },
    GroupedModel: {
        "Up to rounding, a step has the very distribution that it has on all rows.": [
            "tests/_training/models/test_grouped.py::test_a_full_batch_has_the_sum_of_all_rows",
            "tests/_training/models/test_grouped.py::test_a_lot_has_the_sum_of_its_rows",
            "tests/_training/models/test_grouped.py::test_lots_have_the_sums_of_poisson_lots",
            "tests/_training/models/test_grouped.py::test_noise_and_divisor_are_those_of_all_rows",
            "tests/_kernels/test_binomial.py::test_copies_are_in_at_the_rate_of_the_event_and_independently",
            "tests/_kernels/test_binomial.py::test_counts_have_the_binomial_law",
        ],
    },
    clip_residuals: {
        "What is left has a norm of at most C (1 + 8 u) / length over the outputs, u = 2**-53.": [
            "tests/_kernels/test_losses.py::test_no_residual_passes_the_clip_in_exact_arithmetic",
            "tests/_kernels/test_losses.py::test_no_residual_passes_the_clip",
        ],
    },
    SecretStream: {
        "A stream gives no number twice, unless `seek` takes it back, which seeded runs alone do.": [
            "tests/mechanisms/test_streams.py::test_keystream_is_aes_in_counter_mode",
            "tests/mechanisms/test_streams.py::test_cutting_normals_changes_nothing",
            "tests/mechanisms/test_streams.py::test_a_second_caller_between_any_two_lines_sees_no_number_again",
            "tests/mechanisms/test_streams.py::test_threads_share_no_number",
            "tests/_training/test_checkpoint.py::test_without_a_seed_the_noise_is_fresh",
            "tests/_training/test_checkpoint.py::test_no_state_of_a_generator_in_the_file_unless_seeded",
        ],
        "Whoever draws takes the state away in one step, and puts it back afterwards.": [
            "tests/mechanisms/test_streams.py::test_a_second_caller_between_any_two_lines_sees_no_number_again",
        ],
        "A second caller in between (a thread, the handler of a signal) is refused, and so is every caller after an "
        "interrupt or an error in the middle of a draw.": [
            "tests/mechanisms/test_streams.py::test_a_second_caller_between_any_two_lines_sees_no_number_again",
            "tests/mechanisms/test_streams.py::test_an_interrupt_between_any_two_lines_brings_no_number_back",
            "tests/mechanisms/test_streams.py::test_an_error_in_the_middle_of_a_draw_ends_the_stream",
            "tests/mechanisms/test_streams.py::test_threads_share_no_number",
        ],
        "A forked process is refused too, since its parent draws the same numbers.": [
            "tests/mechanisms/test_streams.py::test_a_forked_child_draws_nothing_from_the_streams_of_its_parent",
        ],
        "A stream is never pickled, printed or stored on an estimator: its state would reveal the noise that it "
        "made.": [
            "tests/mechanisms/test_streams.py::test_streams_are_not_copied",
            "tests/mechanisms/test_streams.py::test_repr_does_not_hold_the_key",
            "skdp/testing/copies.py::check_no_stream_is_kept",
        ],
    },
    PrivacyUtilityDisplay.from_estimator: {
        "Models and scores are (`epsilon_total_`, `delta_`)-differentially private for one row of `X` and `y`, all of "
        "them together, if there is no `baseline`, `random_state` is None and the estimator names its classes.": [
            "tests/plotting/test_displays.py::test_one_row_changed_moves_what_is_released_by_its_bound_and_nothing_else",
            "tests/plotting/test_displays.py::test_a_leak_is_told_once_or_raised_before_any_charge",
            "tests/plotting/test_displays.py::test_classes_that_are_read_are_told",
        ],
        "`privacy_event_` composes every fit, repeats included.": [
            "tests/plotting/test_displays.py::test_every_fit_is_charged_repeats_included",
            "tests/plotting/test_displays.py::test_a_pipeline_is_fitted_at_each_of_the_budgets",
        ],
        "With `groups` all of this holds for all rows of one label together.": [
            "tests/plotting/test_displays.py::test_one_row_changed_moves_what_is_released_by_its_bound_and_nothing_else",
            "tests/plotting/test_displays.py::test_a_study_for_households_is_charged_to_a_ledger_of_them",
        ],
        "The accountant is asked before a row is read, and charged once, for all fits, before training reads the "
        "rows.": [
            "tests/plotting/test_displays.py::test_a_ceiling_refuses_before_a_row_is_read_and_charges_nothing",
            "tests/plotting/test_displays.py::test_the_study_is_one_plan_under_a_ceiling",
            "tests/plotting/test_displays.py::test_one_row_changed_moves_what_is_released_by_its_bound_and_nothing_else",
        ],
        "Parameters, rows, test rows and scorer are checked before the charge; the scorer is tried on a model that is "
        "fitted to the test rows.": [
            "tests/plotting/test_displays.py::test_what_is_refused_costs_nothing_and_shows_no_cell",
            "tests/plotting/test_displays.py::test_models_that_cannot_be_studied_are_refused",
            "tests/plotting/test_displays.py::test_without_matplotlib_nothing_is_paid",
        ],
    },
    to_onnx: {
        "The graph is a function of the fitted state, which is released already: it costs nothing.": [
            "tests/export/test_export_facts.py::test_an_export_asks_no_ledger_and_no_row",
        ],
        "Of a ledger nothing is written: no path, label, note, refusal or other charge.": [
            "tests/export/test_export_facts.py::test_nothing_else_of_a_ledger_is_written",
        ],
        "The metadata hold what `skdp.export.facts.FACTS` lists.": [
            "tests/export/test_export_facts.py::test_the_list_is_what_is_written",
        ],
    },
    to_sklearn: {
        "The result is a function of fitted attributes, which are released already: it costs nothing.": [
            "tests/export/test_export_facts.py::test_an_export_asks_no_ledger_and_no_row",
        ],
        "It holds neither ledger, nor seed, nor budget.": [
            "tests/export/test_export_facts.py::test_nothing_else_of_a_ledger_is_written",
            "tests/export/test_sklearn_objects.py::test_values_between_bounds_are_treated_alike",
        ],
    },
    skops_types: {
        "A file contains the fitted state, which is released already, at no additional privacy cost.": [
            "tests/export/test_skops.py::test_skops_file_restores_estimator",
        ],
        "It contains no accountant, no path and no seed.": [
            "tests/export/test_skops.py::test_skops_file_holds_public_types_and_no_secret",
        ],
        "The loaded model has `accountant` and `random_state` None.": [
            "tests/export/test_skops.py::test_skops_file_holds_public_types_and_no_secret",
        ],
        "Loading calls and imports nothing that a file could choose, except constructors of these types and of the "
        "events.": [
            "tests/export/test_skops.py::test_altered_state_is_rejected",
            "tests/export/test_skops.py::test_function_in_skops_file_needs_trust",
        ],
        "An `epsilon_` below the privacy cost of the events in the file is rejected.": [
            "tests/export/test_skops.py::test_skops_file_with_smaller_epsilon_is_rejected",
            "tests/export/test_skops.py::test_altered_state_is_rejected",
        ],
        "A file whose events were replaced cannot be recognized: load files from a trusted source.": [
            "tests/export/test_skops.py::test_altered_state_is_rejected",
        ],
    },
}


def documented(thing):
    """A class or function, and all that is written in it: methods, properties and classes."""
    yield thing
    for each in vars(thing).values() if isinstance(thing, type) else ():
        each = getattr(each, "fget", getattr(each, "func", getattr(each, "__func__", each)))
        if hasattr(each, "__qualname__") and each.__qualname__.startswith(f"{thing.__qualname__}."):
            yield from documented(each)


def name_of(thing):
    return f"{thing.__module__}.{thing.__qualname__}"


def written_guarantees():
    """Names of all that has guarantees in its docstring, compiled and private functions too."""
    names = [module.name for module in pkgutil.walk_packages(skdp.__path__, "skdp.")]
    for module in map(importlib.import_module, (name for name in names if not name.endswith("__main__"))):
        own = [each for each in vars(module).values() if getattr(each, "__module__", None) == module.__name__]
        for thing in own:
            for each in documented(thing) if hasattr(thing, "__qualname__") else ():
                if "**Guarantees.**" in (each.__doc__ or ""):
                    yield name_of(each)


def test_all_guarantees_that_are_written_are_in_the_table(request):
    found = set(written_guarantees())
    assert found == {name_of(subject) for subject in SENTENCES}
    sources = (request.config.rootpath / "skdp").rglob("*.py")  # a second look, at what no module might lead to
    assert sum(path.read_text().count("**Guarantees.**") for path in sources) == len(SENTENCES)


def test_each_guarantee_that_is_written_has_a_test(request):
    """And each that has a test is written: a changed sentence fails here, and asks what tests it now."""
    read = functools.cache(lambda path: (request.config.rootpath / path).read_text())
    for subject in SENTENCES:
        section = inspect.getdoc(subject).split("**Guarantees.**")[1]
        text = " ".join(section.strip().split("\n\n")[0].split())
        for sentence, tests in SENTENCES[subject].items():
            assert sentence in text, subject
            text = text.replace(sentence, "")
            for test in tests:
                path, _, name = test.rpartition("::")
                assert f"def {name}(" in read(path), f"{test} does not exist"
        text = re.sub(r"\([^()]*\d{4}[^()]*\)", "", text)  # references
        assert not re.search(r"\w", text), f"no test is named for: {text}"


@pytest.mark.parametrize("page", ["guarantees", "pitfalls"])
def test_each_test_that_a_page_names_exists(page, request):
    texts = {path.name: path.read_text() for path in (request.config.rootpath / "tests").rglob("test_*.py")}
    text = (request.config.rootpath / "docs" / f"{page}.md").read_text()
    named = re.findall(r"(test_\w+\.py)(?:::(\w+))?", text)
    assert named
    missing = [f"{file}::{name}" for file, name in named if f"def {name}" not in texts.get(file, "")]
    assert not missing
