"""Runs that are stopped after some steps."""

from __future__ import annotations


class StopAfter:
    """Raises when so many steps have been done since it was made, in the place of the progress bar."""

    def __init__(self, n_steps, error):
        self.left, self.error = n_steps, error

    def __call__(self, n_done):
        self.left -= 1
        if self.left == 0:
            raise self.error

    def close(self):
        pass


def interrupt_after(model, n_steps):
    """Let Ctrl-C come once, after so many steps of the fits of a model from now on."""
    bar = StopAfter(n_steps, KeyboardInterrupt)
    model._make_progress = lambda plan: bar
