"""Privacy loss distributions: the releases of an event go down once, and a number comes up once.

- `epsilon`: epsilon and delta of a composition, of groups too; `lower_bounds`: epsilon from both sides; `trade_off`:
  errors of tests
- `closed_forms`: what is known without composing
- `pairs`: dominating pairs; `profiles`: those of selected releases, and of groups of records
- `tilting`: where to look, on which grid; `grid`: composition by FFT; `reading`: what is read off
"""
