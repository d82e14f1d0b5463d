"""Privacy loss distributions: the releases of an event go down once, and a number comes up once.

- `pairs`: dominating pairs of releases and their privacy loss, as what is composed asks for it: `AnyPair`
- `closed_forms`: what can be said of a composition without composing it: a few numbers and bounds, and closed forms
- `profiles`: privacy profiles: what selection and groups make of one, and the dominating pair of one on a grid
- `tilting`: exponential tilting of a composition: what a sum of privacy losses looks like near the losses that matter
- `grid`: privacy loss distributions on a grid: connect-the-dots, and composition by powers of an FFT
- `reading`: what is read off weighted losses and grids: epsilon and delta of composed pairs, and whole profiles.
  Upper bounds
- `epsilon`: epsilon and delta of a composition by privacy loss distributions: tight upper bounds
- `lower_bounds`: epsilon of a composition from both sides: the upper bound that is charged, and a certified lower one
- `trade_off`: the trade-off function of a profile, a polygon: its corners, what a test finds at most, and the
  smallest mu
"""
