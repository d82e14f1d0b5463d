"""Runs that are stopped after some steps, or at any line."""

import linecache
import sys


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


class AfterStep:
    """Calls a function when so many steps of a run are done, in the place of the progress bar."""

    def __init__(self, step, act):
        self.step, self.act = step, act

    def __call__(self, n_done):
        if n_done == self.step:
            self.act()

    def close(self):
        pass


def interrupt_after(model, n_steps):
    """Let Ctrl-C come once, after so many steps of the fits of a model from now on."""
    bar = StopAfter(n_steps, KeyboardInterrupt)
    model._make_progress = lambda plan: bar


class InterruptAt:
    """A context in which Ctrl-C comes before line k of those that run in the frames that `counts` chooses.

    `seen` is the number of such lines. Lines of ``with`` are left out: a tracer could raise between the body and the
    release of a lock, where Python delivers no signal. The traceback may be kept, as an interactive session does.
    """

    def __init__(self, k, counts, *, keeps_traceback=False):
        self.k, self.counts, self.keeps_traceback, self.seen = k, counts, keeps_traceback, 0

    def __call__(self, frame, event, argument):
        if not self.counts(frame):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not line.strip().startswith("with "):
            self.seen += 1
            if self.seen == self.k:
                raise KeyboardInterrupt
        return self

    def __enter__(self):
        self.before = sys.gettrace()  # coverage's, or a debugger's
        sys.settrace(self)
        return self

    def __exit__(self, *raised):
        sys.settrace(self.before)
        self.raised = raised if self.keeps_traceback else None
        return raised[0] is KeyboardInterrupt
