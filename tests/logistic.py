"""What the tests of DPLogisticRegression share."""

from skdp import DPLogisticRegression

POISSON = {"sampling_rate": 0.1, "max_iter": 3}


def binary(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], **parameters})
