"""What the commands read: words of the command line, and files, format by format."""
