"""Reports of what a fitted model guarantees, as text, HTML and JSON."""

from skdp._report.document import PrivacyReport, privacy_report

__all__ = ["PrivacyReport", "privacy_report"]
