"""What the commands read, format by format."""
