"""PyTorch's all_reduce over gloo between processes, for figures on the same machine in the same rounds.

    python torch_allreduce.py --workers 2 --port 29517

Every process has one thread and is bound to one core. Reads lines from standard input: "BYTES N" runs N sums of
as many bytes and prints {"seconds": s}, the seconds of one of them in the slowest process. Ends with its standard
input.
"""
import argparse, json, os, signal, sys, time
import torch


def tell(**message):
    print(json.dumps(message), flush=True)


def member(rank, args, cores, lines):
    """One process. Rank 0 reads the orders and passes them on."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    torch.set_num_threads(1); os.sched_setaffinity(0, {cores[rank % len(cores)]})
    import torch.distributed as dist
    dist.init_process_group("gloo", rank=rank, world_size=args.workers)
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who gives the orders, and ends this by its input
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--port", type=int, default=29517)
    args = p.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    context = torch.multiprocessing.get_context("spawn")
    others = [context.Process(target=member, args=(rank, args, cores, None), daemon=True)
              for rank in range(1, args.workers)]
    for process in others:
        process.start()
    member(0, args, cores, sys.stdin)
    for process in others:
        process.join()


if __name__ == "__main__":
    main()
