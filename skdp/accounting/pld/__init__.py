"""Privacy loss distributions.

- `pairs`: dominating pairs of releases and their privacy losses
- `closed_forms`: closed forms and simple bounds
- `profiles`: privacy profiles of selections and groups, and the dominating pair of a profile
- `tilting`: exponential tilting of a composition, which centers the sum on the losses that decide delta
- `grid`: connect-the-dots discretization, and composition by FFT
- `reading`: upper bounds of epsilon, delta and profiles from weighted losses and grids
- `epsilon`: tight upper bounds of epsilon and delta of a composition
- `lower_bounds`: certified lower and upper bounds of epsilon
- `trade_off`: trade-off function of a profile and the smallest mu
"""
