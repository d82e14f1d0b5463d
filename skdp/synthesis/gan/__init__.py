"""A generative adversarial network: critic, generator, and their run."""
