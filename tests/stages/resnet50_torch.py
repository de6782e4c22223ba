"""Makes the numbers in resnet50_test.ts that PyTorch's ResNet50 gives.

    python resnet50_torch.py

Weights, running statistics and the input follow from a formula that the test
repeats: element i of tensor t, in TensorFlow's order of axes, comes from a hash
of (t, i). Prints, in double precision, inference and training mode with the
stride on the 3x3 convolution and inference mode with it on the first 1x1; and
how far PyTorch itself is from that in single precision, relative to the largest.
"""
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

BATCH, HEIGHT, WIDTH, CLASSES = 2, 64, 48, 5


def uniform(tensor, size):
    """`size` numbers in [-1, 1): the finalizer of MurmurHash3 over their index."""
    x = np.arange(size, dtype=np.uint32) + np.uint32(tensor * 0x9E3779B9 % 2**32)
    for shift, factor in [(16, 0x85EBCA6B), (13, 0xC2B2AE35)]:
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return (x ^ (x >> np.uint32(16))) / 2.0**31 - 1


class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride, stride_on):
        super().__init__()
        first, second = (stride, 1) if stride_on == "1x1" else (1, stride)
        self.short = nn.Identity() if cin == 4 * mid else nn.Sequential(
            nn.Conv2d(cin, 4 * mid, 1, stride, bias=False), nn.BatchNorm2d(4 * mid))
        self.body = nn.Sequential(
            nn.Conv2d(cin, mid, 1, first, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, mid, 3, second, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, 4 * mid, 1, bias=False), nn.BatchNorm2d(4 * mid))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet50(stride_on):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    cin = 64
    for mid, blocks, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for i in range(blocks):
            layers.append(Bottleneck(cin, mid, 1 if i else stride, stride_on))
            cin = 4 * mid
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES))


@torch.no_grad()
def fill(model):
    """Tensor 0 is the input; 1, 2, ... the weights in the order of the modules above."""
    count = 0

    def put(parameter, center, spread, axes=None):
        nonlocal count
        count += 1
        shape = [parameter.shape[a] for a in axes] if axes else list(parameter.shape)
        values = (center + spread * uniform(count, parameter.numel())).astype(np.float32).reshape(shape)
        parameter.copy_(torch.from_numpy(values.transpose(np.argsort(axes)) if axes else values))

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            put(module.weight, 0, (6 / module.weight[0].numel()) ** 0.5, [2, 3, 1, 0])
            if module.bias is not None:
                put(module.bias, 0, 1)
        elif isinstance(module, nn.BatchNorm2d):
            put(module.weight, 1, 0.25)
            put(module.bias, 0, 0.25)
            put(module.running_mean, 0, 0.25)
            put(module.running_var, 1, 0.5)
        elif isinstance(module, nn.Linear):
            put(module.weight, 0, 2048 ** -0.5, [1, 0])
            put(module.bias, 0, 2048 ** -0.5)


def main():
    size = BATCH * HEIGHT * WIDTH * 3
    image = uniform(0, size).astype(np.float32).reshape(BATCH, HEIGHT, WIDTH, 3)
    x = torch.from_numpy(image).permute(0, 3, 1, 2)
    print("torch", torch.__version__)
    for stride_on, training in [("3x3", False), ("3x3", True), ("1x1", False)]:
        model = resnet50(stride_on)
        fill(model)
        model.train(training)
        with torch.no_grad():
            single = model(x)
            exact = model.double()(x.double())
        error = float((single - exact).abs().max() / exact.abs().max())
        mode = "training" if training else "inference"
        print(stride_on, mode, [[float(f"{v:.7g}") for v in row] for row in exact], f"single: {error:.1e}")


if __name__ == "__main__":
    main()
