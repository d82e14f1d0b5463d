"""What a model predicts: classes, or targets between bounds."""
