"""What the PyTorch peers share: processes of one thread, each bound to one core, that answer orders line by line."""
import json, os, signal, sys
import torch


def tell(**message):
    print(json.dumps(message), flush=True)


def ignore_interrupts():
    """Ctrl-C is for who gives the orders, and ends this by its input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def join(rank, size, port, cores):
    """Binds this process to its core and joins the others over gloo."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1); os.sched_setaffinity(0, {cores[rank % len(cores)]})
    import torch.distributed as dist
    dist.init_process_group("gloo", rank=rank, world_size=size)
    return dist


def run_processes(run, args, size):
    """`run(rank, args, cores, lines)` in so many processes; this one is rank 0, which reads the orders."""
    cores = sorted(os.sched_getaffinity(0))
    context = torch.multiprocessing.get_context("spawn")
    others = [context.Process(target=run, args=(rank, args, cores, None), daemon=True) for rank in range(1, size)]
    for process in others:
        process.start()
    run(0, args, cores, sys.stdin)
    for process in others:
        process.join()
