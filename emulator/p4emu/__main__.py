"""`python -m p4emu`: the command `p4emu`."""

from p4emu.cli import main

main()
