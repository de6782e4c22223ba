"""ResNet50 or U-Net in PyTorch, a training step at a time, for figures on the same machine in the same rounds.

    python torch_peer.py --model resnet50|unet --mode single|ddp|pipeline --size 128 --batch 32 --micro 8 --devices 2

Every device is one CPU core: `single` is one process with one thread, `ddp` one process with one thread per
replica, DistributedDataParallel over gloo, `pipeline` (ResNet50 alone) one process with one thread per stage,
torch.distributed.pipelining (1F1B) over gloo between them. Reads lines from standard input: "step" runs one step
and prints {"seconds": s}, "cut N" cuts the pipeline before child N of the model. Ends with its standard input.
"""
import argparse, os, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
from processes import ignore_interrupts, join, run_processes, tell


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


class Basic(nn.Module):
    def __init__(self, cin, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(cin, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Identity() if stride == 1 and cin == out else nn.Sequential(
            nn.Conv2d(cin, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


class Decode(nn.Module):
    def __init__(self, cin, skip, out):
        super().__init__()
        conv = lambda i: [nn.Conv2d(i, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*conv(cin + skip), *conv(out))

    def forward(self, x, skip=None):
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.body(x if skip is None else torch.cat([x, skip], 1))


class UNet(nn.Module):
    """ResNet34 encoder, decoder of 256-128-64-32-16 channels, one logit per pixel."""
    def __init__(self):
        super().__init__()
        def group(cin, out, n, stride):
            return nn.Sequential(*[Basic(cin if i == 0 else out, out, stride if i == 0 else 1) for i in range(n)])
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.e1, self.e2 = group(64, 64, 3, 1), group(64, 128, 4, 2)
        self.e3, self.e4 = group(128, 256, 6, 2), group(256, 512, 3, 2)
        self.d4, self.d3 = Decode(512, 256, 256), Decode(256, 128, 128)
        self.d2, self.d1 = Decode(128, 64, 64), Decode(64, 64, 32)
        self.d0, self.head = Decode(32, 0, 16), nn.Conv2d(16, 1, 3, 1, 1)

    def forward(self, x):
        s0 = self.stem(x); s1 = self.e1(self.pool(s0)); s2 = self.e2(s1); s3 = self.e3(s2)
        return self.head(self.d0(self.d1(self.d2(self.d3(self.d4(self.e4(s3), s3), s2), s1), s0)))


def bce_dice(logits, masks):
    """Binary cross-entropy on logits plus one less the soft Dice coefficient."""
    p, g = torch.sigmoid(logits).flatten(1), masks.flatten(1)
    dice = 1 - (2 * (p * g).sum(1) + 1) / ((p * p).sum(1) + (g * g).sum(1) + 1)
    return F.binary_cross_entropy_with_logits(logits, masks) + dice.mean()


def training(args):
    """The model, its loss and its optimizer."""
    torch.manual_seed(0)
    if args.model == "unet":
        model = UNet()
        return model, bce_dice, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model = resnet50(1000)
    return model, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=1e-2)


def data(args, count):
    x = torch.randn(count, 3, args.size, args.size)
    if args.model == "unet":
        return x, torch.rand(count, 1, args.size, args.size).round()
    return x, torch.randn(count, 1000)


def single(args):
    torch.set_num_threads(1); os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    model, loss, opt = training(args); x, y = data(args, args.batch)
    tell(ready=torch.__version__)
    for line in sys.stdin:
        t = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        value = loss(model(x), y); value.backward(); opt.step()
        tell(seconds=time.perf_counter() - t, loss=value.item())


def replica(rank, args, cores, lines):
    """One replica in a process of its own. Rank 0 reads the orders and passes them on."""
    dist = join(rank, args.devices, args.port, cores)
    model, loss, opt = training(args); share = len(range(rank, args.batch, args.devices))
    model = nn.parallel.DistributedDataParallel(model); x, y = data(args, share)
    if rank == 0:
        tell(ready=torch.__version__)
    while True:
        order = [lines.readline().strip() if rank == 0 else None]
        dist.broadcast_object_list(order, 0)
        if not order[0]:
            return
        t = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        value = loss(model(x), y); value.backward(); opt.step(); dist.barrier()
        if rank == 0:
            tell(seconds=time.perf_counter() - t, loss=value.item())


def stage(rank, args, cores, lines):
    """One stage in a process of its own. Rank 0 reads the orders and passes them on."""
    dist = join(rank, args.devices, args.port, cores)
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    x, y = data(args, args.batch); schedule = opt = None

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
    ignore_interrupts()
    p = argparse.ArgumentParser()
    p.add_argument("--model", choices=["resnet50", "unet"], default="resnet50")
    p.add_argument("--mode", choices=["single", "ddp", "pipeline"], default="single")
    p.add_argument("--size", type=int, default=128); p.add_argument("--batch", type=int, default=32)
    p.add_argument("--micro", type=int, default=8); p.add_argument("--devices", type=int, default=2)
    p.add_argument("--port", type=int, default=29517)
    args = p.parse_args()
    if args.mode == "single":
        return single(args)
    run_processes(replica if args.mode == "ddp" else stage, args, args.devices)


if __name__ == "__main__":
    main()
