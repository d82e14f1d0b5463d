"""Metadata of the package; the tools' settings and the build's requirements are in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "([^"]+)"', (HERE / "skdp" / "__init__.py").read_text(encoding="utf-8"))
assert VERSION is not None

KEYWORDS = "differential privacy, DP-SGD, machine learning, scikit-learn, synthetic data, census"
LINK = re.compile(r"!?\[([^\]]*)\]\((?!https?://)[^)]*\)")
"""Links and pictures of the README that lead into the repository, and nowhere from the page of an index."""

PLOT = ["matplotlib>=3.8"]
DATA = ["pandas>=2.2", "pyarrow>=15"]
PROGRESS = ["tqdm>=4.60"]
YAML = ["PyYAML>=6"]
DASK = ["dask[array,dataframe,distributed]>=2025.7"]
ONNX = ["onnx>=1.17", "skl2onnx>=1.18"]
SKOPS = ["skops>=0.14"]
TEST = [
    *PLOT,
    *DATA,
    *PROGRESS,
    *YAML,
    *DASK,
    *ONNX,
    *SKOPS,
    "onnxruntime>=1.21",  # what runs exported models
    "polars>=1.0",
    "duckdb>=1.1",
    "pytest>=8",
    "pytest-cov>=6",
    "pytest-xdist>=3.6",
    "coverage>=7.10",
    "hypothesis>=6.100",
    "numpydoc>=1.8",
    "mpmath>=1.3",
    "dp-accounting==0.6.0",  # oracles of the accountant
    "prv-accountant==0.2.0",
]
DOCS = [
    *PLOT,
    *DATA,
    "sphinx==9.0.4",  # as of LINT: a new version may warn of something else
    "numpydoc==1.11.0",
    "sphinx-gallery==0.22.1",
    "pydata-sphinx-theme==0.24.0",
    "myst-parser==5.2.0",
]
LINT = ["ruff==0.17.5", "mypy==2.4.1", "codespell==2.4.3", "pre-commit>=4"]
PACKAGE = ["build>=1.2", "twine>=6", "cyclonedx-bom>=7"]

setup(
    name="skdp",
    version=VERSION.group(1),
    description="Differentially private estimators for scikit-learn",
    long_description=LINK.sub(r"\1", (HERE / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    author="The skdp developers",
    keywords=KEYWORDS,
    license="BSD-3-Clause",
    license_files=["LICENSE"],
    package_dir={"": "."},  # an editable install is then found from the folder above a clone called skdp
    packages=find_packages(include=["skdp", "skdp.*"]),
    package_data={"skdp": ["py.typed", "datasets/census_tables.json", "report/report.css"]},
    python_requires=">=3.11",
    install_requires=[
        "numpy>=1.26",
        "scipy>=1.11",
        "scikit-learn>=1.6,<1.10",
        "numba>=0.61",
        "cryptography>=43",
        "joblib>=1.3.2",
        "threadpoolctl>=3.1",
        "narwhals>=2.12",
    ],
    extras_require={
        "plot": PLOT,
        "data": DATA,
        "progress": PROGRESS,
        "yaml": YAML,
        "dask": DASK,
        "onnx": ONNX,
        "skops": SKOPS,
        "demo": [*PLOT, *DATA, *PROGRESS],
        "docs": DOCS,
        "test": TEST,
        "dev": [*TEST, *LINT],
        "package": PACKAGE,
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
