"""ResNet50 in PyTorch, a training step at a time, for figures on the same machine in the same rounds.

    python torch_peer.py --mode single|pipeline --size 128 --batch 32 --micro 8 --devices 2

Every device is one CPU core: `single` is one process with one thread, `pipeline` one process with one thread
per stage, torch.distributed.pipelining (1F1B) over gloo between them. Reads lines from standard input: "step"
runs one step and prints {"seconds": s}, "cut N" cuts the pipeline before child N of the model. Ends with its
standard input.
"""
import argparse, json, os, signal, sys, time
import torch, torch.nn as nn, torch.nn.functional as F


class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride):
        super().__init__()
        out = mid * 4
        self.body = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, out, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Identity() if stride == 1 and cin == out else nn.Sequential(
            nn.Conv2d(cin, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet50(classes):
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    layers, cin = stem, 64
    for mid, n, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for i in range(n):
            layers.append(Bottleneck(cin, mid, 1 if i else stride))
            cin = mid * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes))


def tell(**message):
    print(json.dumps(message), flush=True)


def data(args):
    return torch.randn(args.batch, 3, args.size, args.size), torch.randn(args.batch, 1000)


def single(args):
    torch.set_num_threads(1); os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]}); torch.manual_seed(0)
    model, loss = resnet50(1000), nn.MSELoss()
    opt = torch.optim.SGD(model.parameters(), lr=1e-2); x, y = data(args)
    tell(ready=torch.__version__)
    for line in sys.stdin:
        t = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        value = loss(model(x), y); value.backward(); opt.step()
        tell(seconds=time.perf_counter() - t, loss=value.item())


def stage(rank, args, cores, lines):
    """One stage in a process of its own. Rank 0 reads the orders and passes them on."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    torch.set_num_threads(1); os.sched_setaffinity(0, {cores[rank % len(cores)]})
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    dist.init_process_group("gloo", rank=rank, world_size=args.devices)
    x, y = data(args); schedule = opt = None

    def build(cuts):
        torch.manual_seed(0)
        parts = list(resnet50(1000).children()); edges = [0, *cuts, len(parts)]
        part = nn.Sequential(*parts[edges[rank]:edges[rank + 1]])
        pipe = PipelineStage(part, rank, args.devices, torch.device("cpu"))
        return Schedule1F1B(pipe, n_microbatches=args.micro, loss_fn=nn.MSELoss()), torch.optim.SGD(part.parameters(), lr=1e-2)

    if rank == 0:
        tell(ready=torch.__version__)
    while True:
        order = [lines.readline().strip() if rank == 0 else None]
        dist.broadcast_object_list(order, 0)
        word, *rest = order[0].split() or ["end"]
        if word == "end":
            return
        if word == "cut":
            schedule, opt = build([int(n) for n in rest])
        t = time.perf_counter(); losses = []
        opt.zero_grad(set_to_none=True)
        if rank == 0:
            schedule.step(x)
        elif rank == args.devices - 1:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        opt.step(); dist.barrier()
        if rank == 0:
            tell(seconds=time.perf_counter() - t)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who gives the orders, and ends this by its input
    p = argparse.ArgumentParser()
    p.add_argument("--mode", choices=["single", "pipeline"], default="single")
    p.add_argument("--size", type=int, default=128); p.add_argument("--batch", type=int, default=32)
    p.add_argument("--micro", type=int, default=8); p.add_argument("--devices", type=int, default=2)
    p.add_argument("--port", type=int, default=29517)
    args = p.parse_args()
    if args.mode == "single":
        return single(args)
    cores = sorted(os.sched_getaffinity(0))
    context = torch.multiprocessing.get_context("spawn")
    others = [context.Process(target=stage, args=(rank, args, cores, None)) for rank in range(1, args.devices)]
    for process in others:
        process.start()
    stage(0, args, cores, sys.stdin)
    for process in others:
        process.join()


if __name__ == "__main__":
    main()
