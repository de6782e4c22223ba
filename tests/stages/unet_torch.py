"""Makes the numbers in unet_test.ts that PyTorch's U-Net gives.

    python unet_torch.py

Weights, running statistics and the input are those of resnet50_torch.py's
formula. Prints, in double precision, inference and training mode: the logits of
some pixels, then the mean of all logits and of their squares; and how far
PyTorch itself is from that in single precision, relative to the largest.
"""
import torch, torch.nn as nn, torch.nn.functional as F
from resnet50_torch import fill, uniform
import numpy as np

BATCH, HEIGHT, WIDTH, CLASSES = 2, 64, 96, 2


def conv_bn(cin, out, kernel, stride=1):
    return [nn.Conv2d(cin, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out)]


class Basic(nn.Module):
    def __init__(self, cin, out, stride):
        super().__init__()
        same = stride == 1 and cin == out
        self.short = nn.Identity() if same else nn.Sequential(*conv_bn(cin, out, 1, stride))
        self.body = nn.Sequential(*conv_bn(cin, out, 3, stride), nn.ReLU(), *conv_bn(out, out, 3))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


class Decode(nn.Module):
    def __init__(self, cin, skip, out):
        super().__init__()
        self.body = nn.Sequential(*conv_bn(cin + skip, out, 3), nn.ReLU(), *conv_bn(out, out, 3), nn.ReLU())

    def forward(self, x, skip=None):
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.body(x if skip is None else torch.cat([x, skip], 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(*conv_bn(3, 64, 7, 2), nn.ReLU())
        self.encoder, cin = nn.ModuleList(), 64
        for out, blocks, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
            self.encoder.append(nn.Sequential(*[Basic(out if i else cin, out, 1 if i else stride) for i in range(blocks)]))
            cin = out
        decoder = [(512, 256, 256), (256, 128, 128), (128, 64, 64), (64, 64, 32), (32, 0, 16)]
        self.decoder = nn.ModuleList([Decode(*channels) for channels in decoder])
        self.head = nn.Conv2d(16, CLASSES, 3, 1, 1)

    def forward(self, x):
        skips = [None, self.stem(x)]
        x = F.max_pool2d(skips[1], 3, 2, 1)
        for group in self.encoder:
            x = group(x)
            skips.append(x)
        skips.pop()
        for decode in self.decoder:
            x = decode(x, skips.pop())
        return self.head(x)


def main():
    size = BATCH * HEIGHT * WIDTH * 3
    image = uniform(0, size).astype(np.float32).reshape(BATCH, HEIGHT, WIDTH, 3)
    x = torch.from_numpy(image).permute(0, 3, 1, 2)
    print("torch", torch.__version__, "weights", sum(p.numel() for p in UNet().parameters()))
    for training in [False, True]:
        model = UNet()
        fill(model)
        model.train(training)
        with torch.no_grad():
            single = model(x)
            exact = model.double()(x.double())
        error = float((single - exact).abs().max() / exact.abs().max())
        logits = exact.permute(0, 2, 3, 1).reshape(-1)
        show = lambda values: [float(f"{v:.7g}") for v in values]
        print("training" if training else "inference", show(logits[::1999]), "means",
              show([logits.mean(), (logits ** 2).mean()]), f"single: {error:.1e}")


if __name__ == "__main__":
    main()
