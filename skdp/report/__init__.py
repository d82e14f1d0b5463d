"""Reports of what a fitted model guarantees, as text, HTML and JSON: the facts, and their form.

- `values`: public values in one line; `price`, `release_table`: figures from the event; `report_data`: all of it as
  plain data
- `sentences`, also of publications and NIST SP 800-226; `sections`: titles, paragraphs and tables
- `as_text`, `as_html`: sections for people; `document`: `PrivacyReport`
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "PrivacyReport": "skdp.report.document",
        "privacy_report": "skdp.report.document",
    },
)
