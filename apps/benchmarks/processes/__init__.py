"""What the benchmark of many processes is made of: counts, a model, the parts of a product, a picture."""
