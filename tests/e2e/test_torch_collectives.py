"""torch.distributed's collectives over the backend, in three processes through a real switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch_world import TorchWorld

from pycollective import ConfigurationError, UnsupportedError

WORLD = 3
SUM = 1 + 2 + 3


@pytest.fixture(scope="module")
def world(switch_environment: dict[str, str]) -> Iterator[TorchWorld]:
    with TorchWorld(WORLD, switch_environment, timeout=30) as ranks:
        yield ranks


def mine(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, dist.get_rank() + 1, dtype=dtype)


# --- what works --------------------------------------------------------------------------------


def sums_in_place() -> None:
    for dtype in (torch.float32, torch.int32):
        for shape in ((), (1,), (1000,), (7, 11, 13)):
            tensor = mine(*shape, dtype=dtype)
            address = tensor.data_ptr()
            dist.all_reduce(tensor)
            assert tensor.data_ptr() == address
            assert (tensor == SUM).all()


def averages() -> None:
    tensor = mine(100)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert (tensor == SUM / WORLD).all()


def non_contiguous_tensors() -> None:
    square = mine(20, 30)
    dist.all_reduce(square.t()[::2])
    assert (square[:, ::2] == SUM).all()
    assert (square[:, 1::2] == dist.get_rank() + 1).all()
    column = mine(4, 5, dtype=torch.int64)
    dist.broadcast(column[:, 2], 2)
    assert column[0].tolist() == [dist.get_rank() + 1] * 2 + [3] + [dist.get_rank() + 1] * 2
    outputs = [torch.zeros(6, 4)[:, ::2] for _ in range(WORLD)]
    dist.all_gather(outputs, mine(2, 6).t())
    assert [output.unique().item() for output in outputs] == [1, 2, 3]


def tensors_without_elements() -> None:
    dist.all_reduce(torch.empty(0, 4))
    dist.broadcast(torch.empty(0), 1)
    dist.all_gather([torch.empty(0) for _ in range(WORLD)], torch.empty(0))


def tensors_that_autograd_watches() -> None:
    leaf = mine(5).requires_grad_()
    dist.all_reduce(leaf)
    assert (leaf == SUM).all()
    assert leaf.is_leaf
    with torch.inference_mode():
        frozen = mine(6)[::2]
    dist.all_reduce(frozen, op=dist.ReduceOp.AVG)
    assert (frozen == SUM / WORLD).all()


def bits_of(rank: int, dtype: torch.dtype) -> torch.Tensor:
    """48 bytes, each 0 or 1, which are values of any dtype; others for each rank."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(0, 2, (48,), dtype=torch.uint8, generator=generator).view(dtype)


def any_dtype_is_broadcast_and_gathered() -> None:
    for dtype in (
        torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64,
        torch.complex64, torch.float8_e4m3fn,
    ):  # fmt: skip
        tensor = bits_of(dist.get_rank(), dtype)
        dist.broadcast(tensor, 1)
        assert tensor.view(torch.uint8).equal(bits_of(1, torch.uint8))
        outputs = [torch.empty_like(tensor) for _ in range(WORLD)]
        dist.all_gather(outputs, bits_of(dist.get_rank(), dtype))
        for rank, output in enumerate(outputs):
            assert output.view(torch.uint8).equal(bits_of(rank, torch.uint8))


def gathers_of_different_sizes() -> None:
    sizes = [4, 0, 9]
    outputs = [torch.zeros(size) for size in sizes]
    dist.all_gather(outputs, mine(sizes[dist.get_rank()]))
    assert [output.tolist() for output in outputs] == [[1.0] * 4, [], [3.0] * 9]


def gathers_into_one_tensor() -> None:
    output = torch.zeros(WORLD * 2, 5)
    dist.all_gather_single(output, mine(2, 5))
    assert output.tolist() == [[1.0] * 5] * 2 + [[2.0] * 5] * 2 + [[3.0] * 5] * 2


def objects() -> None:
    gathered: list[object] = [None] * WORLD
    dist.all_gather_object(gathered, {"rank": dist.get_rank(), "text": "x" * dist.get_rank()})
    assert gathered == [{"rank": rank, "text": "x" * rank} for rank in range(WORLD)]
    shared: list[object] = [dist.get_rank(), "a"] if dist.get_rank() == 1 else [None, None]
    dist.broadcast_object_list(shared, 1)
    assert shared == [1, "a"]


