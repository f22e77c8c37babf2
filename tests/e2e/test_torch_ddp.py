"""DistributedDataParallel over the backend: what it computes, with the options people use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch_world import TorchWorld

WORLD = 3


@pytest.fixture(scope="module")
def world(switch_environment: dict[str, str]) -> Iterator[TorchWorld]:
    with TorchWorld(WORLD, switch_environment, timeout=30) as ranks:
        yield ranks


class Network(nn.Module):
    """Large enough for several buckets; one layer is used on request only."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 300)
        self.norm = nn.BatchNorm1d(300)
        self.spare = nn.Linear(300, 300)
        self.last = nn.Linear(300, 5)

    def forward(self, inputs: torch.Tensor, spare: bool = True) -> torch.Tensor:
        hidden = torch.tanh(self.norm(self.first(inputs)))
        return self.last(self.spare(hidden) if spare else hidden)


def batch(rank: int, step: int) -> torch.Tensor:
    return torch.randn(16, 32, generator=torch.Generator().manual_seed(100 * rank + step))


def flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def flat_gradient(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])  # type: ignore[union-attr]


def same_on_all_ranks(tensor: torch.Tensor) -> bool:
    gathered = [torch.empty_like(tensor) for _ in range(WORLD)]
    dist.all_gather(gathered, tensor)
    return all(gathered[0].equal(other) for other in gathered)


def models_begin_with_rank_0s_parameters_and_buffers() -> None:
    torch.manual_seed(dist.get_rank())
    network = Network()
    network.norm.running_mean.fill_(dist.get_rank())  # type: ignore[union-attr]
    DistributedDataParallel(network)
    assert same_on_all_ranks(flat(network))
    assert (network.norm.running_mean == 0).all()


def gradients_are_the_mean_of_the_ranks_gradients() -> None:
    torch.manual_seed(0)
    network = Network()
    model = DistributedDataParallel(network, bucket_cap_mb=0.1)  # type: ignore[arg-type]
    model(batch(dist.get_rank(), 0)).square().sum().backward()
    found = flat_gradient(network)
    exact = torch.zeros(found.shape, dtype=torch.float64)
    for rank in range(WORLD):
        network.zero_grad()
        network(batch(rank, 0)).square().sum().backward()
        exact += flat_gradient(network).double() / WORLD
    assert same_on_all_ranks(found)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


def trains(**options: object) -> None:
    torch.manual_seed(dist.get_rank())
    spare = not options.get("find_unused_parameters", False)
    model = DistributedDataParallel(Network(), bucket_cap_mb=0.1, **options)  # type: ignore[arg-type]
    optimizer = torch.optim.Adam(model.parameters(), 0.001)
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        loss = model(batch(dist.get_rank(), 0), spare).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
        assert same_on_all_ranks(flat(model)), step
    assert losses[-1] < losses[0]


def trains_with_unused_parameters() -> None:
    trains(find_unused_parameters=True)


def trains_with_gradients_in_the_buckets() -> None:
    trains(gradient_as_bucket_view=True)


def trains_with_a_static_graph() -> None:
    trains(static_graph=True)


def accumulates_without_synchronizing() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 4))
    group = dist.group.WORLD
    before = group.statistics().engine.collectives_completed  # type: ignore[union-attr]
    with model.no_sync():
        model(torch.ones(1, 4)).sum().backward()
    assert group.statistics().engine.collectives_completed == before  # type: ignore[union-attr]
    model(torch.ones(1, 4)).sum().backward()
    assert same_on_all_ranks(flat_gradient(model))


def takes_a_communication_hook() -> None:
    model = DistributedDataParallel(nn.Linear(4, 4))
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    model(torch.full((1, 4), float(dist.get_rank()))).sum().backward()
    assert (model.module.weight.grad == 1).all()


def a_hook_that_compresses_to_fp16_is_refused_with_what_to_do() -> None:
    model = DistributedDataParallel(nn.Linear(4, 4))
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    with pytest.raises(Exception, match=r"sums float32 and int32 in the network.*float16"):
        model(torch.ones(1, 4)).sum().backward()
    dist.barrier()


@pytest.mark.parametrize(
    "scenario",
    [
        models_begin_with_rank_0s_parameters_and_buffers,
        gradients_are_the_mean_of_the_ranks_gradients,
        trains,
        trains_with_unused_parameters,
        trains_with_gradients_in_the_buckets,
        trains_with_a_static_graph,
        accumulates_without_synchronizing,
        takes_a_communication_hook,
        a_hook_that_compresses_to_fp16_is_refused_with_what_to_do,
    ],
)
def test_ddp(world: TorchWorld, scenario: Callable[[], None]) -> None:
    world.run(scenario)
