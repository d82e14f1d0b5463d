"""Contestants of `benchmarks/bench.py`, a file a library.

- `tasks`: what is timed, on which rows
- `registry`: a contestant is one function, which makes a step of a task
- `worker`: the process of one contestant on one task
- the others: contestants, which import their library inside the function, as the harness reads all files in one process
"""
