"""Privacy curves of an event (`privacy_curves`), and targets of a calibration (`targets`)."""
