"""What the three commands stand on: options, files, reports, pictures."""
