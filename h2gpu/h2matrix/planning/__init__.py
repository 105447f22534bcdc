"""The parameters that meet an accuracy, chosen before the matrix is built."""
