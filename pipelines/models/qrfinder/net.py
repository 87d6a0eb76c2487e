# SPDX-License-Identifier: Apache-2.0
"""The detector: a small anchor-free network with one class and strides 8, 16, 32."""
import torch
from torch import nn

STRIDES = (8, 16, 32)


def conv(c_in, c_out, k=3, s=1):
    return nn.Sequential(nn.Conv2d(c_in, c_out, k, s, k // 2, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True))


class Block(nn.Module):
    """Narrow, look around, add."""

    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(conv(c, c // 2, 1), conv(c // 2, c, 3))

    def forward(self, x):
        return x + self.body(x)


class QrFinder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 12, 3, 2), conv(12, 24, 3, 2), Block(24))
        self.c3 = nn.Sequential(conv(24, 40, 3, 2), Block(40), Block(40))
        self.c4 = nn.Sequential(conv(40, 56, 3, 2), Block(56), Block(56))
        self.c5 = nn.Sequential(conv(56, 64, 3, 2), Block(64), Block(64))
        self.p5 = conv(64, 32, 1)
        self.p4 = nn.Sequential(conv(32 + 56, 32, 1), conv(32, 32))
        self.p3 = nn.Sequential(conv(32 + 40, 32, 1), conv(32, 32))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.heads = nn.ModuleList(nn.Sequential(conv(32, 32), nn.Conv2d(32, 5, 1)) for _ in STRIDES)
        for head in self.heads:
            nn.init.zeros_(head[1].bias)
            nn.init.constant_(head[1].bias[4:], -4.6)  # one cell in a hundred to begin with

    def forward(self, x):
        """Raw maps [B,5,N]: offset of the centre and log size in strides, score before sigmoid."""
        c3 = self.c3(self.stem(x))
        c4 = self.c4(c3)
        p5 = self.p5(self.c5(c4))
        p4 = self.p4(torch.cat([self.up(p5), c4], 1))
        p3 = self.p3(torch.cat([self.up(p4), c3], 1))
        size = int(x.shape[2])  # square; a constant of the exported graph
        maps = zip(self.heads, (p3, p4, p5), STRIDES)
        return torch.cat([head(p).reshape(-1, 5, (size // s) ** 2) for head, p, s in maps], 2)


def grid(size):
    """Centres of the cells [2,N] in cells, and strides [1,N], for a square input."""
    centres, strides = [], []
    for s in STRIDES:
        y, x = torch.meshgrid(torch.arange(size // s) + 0.5, torch.arange(size // s) + 0.5, indexing="ij")
        centres.append(torch.stack([x.flatten(), y.flatten()]))
        strides.append(torch.full((1, (size // s) ** 2), float(s)))
    return torch.cat(centres, 1), torch.cat(strides, 1)


def boxes(raw, centres, strides):
    """Centre and size in model pixels [B,4,N]."""
    return torch.cat([(raw[:, 0:2] + centres) * strides, torch.exp(raw[:, 2:4]) * strides], 1)


class Export(nn.Module):
    """What is written: boxes in model pixels and the score after sigmoid, [1,5,N], as Ultralytics exports have it."""

    def __init__(self, net, size):
        super().__init__()
        self.net = net
        centres, strides = grid(size)
        self.register_buffer("centres", centres[None])
        self.register_buffer("strides", strides[None])

    def forward(self, x):
        raw = self.net(x)
        return torch.cat([boxes(raw, self.centres, self.strides), torch.sigmoid(raw[:, 4:5])], 1)
