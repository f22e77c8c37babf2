"""The control plane's client: it owns switches over P4Runtime and puts jobs on them.

P4Runtime is all it speaks (it is all that p4emu and BMv2's simple_switch_grpc have in common), and
what it knows of existing jobs it reads from the switch, so it may be restarted while jobs run.

- `Controller`: the pipeline, and jobs: their slices of the slot pool, admission, multicast groups.
- `Job`, `WorkerAddress`: what a job is made of and made into.
- `P4RuntimeClient`: arbitration, pipeline, write and read; knows nothing of jobs.
"""

from pycollective.controller.client import P4RuntimeClient
from pycollective.controller.controller import Controller
from pycollective.controller.errors import (
    ControllerError,
    NotPrimaryError,
    PoolExhaustedError,
    ProgramMismatchError,
    SwitchRefusedError,
)
from pycollective.controller.jobs import Job, JobCounters, WorkerAddress, default_workers

__all__ = [
    "Controller",
    "ControllerError",
    "Job",
    "JobCounters",
    "NotPrimaryError",
    "P4RuntimeClient",
    "PoolExhaustedError",
    "ProgramMismatchError",
    "SwitchRefusedError",
    "WorkerAddress",
    "default_workers",
]
