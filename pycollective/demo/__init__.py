"""`pycollective demo`: the same training through a P4 switch and over gloo, side by side.

`run` is the order of events; `digits` the data, `train` what each rank does, `events` what ranks
tell the demo, `torchrun` how they are started and ended, `display` the live view and `report` what
is left at the end. Needs torch, scikit-learn and matplotlib.
"""
