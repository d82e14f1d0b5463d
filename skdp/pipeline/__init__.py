"""Pipelines with one privacy budget, and checks of compositions of estimators.

- `private_pipeline`: `PrivatePipeline`, `allocate_budget`, `check_pipeline`
- `joint_fit`: joint fit of several private steps, with a single charge
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "PipelineIssue": "skdp.base.pipeline_issues",
        "PrivatePipeline": "skdp.pipeline.private_pipeline",
        "allocate_budget": "skdp.pipeline.private_pipeline",
        "check_pipeline": "skdp.pipeline.private_pipeline",
    },
)
