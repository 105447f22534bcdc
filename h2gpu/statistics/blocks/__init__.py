"""Block averages: kriging of means of the field over cells, areas and sets of places."""
