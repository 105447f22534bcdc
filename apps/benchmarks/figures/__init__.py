"""Every published table again, by one command: `python -m h2gpu.apps.benchmarks.figures`."""
