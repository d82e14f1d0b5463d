"""Privacy reports of fitted models, as text, HTML and JSON.

- `report_data`: all facts as plain data; `sentences`: texts that follow from them, and the checklists
- `document`: sections of titles, paragraphs and tables, as text and HTML; `PrivacyReport`
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"PrivacyReport": "skdp.report.document", "privacy_report": "skdp.report.document"}
)
