"""The torch.distributed backend "pycollective".

torch loads `register` itself when it is imported (entry point group "torch.backends"), so that
`init_process_group("pycollective")` needs no import of ours; where that is switched off
(TORCH_DEVICE_BACKEND_AUTOLOAD=0), `import pycollective.torch` does the same. Registering is cheap
and touches neither the C++ core nor the network: a broken installation must not break torch.
"""

from __future__ import annotations

import importlib.util

BACKEND = "pycollective"


def register() -> None:
    """Makes the backend known to torch.distributed. Does nothing when called again."""
    if importlib.util.find_spec("torch.distributed") is None:
        return
    import torch.distributed as dist

    if not dist.is_available() or BACKEND.upper() in dist.Backend._plugins:
        return
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["cpu"])


def _create(options: object, backend_options: object) -> object:
    from pycollective.torch.process_group import create

    return create(options, backend_options)


register()
