"""What every command says of itself: --version, and --print-completion for the shell.

    h2krige --print-completion bash > ~/.local/share/bash-completion/completions/h2krige

The scripts are written by shtab, an optional package; none of it is needed when they run.
"""

import argparse
from importlib.metadata import version

SHELLS = ("bash", "zsh", "tcsh")
FILES = (".h5", ".json", ".png")  # how the metavar of a file ends


def add_about(parser):
    """Adds --version and --print-completion."""
    parser.add_argument("--version", action="version", version=f"{parser.prog} {version('h2gpu')}")
    parser.add_argument(
        "--print-completion", action=_PrintCompletion, choices=SHELLS, help="a script for the shell (needs shtab)"
    )


class _PrintCompletion(argparse.Action):
    """Prints the script and ends the command. Raises ImportError where shtab is missing."""

    def __call__(self, parser, namespace, values, option_string=None):
        try:
            import shtab
        except ImportError:
            raise ImportError('--print-completion: needs shtab: pip install "h2gpu[completion]"') from None
        for action in parser._actions:
            if str(action.metavar).endswith(FILES):
                action.complete = shtab.FILE
        print(shtab.complete(parser, shell=values))
        parser.exit()
