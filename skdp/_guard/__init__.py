"""What other people's code reads: meta-estimators and their fits, public steps, and rows to rehearse them on."""
