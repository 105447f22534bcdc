"""What a fitted `Kriging` also gives."""
