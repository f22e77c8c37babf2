"""One rank of the training: plain DistributedDataParallel; only the backend's name differs.

Run under torchrun: `python -m pycollective.demo.train BACKEND EPOCHS PARAMETER_FILE`.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pycollective.demo import digits
from pycollective.demo.events import Begun, Ended, Epoch, Event, encode

_SEED = 7
_BATCH = 32
"""Images of each rank in a step."""
_LEARNING_RATE = 0.05
_MOMENTUM = 0.9
_PROBES = 3
"""All-reduces that are timed for algbw after each epoch."""
_TIMEOUT = timedelta(seconds=60)


def network() -> nn.Module:
    """A small network; smooth, so that rounding differences do not grow."""
    return nn.Sequential(
        nn.Linear(digits.PIXELS, 256),
        nn.GELU(),
        nn.Linear(256, 128),
        nn.GELU(),
        nn.Linear(128, digits.CLASSES),
    )


def main() -> None:
    """Trains, and writes rank 0's final parameters to a file."""
    backend, epochs, parameter_file = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group(backend, timeout=_TIMEOUT)
    try:
        _run(backend, epochs, parameter_file)
    finally:
        dist.destroy_process_group()


def _run(backend: str, epochs: int, parameter_file: Path) -> None:
    torch.manual_seed(_SEED)
    model = DistributedDataParallel(network())
    count = _flat(model).numel()
    _tell(Begun(backend, count, getattr(dist.group.WORLD, "job", None)))
    seconds = _train(model, epochs)
    if dist.get_rank() == 0:
        np.save(parameter_file, _flat(model).numpy())
    _tell(Ended(seconds))


def _train(model: nn.Module, epochs: int) -> float:
    data = digits.load()
    images, labels = torch.from_numpy(data.train_images), torch.from_numpy(data.train_labels)
    optimizer = torch.optim.SGD(model.parameters(), _LEARNING_RATE, _MOMENTUM)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    steps = len(images) // (_BATCH * world_size)
    total = 0.0
    for number in range(1, epochs + 1):
        # The same order on all ranks; each takes its own part.
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(number))
        loss_sum = torch.zeros(1)
        begin = time.perf_counter()
        for step in range(steps):
            first = (step * world_size + rank) * _BATCH
            batch = order[first : first + _BATCH]
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            loss_sum += loss.detach()
        schedule.step()
        seconds = time.perf_counter() - begin
        total += seconds
        dist.all_reduce(loss_sum)
        mean_loss = float(loss_sum) / (steps * world_size)
        packets, retransmissions = _traffic()
        bandwidth = _algbw(_flat(model).numel())
        accuracy = _accuracy(model, data) if rank == 0 else 0.0
        _tell(Epoch(number, mean_loss, accuracy, seconds, bandwidth, packets, retransmissions))
    return total


def _accuracy(model: Any, data: digits.Digits) -> float:
    """The share of the test set; of the module itself, which runs no collective."""
    with torch.no_grad():
        scores = model.module(torch.from_numpy(data.test_images))
    hits = scores.argmax(1) == torch.from_numpy(data.test_labels)
    return float(hits.float().mean())


def _algbw(elements: int) -> float:
    """10^9 bytes a second of an all-reduce of float32 elements."""
    buffer = torch.zeros(elements)
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(_PROBES):
        dist.all_reduce(buffer)
    seconds = (time.perf_counter() - begin) / _PROBES
    return buffer.numel() * buffer.element_size() / seconds / 1e9


def _traffic() -> tuple[int | None, int | None]:
    statistics = getattr(dist.group.WORLD, "statistics", None)
    if statistics is None:
        return None, None
    engine = statistics().engine
    return engine.frames_sent + engine.frames_received, engine.retransmissions


def _flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def _tell(event: Event) -> None:
    if dist.get_rank() == 0:
        print(encode(event), flush=True)


if __name__ == "__main__":
    main()
    # Not through the interpreter's shutdown: torch 2.13 keeps gloo's threads, and aborts the
    # process when one of them lets go of a Python object meanwhile. `main` has ended all of ours.
    sys.stdout.flush()
    os._exit(0)
