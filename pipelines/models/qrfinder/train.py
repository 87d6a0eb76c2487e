# SPDX-License-Identifier: Apache-2.0
"""Trains the QR-code finder on synthetic pictures and writes qrfinder.onnx; `./dev train qrfinder` runs it.

Everything random follows from --seed. One thread; a checkpoint is written as it goes, --resume continues it.
"""
import argparse
import copy
import json
import math
import os
import pathlib
import time

import numpy as np
import onnx
import torch

import net
import render

HERE = pathlib.Path(__file__).parent
SIZE = 320  # of the exported model
MOST = 8    # boxes per picture
SCORE, IOU = 0.25, 0.45  # the decoder's defaults

# Steps, top learning rate, share of rough scenery, focus of the score's loss on what is badly wrong, pictures kept rendered:
# plain scenery first, then the hard one, then a mixture, each from where the one before ended.
STAGES = ((2400, 2e-3, 0.0, 2.0, 3000), (3000, 1.5e-3, 0.45, 1.5, 2000),
          (2200, 1e-3, 0.3, 1.5, 1600))
LARGE_SHARE = 0.15  # of a stage's steps, its last ones, are made at full input size; the others at 192 pixels


# ---- pictures -----------------------------------------------------------------------------------------------------
class Pool:
    """Rendered pictures, a part of which is replaced between rounds."""

    def __init__(self, rng, size, count, rough):
        self.rng, self.size, self.rough = rng, size, rough
        self.sprites = render.make_sprites(rng, 400, rough > 0)
        self.items = [self.new() for _ in range(count)]
        self.oldest = 0

    def new(self):
        return render.render(self.rng, self.size, *self.sprites, self.rough)

    def refresh(self, count):
        for _ in range(count):
            self.items[self.oldest] = self.new()
            self.oldest = (self.oldest + 1) % len(self.items)

    def batch(self, count, size):
        pictures = np.empty((count, size, size, 3), np.uint8)
        rows = np.zeros((count, MOST, 5), np.float32)
        for i in range(count):
            picture, boxes = self.items[int(self.rng.integers(len(self.items)))]
            pictures[i], boxes = self.cut(picture, boxes, size)
            rows[i, :len(boxes)] = boxes[:MOST]
        return to_input(pictures), torch.from_numpy(rows)

    def cut(self, picture, rows, size):
        """A random window, turned, mirrored, with bars of the letterbox now and then."""
        rng, room = self.rng, self.size - size
        x, y = rng.integers(0, room + 1, 2)
        picture = picture[y:y + size, x:x + size].copy()
        rows = rows.copy()
        area = (rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1])
        rows[:, 0:4:2] = np.clip(rows[:, 0:4:2] - x, 0, size)
        rows[:, 1:4:2] = np.clip(rows[:, 1:4:2] - y, 0, size)
        if rng.random() < 0.25:
            bar = int(size * rng.uniform(0.05, 0.22))
            picture[:bar], picture[size - bar:] = 114, 114
            rows[:, 1:4:2] = np.clip(rows[:, 1:4:2], bar, size - bar)
        left = (rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1])
        rows[:, 4] *= left > 0.6 * area
        rows = rows[(left > 0) & (rows[:, 2] > rows[:, 0]) & (rows[:, 3] > rows[:, 1])]
        if rng.random() < 0.5:
            picture = picture[:, ::-1]
            rows[:, [0, 2]] = size - rows[:, [2, 0]]
        if rng.random() < 0.5:
            picture = picture.transpose(1, 0, 2)
            rows = rows[:, [1, 0, 3, 2, 4]]
        if rng.random() < 0.3:
            picture = picture[..., rng.permutation(3)]
        return picture, rows


def to_input(pictures):
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float().div_(255).contiguous(memory_format=torch.channels_last)


# ---- loss ---------------------------------------------------------------------------------------------------------
def assign(rows, centres, strides):
    """For each picture and cell: index of the box it answers for or -1, and whether it takes part in the score."""
    points = centres * strides  # [2,N]
    middle = (rows[..., 0:2] + rows[..., 2:4]) / 2
    extent = rows[..., 2:4] - rows[..., 0:2]
    side = extent.prod(-1).clamp(min=1e-6).sqrt()
    wanted = rows[..., 4] > 0
    ignored = (extent.min(-1).values > 0) & ~wanted
    delta = (points[None, None] - middle[..., None]).abs()  # [B,M,2,N]
    inside = (delta < extent[..., None] / 2).all(2)
    near = (delta < 1.5 * strides).all(2)
    s = strides[0]
    least = torch.where(s == 8, 0.0, s * 2.5)
    most = torch.where(s == 32, 1e9, s * 7.0)
    fits = (side[..., None] > least) & (side[..., None] < most)
    match = inside & near & fits & wanted[..., None]
    cost = torch.where(match, side[..., None], torch.inf)
    best, index = cost.min(1)
    index = torch.where(torch.isinf(best), -1, index)
    # Cells inside a box that answer at another stride or beside its middle are background; inside an ignored box, nothing.
    active = ~(inside & ignored[..., None]).any(1) | (index >= 0)
    return index, active


