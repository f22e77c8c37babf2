"""`python -m pycollective`, for launchers that want a module: `torchrun -m pycollective bench`."""

from pycollective.cli import main

main()
