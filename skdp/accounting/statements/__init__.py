"""What is said of an event, or of a budget: curves (`curves`), and the target of a budget (`targets`)."""