def overlap(a, b):
    """IoU and its generalised form of boxes given by centre and size, [K,4]."""
    a0, a1, b0, b1 = a[:, :2] - a[:, 2:] / 2, a[:, :2] + a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2
    inter = (torch.minimum(a1, b1) - torch.maximum(a0, b0)).clamp(min=0).prod(1)
    union = a[:, 2:].prod(1) + b[:, 2:].prod(1) - inter
    hull = (torch.maximum(a1, b1) - torch.minimum(a0, b0)).prod(1)
    iou = inter / (union + 1e-6)
    return iou, iou - (hull - union) / (hull + 1e-6)


def loss_of(raw, rows, centres, strides, focus):
    index, active = assign(rows, centres, strides)
    picked = index >= 0
    b, n = picked.nonzero(as_tuple=True)
    target = torch.zeros_like(raw[:, 4])
    box_loss = raw.sum() * 0
    if len(b):
        found = net.boxes(raw, centres, strides).permute(0, 2, 1)[b, n]
        row = rows[b, index[b, n]]
        truth = torch.cat([(row[:, 0:2] + row[:, 2:4]) / 2, row[:, 2:4] - row[:, 0:2]], 1)
        iou, giou = overlap(found, truth)
        box_loss = (1 - giou).sum()
        target[b, n] = iou.detach().clamp(0.05, 1)
    score = raw[:, 4]
    bce = torch.nn.functional.binary_cross_entropy_with_logits(score, target, reduction="none")
    weight = (torch.sigmoid(score.detach()) - target).abs().pow(focus) * active  # quality focal loss
    count = max(1, len(b))
    return ((bce * weight).sum() + 1.5 * box_loss) / count


# ---- measuring ----------------------------------------------------------------------------------------------------
def iou_matrix(a, b):
    lo = np.maximum(a[:, None, :2], b[None, :, :2])
    hi = np.minimum(a[:, None, 2:4], b[None, :, 2:4])
    inter = np.clip(hi - lo, 0, None).prod(2)
    area = lambda r: (r[:, 2] - r[:, 0]) * (r[:, 3] - r[:, 1])
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-9)


def decode(output, threshold=SCORE, limit=IOU):
    """Boxes x0, y0, x1, y1, score of one [5,N] output after non-maximum suppression."""
    keep = output[:, output[4] > threshold].T
    keep = keep[np.argsort(-keep[:, 4], kind="stable")]
    found = np.concatenate([keep[:, :2] - keep[:, 2:4] / 2, keep[:, :2] + keep[:, 2:4] / 2, keep[:, 4:]], 1)
    left = []
    while len(found):
        left.append(found[0])
        found = found[1:][iou_matrix(found[:1], found[1:])[0] <= limit]
    return np.array(left).reshape(-1, 5)


def judged(model, pictures, threshold):
    """Boxes found in all pictures as rows score, right; and for each wanted code its side and whether it was found."""
    model.eval()
    boxes, codes = [], []
    with torch.no_grad():
        for picture, rows in pictures:
            found = decode(model(to_input(picture[None].copy()))[0].numpy(), threshold)
            match = iou_matrix(found, rows[:, :4]) >= 0.5
            right = match.any(1) if len(rows) else np.zeros(len(found), bool)
            boxes += [(score, hit) for score, hit in zip(found[:, 4], right)]
            sides = np.sqrt((rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1]))
            codes += [(side, match[:, k].any()) for k, side in enumerate(sides) if rows[k, 4]]
    return np.array(boxes).reshape(-1, 2), np.array(codes).reshape(-1, 2)


def calibrate(network):
    """Shifts the scores so that the decoder's default threshold is the one with the best F1 on pictures of their own."""
    boxes, codes = judged(net.Export(network, SIZE), drawn(10_000_019, 200), 0.05)
    boxes = boxes[np.argsort(-boxes[:, 0])]
    hits = np.cumsum(boxes[:, 1])
    best = float(boxes[np.argmax(2 * hits / (np.arange(len(boxes)) + 1 + len(codes))), 0])
    logit = lambda p: math.log(p / (1 - p))
    with torch.no_grad():
        for head in network.heads:
            head[1].bias[4] += logit(SCORE) - logit(best)
    print(f"score {best:.3f} becomes {SCORE}", flush=True)


def measure(model, pictures):
    """Recall by size and precision at IoU 0.5 and the decoder's thresholds."""
    boxes, codes = judged(model, pictures, SCORE)
    side, hit = codes[:, 0], codes[:, 1]
    share = lambda chosen: round(float(hit[chosen].mean()), 4)
    return {
        "pictures": len(pictures), "codes": len(codes), "boxes": len(boxes),
        "recall": share(side > 0), "precision": round(float(boxes[:, 1].mean()), 4),
        "recall, side below 32 pixels": share(side < 32),
        "recall, 32 to 96": share((side >= 32) & (side < 96)),
        "recall, 96 and more": share(side >= 96),
    }


