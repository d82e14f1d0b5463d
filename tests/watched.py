"""A fitted model that notes when it is asked for scores."""

import numpy as np


class Watched:
    """A model of two classes of which a column is the score; it notes the number of charges when it is asked."""

    classes_ = np.array([0, 1])

    def __init__(self, ledger=None, column=0):
        self.ledger, self.column, self.charges = ledger, column, []

    def predict_proba(self, X):
        chances = np.asarray(X, object)[:, self.column].astype(float)
        if chances.any():  # a row of zeros is public
            self.charges.append(0 if self.ledger is None else len(self.ledger.history))
        return np.column_stack([1.0 - chances, chances])
