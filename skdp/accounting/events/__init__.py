"""What was done, without behaviour: frozen specifications, named as in dp-accounting, and their composition."""