# ---- writing ------------------------------------------------------------------------------------------------------
def export(network, path):
    model = net.Export(network, SIZE).eval()
    torch.onnx.export(model, torch.zeros(1, 3, SIZE, SIZE), str(path), opset_version=13, input_names=["images"],
                      output_names=["output0"], do_constant_folding=True, dynamo=False)
    proto = onnx.load(str(path))
    onnx.helper.set_model_props(proto, {  # as Ultralytics exports have them: no sidecar is needed
        "description": "QR-code finder trained on synthetic pictures only",
        "author": "gst-vartml", "license": "Apache-2.0", "task": "detect", "stride": "32", "batch": "1",
        "imgsz": str([SIZE, SIZE]), "names": str({0: "qr-code"}),
    })
    onnx.checker.check_model(proto)
    onnx.save(proto, str(path))


# ---- training -----------------------------------------------------------------------------------------------------
def train(options):
    torch.manual_seed(options.seed)
    network = net.QrFinder().to(memory_format=torch.channels_last)
    average = copy.deepcopy(network).eval()
    print("parameters:", sum(p.numel() for p in network.parameters()), flush=True)
    state = {"stage": 0, "step": 0}
    if options.resume:
        state = torch.load(options.checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        average.load_state_dict(state["average"])
    for stage in range(state["stage"], len(STAGES)):
        resumed = state if stage == state["stage"] else {"step": 0}
        train_stage(options, stage, network, average, resumed)
    return average


def train_stage(options, stage, network, average, state):
    steps, top_rate, rough, focus, kept = STAGES[stage]
    steps, kept = min(steps, options.most_steps), min(kept, 20 * options.most_steps)
    optimiser = torch.optim.AdamW(network.parameters(), lr=top_rate, weight_decay=0.02)
    if "optimiser" in state:
        optimiser.load_state_dict(state["optimiser"])
    first = state["step"]
    rng = np.random.default_rng([options.seed, stage, first] if first else [options.seed, stage])
    pool, start, running = None, time.time(), None
    for step in range(first, steps):
        large = step >= int(steps * (1 - LARGE_SHARE))
        size = SIZE if large else 192
        if pool is None or (large and pool.size < SIZE):
            pool = Pool(rng, size + 32, kept // 2 if large else kept, rough)
            centres, strides = net.grid(size)
            print(f"pool of {len(pool.items)} pictures, {time.time() - start:.0f} s", flush=True)
        elif step % 50 == 0:
            pool.refresh(kept // 40)
        warm_up, done = min(1, (step + 1) / 100), step / steps
        for group in optimiser.param_groups:
            group["lr"] = top_rate * warm_up * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
        pictures, rows = pool.batch(options.batch if not large else options.batch // 2, size)
        network.train()
        loss = loss_of(network(pictures), rows, centres, strides, focus)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        decay = min(0.998, (step + 1) / (step + 20)) if stage == 0 else 0.998
        with torch.no_grad():
            for a, p in zip(average.state_dict().values(), network.state_dict().values()):
                if a.dtype.is_floating_point:
                    a.lerp_(p, 1 - decay)
        running = float(loss.detach()) if running is None else 0.98 * running + 0.02 * float(loss.detach())
        if step % 50 == 0:
            print(f"stage {stage} step {step} loss {running:.3f} {time.time() - start:.0f} s", flush=True)
        if (step + 1) % 250 == 0 or step + 1 == steps:
            torch.save({"network": network.state_dict(), "average": average.state_dict(),
                        "optimiser": optimiser.state_dict(), "stage": stage, "step": step + 1},
                       str(options.checkpoint) + ".tmp")
            os.replace(str(options.checkpoint) + ".tmp", options.checkpoint)


def drawn(seed, count):
    """Pictures of codes, decoys and backgrounds that training never saw: a seed and sprites of their own."""
    rng = np.random.default_rng(seed)
    sprites = render.make_sprites(rng, 150, True)
    return [render.render(rng, SIZE, *sprites, 0.5) for _ in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--most-steps", type=int, default=10**9, help="fewer steps per stage, for a quick look")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--checkpoint", type=pathlib.Path, default=HERE / "checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--export-only", action="store_true", help="measure and write the checkpoint's network")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "qrfinder.onnx")
    options = parser.parse_args()
    os.nice(19)
    torch.set_num_threads(options.threads)
    if options.export_only:
        average = net.QrFinder()
        average.load_state_dict(torch.load(options.checkpoint, weights_only=True)["average"])
    else:
        average = train(options)
    calibrate(average)
    export(average, options.output)
    figures = measure(net.Export(average, SIZE), drawn(20_000_003, 400))
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
