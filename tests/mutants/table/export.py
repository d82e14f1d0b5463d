"""Mistakes in exports: what they say, what they leave out, and what goes on from them."""

from mutant import mutant
from paths import EXPORT

FACTS, MODELS, TEXT = EXPORT + "facts.py", EXPORT + "onnx_models.py", EXPORT + "json_text.py"
ONNX = EXPORT + "onnx_model.py"
STEPS, TABLE, TREES = EXPORT + "onnx_steps.py", EXPORT + "onnx_table.py", EXPORT + "onnx_trees.py"

MUTANTS = [
    mutant(
        "a seed in a text",
        (TEXT, '"n_jobs", "random_state", "steps"', '"n_jobs", "steps"'),
        tests="json_text export_facts",
        select="seed",
    ),
    mutant(
        "a path of a file of training in a text",
        (TEXT, '"accountant", "checkpoint", "memory"', '"accountant", "memory"'),
        tests="json_text",
        select="no_path",
    ),
    mutant(
        "a seeded fit called secret",
        (FACTS, '"seeded" if SEED in kinds', '"secret" if SEED in kinds'),
        tests="export_facts",
        select="seed",
    ),
    mutant(
        "a model that was read continues at the price of the new run alone",
        (TEXT, "if event is not None:", "if event is None:"),
        tests="json_text",
        select="continues",
    ),
    mutant(
        "a text that writes any attribute",
        (TEXT, "if not _is_public_result(key):", "if not key:"),
        tests="json_text",
        select="public_attributes",
    ),
    mutant(
        "rows that are multiplied without their clip",
        (
            MODELS,
            "scaled = graph.scaled_down(rows.numbers(graph, model), float(model.data_norm_))",
            "scaled = rows.numbers(graph, model)",
        ),
        tests="onnx_model",
        select="linear",
    ),
    mutant(
        "a category that is not listed is a gap",
        (TABLE, "default_int64=other", "default_int64=gap"),
        tests="onnx_model",
        select="raw_columns and bins",
    ),
    mutant(
        "gaps of numbers on the wrong side of a tree",
        (TREES, "int(trees.gaps_right[t, node])", "0"),
        tests="onnx_model",
        select="raw_columns and trees",
    ),
    mutant(
        "levels of a tree that change sides",
        (TREES, "children[sides[level]], below", "children[1 - sides[level]], below"),
        tests="onnx_model drawn_frames",
        select="raw_columns and trees or some_drawn",
    ),
    mutant(
        "targets of a graph that are logarithms",
        (MODELS, 'graph.op("Exp", values) if scale.is_log else values', "values"),
        tests="onnx_model",
        select="logarithms",
    ),
    mutant(
        "centers of a clustering that are not scaled",
        (MODELS, "np.array([1])), model._fitted_centers)", "np.array([1])), model.cluster_centers_)"),
        tests="onnx_model",
        select="clusters",
    ),
    mutant(
        "a calibrated classifier that takes the scores of its own",
        (ONNX, "chances = _mapped(graph, model.map_, ", "chances = (lambda _, each: each)(model.map_, "),
        tests="onnx_model",
        select="sigmoid or isotonic",
    ),
    mutant(
        "what a fitted estimator cost is left out of an export",
        (FACTS, "[model, *_priced_parts(model.estimator_)] if is_around else [model]", "[model]"),
        tests="export_facts",
        select="around",
    ),
    mutant(
        "numbers that are standardized beyond their bounds",
        (STEPS, "made = graph.between(rows.numbers(graph, step), low, high)", "made = rows.numbers(graph, step)"),
        tests="onnx_model",
        select="scaler",
    ),
]
