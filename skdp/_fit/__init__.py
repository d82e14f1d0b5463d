"""What every fit does: the protocol of private steps, a fit of several at once, its charge, its publication."""
