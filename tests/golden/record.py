"""Record the digest of computations: `python tests/golden/record.py`, see `test_golden.py`."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

if __name__ == "__main__":
    from golden.computations import RUNS
    from golden.facts import PLATFORM, facts_of_run

    facts = {name: facts_of_run(run) for name, run in RUNS.items()}
    text = json.dumps({"platform": PLATFORM, "facts": facts}, indent=0, sort_keys=True)
    (HERE / "record.json").write_text(text + "\n")
