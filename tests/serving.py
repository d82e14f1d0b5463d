"""Predictions of exported graphs, fed by the lines that docs/deployment.md gives to servers."""

import functools
import json
import re

import numpy as np
import onnxruntime
import pages

NO_ROW_MOVES_BY = 1e-6
"""What the page promises, relative to 1 + the value."""


@functools.cache
def lines_of_the_page():
    """The names that the block with ``feed`` defines."""
    text = (pages.ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    names = {}
    exec(next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def feed" in block), names)
    return names


def session_of(graph):
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def served(graph, table):
    """Outputs by name."""
    session = session_of(graph)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, lines_of_the_page()["feed"](session, table)), strict=True))


def metadata_of(graph):
    return {each.key: json.loads(each.value) for each in graph.metadata_props}["skdp"]


def assert_served_alike(model, graph, table):
    """Every output is what the method of its name returns; classes are equal, but for ties of rounding."""
    found = served(graph, table)
    assert found
    for method, values in found.items():
        wanted = getattr(model, method)(table)
        wanted = wanted.toarray() if hasattr(wanted, "toarray") else np.asarray(wanted)
        assert values.shape == wanted.shape, method
        if wanted.dtype.kind == "f" and method != "predict":
            assert np.array_equal(np.isnan(values), np.isnan(wanted)), method
        if wanted.dtype.kind == "f":
            differ = ~np.isnan(wanted) & (values != wanted)
            apart = np.abs(values[differ] - wanted[differ]) / (1.0 + np.abs(wanted[differ]))
            assert (apart < NO_ROW_MOVES_BY).all(), (method, apart.max())
        else:
            assert (values == wanted).all(), method
