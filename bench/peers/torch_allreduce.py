"""PyTorch's all_reduce over gloo between processes, for figures on the same machine in the same rounds.

    python torch_allreduce.py --workers 2 --port 29517

Every process has one thread and is bound to one core. Reads lines from standard input: "BYTES N" runs N sums of
as many bytes and prints {"seconds": s}, the seconds of one of them in the slowest process. Ends with its standard
input.
"""
import argparse, time
import torch
from processes import ignore_interrupts, join, run_processes, tell


def member(rank, args, cores, lines):
    """One process. Rank 0 reads the orders and passes them on."""
    dist = join(rank, args.workers, args.port, cores)
    if rank == 0:
        tell(ready=torch.__version__)
    values = torch.zeros(0)
    while True:
        order = [lines.readline().split() if rank == 0 else None]
        dist.broadcast_object_list(order, 0)
        if not order[0]:
            return
        size, count = (int(word) for word in order[0])
        if values.numel() != size // 4:
            values = torch.zeros(size // 4)
        dist.barrier()
        t = time.perf_counter()
        for _ in range(count):
            dist.all_reduce(values)
        seconds = torch.tensor((time.perf_counter() - t) / count, dtype=torch.float64)
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        if rank == 0:
            tell(seconds=seconds.item())


def main():
    ignore_interrupts()
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--port", type=int, default=29517)
    args = p.parse_args()
    run_processes(member, args, args.workers)


if __name__ == "__main__":
    main()
