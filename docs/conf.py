"""Settings of Sphinx; `make docs` builds the pages into build/docs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

import skdp

project = "skdp"
author = "the skdp developers"
copyright = author
version = release = skdp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["auto_examples/index.rst", "auto_examples/*.ipynb", "auto_examples/**/*.md5"]
templates_path = ["_templates"]
nitpicky = True
suppress_warnings = ["config.cache"]  # functions of the gallery are not pickled

default_role = "autolink"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's sections state them in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
myst_heading_anchors = 4

EXAMPLES = Path(__file__).parents[1] / "examples"
os.environ.pop("SKDP_DATA", None)  # the site is the same wherever it is built


sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skdp",),
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "thumbnail_size": (800, 480),
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "skdp"
html_static_path = ["_static"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_css_files = ["width.css"]
html_show_sourcelink = False
html_sidebars = {"index": []}  # no pages below it
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "skdp"},
    "header_links_before_dropdown": 5,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "show_nav_level": 1,
}


def link_to_benchmarks(app: Any, name: str, source: list[str]) -> None:
    """The page of benchmarks lies beside its scripts; docs/benchmarks.md shows it."""
    source[0] = source[0].replace("../benchmarks/README.md", "benchmarks.md")


def skip_inherited(app: Any, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn defines are described there."""
    module = getattr(found, "__module__", None)
    return True if module is not None and not module.startswith("skdp") else None


def resolve_short_name(app: Any, env: Any, node: Any, contents: Any) -> Any:
    """Link names that a docstring shortens; parameters and names of other libraries stay code without a link."""
    target = node.get("reftarget", "")
    found = env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", f"skdp.{target}", node, contents)
    is_ours = target.startswith("skdp.") or node["reftype"] not in ("obj", "meth")
    return found if found is not None or is_ours else contents


def link_pages(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Docstrings name pages by their files."""
    lines[:] = [re.sub(r"``docs/(\w+)\.md``", r":doc:`/\1`", line) for line in lines]


def examples_have_pictures(app: Any, exception: Exception | None) -> None:
    """A gallery without its pictures is no gallery."""
    pictures = Path(app.outdir) / "_images"
    without = [
        script.stem
        for script in sorted(EXAMPLES.glob("plot_*.py"))
        if "plt.show()" in script.read_text(encoding="utf-8")
        and not list(pictures.glob(f"sphx_glr_{script.stem}_0*.png"))
    ]
    if exception is None and without:
        raise ExtensionError(f"no picture was written by {', '.join(without)}")


def setup(app: Any) -> None:
    """Connect the changes to what Sphinx would do."""
    app.connect("source-read", link_to_benchmarks)
    app.connect("missing-reference", resolve_short_name)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("build-finished", examples_have_pictures)