def coalesced() -> None:
    tensors = [mine(3), mine(4, 5)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert all((tensor == SUM).all() for tensor in tensors)


def functional_collectives() -> None:
    group = dist.group.WORLD
    assert group is not None
    assert (functional.all_reduce(mine(10), "sum", group) == SUM).all()
    gathered = functional.all_gather_single(mine(2), 0, group)
    assert gathered.tolist() == [1, 1, 2, 2, 3, 3]
    assert (functional.broadcast(mine(4), 2, group) == 3).all()


def asynchronous_works() -> None:
    tensors = [torch.full((300,), float(i)) for i in range(50)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in reversed(list(enumerate(works))):
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        assert (tensors[i] == WORLD * i).all()
    dist.barrier(async_op=True).wait()


def futures() -> None:
    tensor = mine(10)[::2]
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future()
    assert work.get_future() is future
    chained = future.then(lambda done: done.value()[0].sum().item()).then(
        lambda done: done.value() + 1
    )
    assert chained.wait() == 5 * SUM + 1
    assert future.wait()[0] is tensor
    called: list[float] = []
    future.add_done_callback(lambda done: called.append(float(done.value()[0][0])))
    assert called == [SUM]
    # Of a work that is done already.
    late = dist.all_reduce(mine(3), async_op=True)
    late.wait()
    assert (late.get_future().wait()[0] == SUM).all()


def what_torch_asks_about_a_group() -> None:
    assert dist.get_backend() == "pycollective"
    assert (dist.get_world_size(), dist.group.WORLD.size()) == (WORLD, WORLD)  # type: ignore[union-attr]
    assert dist.group.WORLD.name() == "pycollective"  # type: ignore[union-attr]
    assert dist.group.WORLD.statistics().engine.frames_sent > 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "scenario",
    [
        sums_in_place, averages, non_contiguous_tensors, tensors_without_elements,
        tensors_that_autograd_watches, any_dtype_is_broadcast_and_gathered,
        gathers_of_different_sizes, gathers_into_one_tensor, objects, coalesced,
        functional_collectives, asynchronous_works, futures, what_torch_asks_about_a_group,
    ],
)  # fmt: skip
def test_works(world: TorchWorld, scenario: Callable[[], None]) -> None:
    world.run(scenario)


# --- what is refused ---------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "float64": (lambda: dist.all_reduce(torch.ones(3, dtype=torch.float64)), "float64"),
    "bfloat16": (lambda: dist.all_reduce(torch.ones(3, dtype=torch.bfloat16)), "bfloat16"),
    "float16": (lambda: dist.all_reduce(torch.ones(3, dtype=torch.float16)), "float16"),
    "int64": (lambda: dist.all_reduce(torch.ones(3, dtype=torch.int64)), "int64"),
    "bool": (lambda: dist.all_reduce(torch.ones(3, dtype=torch.bool)), "bool"),
    "max": (lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.MAX), "MAX"),
    "product": (lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.PRODUCT), "PRODUCT"),
    "integer average": (
        lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), op=dist.ReduceOp.AVG),
        "AVG needs floating point",
    ),
    "other devices": (lambda: dist.all_reduce(torch.ones(3, device="meta")), "CPU tensors"),
    "sparse": (lambda: dist.all_reduce(torch.ones(3).to_sparse()), "dense tensors"),
    "reduce": (lambda: dist.reduce(torch.ones(3), 0), "reduce is not carried"),
    "reduce_scatter": (
        lambda: dist.reduce_scatter(torch.ones(1), [torch.ones(1) for _ in range(WORLD)]),
        "reduce_scatter is not carried",
    ),
    "gather": (
        lambda: dist.gather(
            torch.ones(1),
            [torch.ones(1) for _ in range(WORLD)] if dist.get_rank() == 0 else None,
        ),
        "gather is not carried",
    ),
    "scatter": (
        lambda: dist.scatter(
            torch.ones(1),
            [torch.ones(1) for _ in range(WORLD)] if dist.get_rank() == 0 else None,
        ),
        "scatter is not carried",
    ),
    "all_to_all": (
        lambda: dist.all_to_all_single(torch.ones(WORLD), torch.ones(WORLD)),
        "all_to_all is not carried",
    ),
    "send": (
        lambda: dist.send(torch.ones(1), (dist.get_rank() + 1) % WORLD),
        "send is not carried",
    ),
    "recv": (
        lambda: dist.recv(torch.ones(1), (dist.get_rank() + 1) % WORLD),
        "recv is not carried",
    ),
}


def is_refused(name: str) -> None:
    call, message = REFUSED[name]
    group = dist.group.WORLD
    before = group.statistics().engine.frames_sent  # type: ignore[union-attr]
    with pytest.raises(UnsupportedError, match=message):
        call()
    assert group.statistics().engine.frames_sent == before  # type: ignore[union-attr]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_carried_is_refused_before_anything_is_sent(
    world: TorchWorld, name: str
) -> None:
    world.run(is_refused, name)


def wrong_outputs_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="one output for each of 3 ranks"):
        dist.all_gather([torch.ones(2)], torch.ones(2))
    with pytest.raises(ConfigurationError, match="must be like its input"):
        dist.all_gather([torch.ones(2) for _ in range(WORLD)], torch.ones(3))
    with pytest.raises(ConfigurationError, match="must hold 3 times the input"):
        dist.all_gather_single(torch.ones(5), torch.ones(2))
    dist.barrier()


def test_outputs_that_do_not_fit_are_refused_and_the_group_goes_on(world: TorchWorld) -> None:
    world.run(wrong_outputs_are_refused)


def a_second_group_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a switch port of its own for each rank"):
        dist.new_group([0, 1, 2])


def test_a_second_group_on_the_ports_of_the_first_is_refused(world: TorchWorld) -> None:
    world.run(a_second_group_is_refused)
