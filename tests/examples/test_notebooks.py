"""Examples as notebooks: they have no command line of their own, and run up to where work begins."""

import ast
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_options_are_read_without_the_command_line_of_the_kernel(script, monkeypatch):
    """What parses the options runs as in a cell: there is no `__file__`, and the arguments are those of the kernel."""
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "kernel.json"])
    tree = ast.parse(script.read_text(encoding="utf-8"))
    (function,) = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and parses(each)]
    parser = ast.unparse(next(each for each in function.body if "parse_args" not in ast.unparse(each)
                              and "ArgumentParser" in ast.unparse(each)))  # fmt: skip
    call = next(each for each in ast.walk(function) if isinstance(each, ast.Call) and is_parse(each))
    adds = [ast.unparse(each) for each in function.body if ".add_argument(" in ast.unparse(each)]
    start = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom | ast.Assign)]
    names = {"arguments": None}
    standard = [each for each in start if isinstance(each, ast.Assign) or is_standard(each)]
    for each in standard:
        try:
            exec(ast.unparse(each), names)
        except NameError:  # needs what only the work needs
            continue
    exec("\n".join([parser, *adds]), names)
    options = eval(ast.unparse(call), names)
    assert getattr(options, "quick", True)
    with pytest.raises(SystemExit):
        names["parser"].parse_args()  # as it was: the kernel's own arguments are not known


def is_standard(node):
    names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module]
    return all(name.split(".")[0] in sys.stdlib_module_names for name in names)


def is_parse(call):
    return isinstance(call.func, ast.Attribute) and call.func.attr == "parse_args"


def parses(function):
    return any(isinstance(each, ast.Call) and is_parse(each) for each in ast.walk(function))
