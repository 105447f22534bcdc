"""Commands, studies and benchmarks: each module is one program."""
