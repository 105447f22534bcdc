"""One question each: a figure of a paper, a published data set."""
