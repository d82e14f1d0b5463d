"""Which tests must detect a fault."""

from __future__ import annotations

TESTS: dict[str, str] = {
    "skdp._checks": "tests/_checks/test_*.py",
    "skdp.base": "tests/base/test_*.py tests/test_pipeline.py tests/test_base.py tests/test_seeds.py",
    "skdp._kernels": "tests/_kernels/test_*.py tests/_dpsgd/models/test_*.py",
    "skdp._kernels.bits": "tests/_kernels/test_bits.py tests/mechanisms/test_*.py",
    "skdp._kernels.critic": "tests/synthesis/gan/test_*.py",
    "skdp._kernels.dense": "tests/_dpsgd/models/test_network.py tests/_dpsgd/models/test_*.py",
    "skdp._kernels.sums": "tests/mechanisms/test_second_moments.py tests/test_decomposition.py",
    "skdp._kernels.linear_layouts": "tests/_kernels/test_linear.py tests/_dpsgd/models/test_*.py",
    "skdp._kernels.spans": "tests/_dpsgd/models/test_network.py tests/_dpsgd/models/test_*.py",
    "skdp._dpsgd": "tests/_dpsgd/test_*.py tests/linear_model/test_logistic*.py tests/neural_network/test_*.py",
    "skdp._dpsgd.dask": "tests/_dpsgd/dask/test_*.py",
    "skdp._dpsgd.models": "tests/_dpsgd/models/test_*.py",
    "skdp._dpsgd.network_solver": "tests/neural_network/test_*.py tests/_dpsgd/models/test_network.py",
    "skdp._dpsgd.streamed": "tests/_dpsgd/streamed/test_*.py",
    "skdp.accounting": "tests/accounting/test_*.py",
    "skdp.accounting.formulas": "tests/accounting/test_*.py tests/accounting/rdp/test_selection.py "
    "tests/accounting/formulas/test_*.py",
    "skdp.accounting.events": "tests/accounting/test_*.py tests/accounting/events/test_*.py",
    "skdp.accounting.ledger": "tests/accounting/ledger/test_*.py",
    "skdp.accounting.pld": "tests/accounting/rdp/test_selection.py tests/accounting/pld/test_*.py",
    "skdp.accounting.rdp": "tests/accounting/test_*.py tests/accounting/rdp/test_*.py",
    "skdp.audit": "tests/audit/test_*.py",
    "skdp.model_selection": "tests/model_selection/test_*.py",
    "skdp.cluster": "tests/cluster/test_*.py",
    "skdp.decomposition": "tests/test_decomposition.py",
    "skdp.ensemble": "tests/ensemble/test_*.py",
    "skdp.metrics": "tests/metrics/test_evaluate.py tests/metrics/test_*.py",
    "skdp.linear_model": "tests/linear_model/test_least_squares.py tests/linear_model/test_*.py",
    "skdp.mechanisms": "tests/mechanisms/test_*.py",
    "skdp.naive_bayes": "tests/test_naive_bayes.py",
    "skdp.pipeline": "tests/test_pipeline.py tests/base/test_*.py",
    "skdp.preprocessing": "tests/preprocessing/histograms/test_*.py tests/preprocessing/test_*.py",
    "skdp.preprocessing.histogram_query": "tests/synthesis/marginals/test_estimated_table.py "
    "tests/preprocessing/histograms/test_*.py tests/preprocessing/test_*.py",
    "skdp.statistics": "tests/statistics/test_*.py",
    "skdp.synthesis": "tests/synthesis/marginals/test_synthesizer.py tests/synthesis/marginals/test_*.py",
    "skdp.synthesis.class_mixture": "tests/synthesis/class_mixture/test_*.py",
    "skdp.synthesis.gan": "tests/synthesis/gan/test_*.py",
    "skdp.synthesis.linking": "tests/synthesis/test_linking.py",
    "skdp.synthesis.pair_quality": "tests/synthesis/test_pair_quality.py",
    "skdp.testing": "tests/audit/test_*.py",
}
"""Tests of a package or module, as patterns of paths; the entry of the longest name counts."""

FOR_ALL = "tests/test_private_checks.py"
"""Tests that any fault may fail, after those of its package."""


def tests_of(module: str) -> list[str]:
    """Return the patterns of the test files of a package or module."""
    return TESTS[max((each for each in TESTS if f"{module}.".startswith(f"{each}.")), key=len)].split()
