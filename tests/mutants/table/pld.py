"""Mistakes in where privacy loss distributions are looked at, and in what is left out there."""

from mutant import mutant
from paths import GRID, LOWER_BOUNDS, PAIRS, QUADRATURE, READING, RESPONSE, SADDLE, SIMPLE

MUTANTS = [
    mutant(
        "masses far above epsilon that underflow are lost",
        (GRID, "np.clip(exponent, -_DEEPEST, _DEEPEST)", "np.minimum(exponent, _DEEPEST)"),
        (
            GRID,
            "middle = float(loss[first])",
            "middle = min(max(tilt.epsilon - base, float(loss[0])), float(loss[-1]))",
        ),
        tests="grid",
        select="rare or discount",
    ),
    mutant(
        "Fourier coefficients of 1e-8 taken as 0",
        (
            GRID,
            "spectrum.real**2 + spectrum.imag**2 > faint",
            "spectrum.real**2 + spectrum.imag**2 > max(faint, 1e-16)",
        ),
        tests="grid",
        select="beside_a_gaussian or convolution or basic",
    ),
    mutant(
        "wrapped mass taken for a probability",
        (LOWER_BOUNDS, "if max(parts) >= 0.0:", "if max(parts) >= 1e9:"),
        (LOWER_BOUNDS, "sum(map(math.exp, parts))", "sum(math.exp(min(each, 0.0)) for each in parts)"),
        tests="grid",
        select="wrapped",
    ),
    mutant(
        "a grid centred on an infinite epsilon",
        (READING, "if best.epsilon == math.inf:", "if best.epsilon == -math.inf:"),
        tests="grid",
        select="just_above",
    ),
    mutant(
        "masses scaled to what rounding leaves of one",
        (
            GRID,
            "loss, weight = atoms.loss, np.exp(atoms.log_weight)\n",
            "loss, weight = atoms.loss, np.exp(atoms.log_weight)\n"
            "    weight *= (1.0 - atoms.low - atoms.lost) / weight.sum()\n",
        ),
        tests="grid",
        select="dominates",
    ),
    mutant(
        "two nodes in every cell of a quadrature",
        (QUADRATURE, "kept = number == at", "kept = np.full(number.size, at == 0)"),
        tests="grid",
        select="dominates or too_steep",
    ),
    mutant(
        "one sampled Gaussian priced as if it were sure to take part",
        (SIMPLE, "inner = gaussian_epsilon(delta / q * (1.0 - _SAFE), m)", "inner = gaussian_epsilon(delta, m)"),
        tests="grid",
        select="one_sampled_gaussian",
    ),
    mutant(
        "a replaced record that leaves its place empty, in closed form",
        (SIMPLE, "v * mills_drop(a, 2.0 * pair.m)", "v * mills_drop(a, pair.m)"),
        tests="grid",
        select="one_sampled_gaussian",
    ),
    mutant(
        "losses far above epsilon left out instead of counted in full",
        (
            PAIRS,
            "        return Atoms(loss, base + np.log(weight), below, above)\n",
            "        return Atoms(loss, base + np.log(weight), below + above, 0.0)\n",
        ),
        tests="exact_prices",
        select="count_in_full or rare_step",
    ),
    mutant(
        "losses above a given end taken as infinite at any epsilon",
        (SADDLE, "log_delta - steps - 14.0 - reach)", "log_delta - steps - 14.0)"),
        (SADDLE, "        if left < 0.1 * delta and reach < _LAST_REACH:\n", "        if False:\n"),
        tests="exact_prices",
        select="count_in_full",
    ),
    mutant(
        "a poor guess of epsilon never looked at again",
        (READING, "        if not found.poor:\n            break\n", "        if True:\n            break\n"),
        tests="exact_prices",
        select="bounded_or_rare",
    ),
    mutant(
        "delta just below a label with the label's own mass",
        (
            READING,
            "at_point = tail[low + 1 : high + 2] - growth * weighted[1 : high + 2 - low]",
            "at_point = tail[low : high + 1] - growth * weighted[: high + 1 - low]",
        ),
        tests="exact_prices",
        select="many_orders",
    ),
    mutant(
        "a grid too wide for what bends on it",
        (READING, "_BENT = 3e-5", "_BENT = 3e5"),
        tests="exact_prices",
        select="bounded_or_rare",
    ),
    mutant(
        "a lower bound that counts what lies far above epsilon twice",
        (
            LOWER_BOUNDS,
            "        if mass > math.exp(min(tilt.epsilon, 700.0)) * other:",
            "        mass = 2.0 * mass\n        if mass > math.exp(min(tilt.epsilon, 700.0)) * other:",
        ),
        tests="exact_prices",
        select="rare_step_bracket",
    ),
    mutant(
        "a lower bound without what lies far above epsilon",
        (LOWER_BOUNDS, "        if mass > math.exp(min(tilt.epsilon, 700.0)) * other:", "        if False:"),
        tests="exact_prices",
        select="rare_step",
    ),
    mutant(
        "randomised response in closed form that forgets what is revealed",
        (SIMPLE, "left = (delta - simple.revealed * (1.0 + _ROUNDING)) / (1.0 - simple.revealed)", "left = delta"),
        tests="exact_prices",
        select="bounded_or_rare",
    ),
    mutant(
        "delta of randomised response with the tail of Q at the wrong corner",
        (
            RESPONSE,
            "min(at + under_q[first], under_p[first]) - off",
            "min(at + under_q[first - 1], under_p[first]) - off",
        ),
        tests="exact_prices",
        select="closed_form",
    ),
    mutant(
        "labels that are too high given more than is left of 1",
        (LOWER_BOUNDS, "share = min(_SHARE, 1e-3 * (1.0 - delta))", "share = _SHARE"),
        tests="exact_prices",
        select="close_to_one",
    ),
]
