"""All mutants, by subject."""

from table import bought, clip, fits, layout, ledger, moments, networks, noise, price, public_steps, search, selection

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
    *layout.MUTANTS,
]
