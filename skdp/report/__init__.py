"""Reports of what a fitted model guarantees, as text, HTML and JSON: the facts, and their form.

- `report_data`: all facts as plain data; `sentences`: what follows from them, also for publications and NIST SP 800-226
- `document`: sections of titles, paragraphs and tables, as text and HTML; `PrivacyReport`
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"PrivacyReport": "skdp.report.document", "privacy_report": "skdp.report.document"}
)
