"""Mistakes in public steps, and in warnings about other people's estimators."""

from mutant import mutant
from paths import CALLERS, CONFIG, MADE_UP, PUBLIC, ROW_WISE, RULES

MUTANTS = [
    mutant(
        "a public step known by its tag and not by the list",
        (
            PUBLIC,
            "    if rule is None:\n        yield name",
            "    tags = getattr(step, '__sklearn_tags__', None)\n"
            "    if rule is None and not isinstance(step, type) and tags is not None and not tags().requires_fit:\n"
            "        return\n"
            "    if rule is None:\n        yield name",
        ),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "a subclass taken for the public step it derives from",
        (
            PUBLIC,
            "rule = RULES.get(type(step))",
            "rule = next((rule for cls, rule in RULES.items() if isinstance(step, cls)), None)",
        ),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "a method replaced on a public step",
        (PUBLIC, "if any(callable(getattr(type(step), name, None)) for name in vars(step)):", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "the threshold of sparse columns not looked at",
        (RULES, "if not _is_number(step.sparse_threshold) or step.sparse_threshold != 0:", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "columns chosen by a function of the rows",
        (RULES, "if any(callable(columns) for _, _, columns in step.transformers):", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "the remainder of a ColumnTransformer not looked at",
        (PUBLIC, ', ("remainder", step.remainder)]', "]"),
        tests="public_rules",
        select="parts_are_looked_at",
    ),
    mutant(
        "parts of a public step not looked at",
        (PUBLIC, "for part_name, part in parts_of(step):", "for part_name, part in []:"),
        tests="public_rules",
        select="parts_are_looked_at",
    ),
    mutant(
        "columns added where a row has a gap",
        (RULES, "if step.add_indicator is not False:", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "a column that is dropped if it is empty",
        (RULES, "if step.keep_empty_features is not True:", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "the encoder that warns of one unknown category",
        (RULES, 'elif step.drop is not None and step.handle_unknown != "error":', "elif False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "categories of which one list is found in the rows",
        (
            RULES,
            "any(type(each) not in _LISTS for each in given)",
            "any(not hasattr(each, '__len__') for each in given)",
        ),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "weights of a union that are handed its rows",
        (
            RULES,
            "if type(weights) is not dict or any(type(each) not in _NUMBERS for each in weights.values()):",
            "if False:",
        ),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "parameters that are subclasses of what is plain",
        (RULES, "    kind = type(value)\n    if kind in", "    kind = type(value).__mro__[-2]\n    if kind in"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "steps that work on the caller's rows",
        (RULES, "if step.copy is not True:", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "a union that joins by index what was numbered anew",
        (PUBLIC, 'if any(output_of(part) != "pandas" for part in parts):', "if False:"),
        tests="public_rules",
        select="joined",
    ),
    mutant(
        "categories of whole numbers, which a gap makes floats",
        (PUBLIC, 'if getattr(listed, "kind", None) in ("i", "u", "b"):', "if False:"),
        tests="public_steps",
        select="types_one_row",
    ),
    mutant(
        "any function in a FunctionTransformer",
        (
            RULES,
            "elif func is not None and type(func) is not RowWise:",
            "elif func is not None and not callable(func):",
        ),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "any ufunc in a FunctionTransformer",
        (RULES, "if any(func is ufunc for ufunc in _ELEMENTWISE):", "if isinstance(func, np.ufunc):"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "a ufunc that takes values of other rows",
        (RULES, "if step.kw_args:", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "an inverse that is compared on some rows",
        (
            RULES,
            "if func is not None and step.inverse_func is not None and step.check_inverse is not False:",
            "if False:",
        ),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "knots whose zeros are stored as other rows demand",
        (RULES, "if step.sparse_output is not False:", "if False:"),
        tests="public_rules",
        select="reads_or_may_read",
    ),
    mutant(
        "single precision that a row which leaves rounds otherwise",
        (PUBLIC, 'if double and any(kind in ("float32", "float16") for kind in kinds):', "if False:"),
        tests="public_steps",
        select="single_precision",
    ),
    mutant(
        "callbacks of a public step that see its rows",
        (PUBLIC, 'if vars(step).get("_skl_callbacks"):', "if False:"),
        tests="public_rules",
        select="callbacks",
    ),
    mutant(
        "public steps that run in threads, where numpy warns of a row",
        (PUBLIC, ', joblib.parallel_config(backend="sequential"):', ":"),
        tests="public_steps",
        select="logarithm",
    ),
    mutant(
        "a marked function believed without a test",
        (ROW_WISE, "if keywords or schema not in self._passed:", "if False:"),
        tests="row_wise",
        select="found_out",
    ),
    mutant(
        "a marked function tested without gaps",
        (
            MADE_UP,
            "for values in (_draw_tame, _draw_signed, _draw_coded, _draw_gapped, _draw_wild):",
            "for values in (_draw_tame, _draw_signed, _draw_coded):",
        ),
        tests="row_wise",
        select="found_out",
    ),
    mutant(
        "a marked function tested without the codes for a missing value",
        (
            MADE_UP,
            "for values in (_draw_tame, _draw_signed, _draw_coded, _draw_gapped, _draw_wild):",
            "for values in (_draw_tame, _draw_signed, _draw_gapped, _draw_wild):",
        ),
        tests="row_wise",
        select="codes_replaced or words_for",
    ),
    mutant(
        "gaps made up in columns of numbers alone",
        (MADE_UP, "    if isinstance(dtype, np.dtype):\n        return", "    if True:\n        return"),
        tests="row_wise",
        select="gaps_filled_in or any_type",
    ),
    mutant(
        "whole numbers made up without negative ones",
        (MADE_UP, "np.clip(whole, *_narrow_limits(dtype))", "np.clip(whole, 0, _narrow_limits(dtype)[1])"),
        (MADE_UP, "CODES = (-99999, -9999, -999, -99, -9, -1, 0,", "CODES = (0,"),
        (MADE_UP, "extremes = (0, *_limits(dtype))", "extremes = (0, _limits(dtype)[1])"),
        tests="row_wise",
        select="negative_and_extreme",
    ),
    mutant(
        "a marked function that gives a row the label of another",
        (ROW_WISE, "        if not _keeps_index(rows, made):", "        if False:"),
        tests="row_wise",
        select="index",
    ),
    mutant(
        "a marked function that works on the caller's rows",
        (ROW_WISE, "if not (_same(table, given) and _keeps_index(table, given)):", "if False:"),
        tests="row_wise",
        select="works_in_place",
    ),
    mutant(
        "warnings of made-up rows, which the first fit alone gives",
        (ROW_WISE, "with silence(), np.errstate", "with np.errstate"),
        tests="row_wise",
        select="no_warning_of_a_row",
    ),
    mutant(
        "warnings of a row, which NumPy's settings do not stop",
        (PUBLIC, "with silence(), np.errstate", "with np.errstate"),
        tests="row_wise",
        select="no_warning_of_a_row",
    ),
    mutant(
        "overlapping silences that restore the filters each found",
        (CONFIG, "filters[:] = [each for each in filters if each is not mine]", "filters[:] = before"),
        (
            CONFIG,
            "            found.insert(0, mine)",
            "            before = list(found)\n            found.insert(0, mine)",
        ),
        tests="config",
        select="silence",
    ),
    mutant(
        "a marked function tested on the rows themselves",
        (ROW_WISE, "else list(made_up(like))", "else [like]"),
        tests="row_wise",
        select="made_up_rows_hold or never_sees",
    ),
    mutant(
        "a marked function that drops real rows",
        (ROW_WISE, "        if _count(made) != _count(rows):", "        if False:"),
        tests="row_wise",
        select="real_rows",
    ),
    mutant(
        "a private search inside a calibration, in silence",
        (
            CALLERS,
            '        if origin == "ours":\n            function = None\n            continue\n',
            '        if origin == "ours":\n            return found\n',
        ),
        tests="callers",
        select="told_once and (search or budgeted)",
    ),
    mutant(
        "a user's estimator that fits ours, in silence",
        (
            CALLERS,
            'if origin == "sklearn" or frame.f_code.co_name.startswith(_FITS) else None',
            'if origin == "sklearn" else None',
        ),
        tests="callers",
        select="strange",
    ),
    mutant(
        "a reading step of a plain pipeline, in silence",
        (CALLERS, "    if faults:\n", "    if False:\n"),
        tests="callers",
        select="told_once and (pipeline or nested or union)",
    ),
    mutant(
        "several budgets of a plain pipeline, in silence",
        (CALLERS, "    if len(private) > 1:\n", "    if False:\n"),
        tests="callers",
        select="told_once and (steps or selected)",
    ),
    mutant(
        "a subclass of a pipeline taken for it",
        (CALLERS, "(None if is_known else _describe_unknown(kind))", "None"),
        tests="callers",
        select="told_once and own",
    ),
    mutant(
        "a leak told of before it is raised",
        (
            CALLERS,
            '            report_leak(f"',
            '            _mark_reported(token, layer.title)\n            report_leak(f"',
        ),
        tests="callers",
        select="raised_for_each",
    ),
    mutant(
        "one composition told of for all",
        (
            CALLERS,
            "    return entry is not None and entry[0]() is token is not None and title in entry[1]",
            "    return any(title in titles for _, titles in _reported.values())",
        ),
        tests="callers",
        select="another_object_again",
    ),
    mutant(
        "a long-lived scorer that silences later searches",
        (CALLERS, "return function if run is None else function._replace(owner=run)", "return function"),
        tests="callers",
        select="lives_long",
    ),
    mutant(
        "the stack of a fit kept alive",
        (CALLERS, "list(_iterate_frames(sys._getframe().f_back))", "list(_iterate_frames(sys._getframe()))"),
        tests="callers",
        select="kept_alive",
    ),
]
