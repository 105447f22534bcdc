"""What is done before the package is handed on: kernels compiled ahead."""
