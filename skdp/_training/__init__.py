"""Private gradient descent: what is run, how, and what it costs.

- `plan`: the one place where clip, noise, sampling and accounting meet; `loop`: the steps
- `linear`, `network`: models, and the clipped sums of their gradients; `optimizers`, `averaging`: what is made of them
- `defaults`: rules in public quantities; `checkpoint`, `run_lock`: a run on disk; `progress`: the bar
"""
