"""Privacy loss distributions: the releases of an event go down once, and a number comes up once.

- `epsilon`: epsilon and delta of a composition; `interval`: epsilon from both sides
- `closed_forms`: what can be said without composing; `directions`: the pairs to compose, a list for each direction of
  neighbours; `reading`: composes them and reads off a figure; `curves`: the same at all epsilons
- `tilting`: where to look, and what is seen there; `grid`: how fine a grid is, and composition by FFT;
  `lower_bounds`: a certified lower bound from the same grid
- `pairs`, `bounded`, `profiles`: dominating pairs of Gaussian, of Laplace and (epsilon, delta), of selected releases;
  `discrete`: those of `dominating`; `grouped`: profiles of groups of records
"""
