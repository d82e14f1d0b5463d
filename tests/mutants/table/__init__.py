"""All mutants, by subject."""

from table import (
    bought,
    clip,
    displays,
    ensemble,
    fits,
    layout,
    ledger,
    moments,
    networks,
    noise,
    price,
    public_steps,
    reports,
    search,
    selection,
    vectorizer,
)

MUTANTS = [
    *bought.MUTANTS,
    *clip.MUTANTS,
    *noise.MUTANTS,
    *moments.MUTANTS,
    *networks.MUTANTS,
    *price.MUTANTS,
    *ledger.MUTANTS,
    *selection.MUTANTS,
    *search.MUTANTS,
    *fits.MUTANTS,
    *public_steps.MUTANTS,
    *displays.MUTANTS,
    *layout.MUTANTS,
    *reports.MUTANTS,
    *vectorizer.MUTANTS,
    *ensemble.MUTANTS,
]
