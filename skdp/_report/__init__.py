"""What a fitted model may be told of to others: the facts, and their form as text, HTML and JSON.

- `values`: public values in one line; `price`, `releases`: figures from the event; `facts`: all of it as plain data
- `wording`: the sentences; `checklists`: publications and NIST SP 800-226; `sections`: titles, paragraphs and tables
- `as_text`, `as_html`: sections for people; `document`: `PrivacyReport`; `reported`: what estimators inherit
"""
