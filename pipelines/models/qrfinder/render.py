# SPDX-License-Identifier: Apache-2.0
"""Synthetic pictures with QR codes: the only data that the model is trained on.

render(rng, size, ...) gives one picture and its boxes; everything follows from the random generator passed in. `rough` is the
share of rough scenery: leaves, fur, script, mazes, all that is black and white and restless without being a code.
"""
import io
import string

import numpy as np
import qrcode
from PIL import Image, ImageDraw, ImageFilter

LEAST_SIDE = 15  # pixels; a smaller code is neither wanted nor punished


# ---- codes --------------------------------------------------------------------------------------------------------
def qr_modules(rng):
    """A QR symbol as a 0/1 matrix, 1 = dark, without quiet zone."""
    version = int(np.clip(rng.geometric(0.28), 1, 14))
    level = int(rng.choice([qrcode.ERROR_CORRECT_L, qrcode.ERROR_CORRECT_M, qrcode.ERROR_CORRECT_Q]))
    code = qrcode.QRCode(version=version, error_correction=level, mask_pattern=int(rng.integers(8)), border=0)
    room = {1: 9, 2: 18, 3: 30, 4: 42, 5: 56, 6: 70}.get(version, 80 + (version - 7) * 14)
    letters = list(string.ascii_letters + string.digits + "/:.-?=&")
    code.add_data("".join(rng.choice(letters, size=max(1, int(room * rng.uniform(0.4, 1))))))
    code.make(fit=True)
    return np.array(code.get_matrix(), np.uint8)


def styled(rng, modules, quiet):
    """The symbol at 8 to 12 pixels per module with its quiet zone: an 8-bit picture, 0 = dark."""
    n = modules.shape[0]
    pitch = 12 if n < 35 else 8
    padded = np.pad(modules, quiet)
    big = np.kron(padded, np.ones((pitch, pitch), np.uint8))
    style = rng.random()
    if style < 0.2:  # dots or small squares, finder patterns whole
        y, x = np.mgrid[0:pitch, 0:pitch] + 0.5 - pitch / 2
        part = (x * x + y * y < (pitch * 0.48) ** 2) if rng.random() < 0.5 else (
            np.maximum(abs(x), abs(y)) < pitch * rng.uniform(0.36, 0.47))
        dots = big * np.tile(part.astype(np.uint8), padded.shape)
        for r, c in ((0, 0), (0, n - 7), (n - 7, 0)):
            r, c = (quiet + r) * pitch, (quiet + c) * pitch
            dots[r:r + 7 * pitch, c:c + 7 * pitch] = big[r:r + 7 * pitch, c:c + 7 * pitch]
        big = dots
    picture = Image.fromarray(255 - big * 255)
    if 0.2 <= style < 0.4:  # rounded corners, as ink or a soft printer gives
        picture = picture.filter(ImageFilter.GaussianBlur(pitch * 0.3)).point(lambda v: 255 if v > 127 else 0)
    return picture


def code_sprite(rng):
    """(RGBA picture, its quiet zone as a share of its side)."""
    modules = qr_modules(rng)
    quiet = int(rng.choice([0, 1, 2, 3, 4, 4, 6], p=[0.06, 0.1, 0.16, 0.16, 0.2, 0.22, 0.1]))
    gray = np.asarray(styled(rng, modules, quiet), np.float32) / 255
    dark, light = rng.uniform(0, 70, 3), rng.uniform(165, 255, 3)
    if rng.random() < 0.6:  # mostly black and white inks
        dark, light = np.full(3, dark.mean()), np.full(3, light.mean())
    if rng.random() < 0.05:
        dark, light = light, dark
    rgb = dark + (light - dark) * gray[..., None]
    picture = Image.fromarray(rgb.astype(np.uint8)).convert("RGBA")
    side = picture.width
    if rng.random() < 0.12:  # a logo in the middle
        draw = ImageDraw.Draw(picture)
        h = side * rng.uniform(0.07, 0.12)
        box = [side / 2 - h, side / 2 - h, side / 2 + h, side / 2 + h]
        (draw.ellipse if rng.random() < 0.5 else draw.rectangle)(box, fill=colour(rng) + (255,))
    return picture, quiet / (modules.shape[0] + 2 * quiet)


# ---- things that look like codes and are none ---------------------------------------------------------------------
def decoy_sprite(rng, rough=False):
    if rough and rng.random() < 0.5:
        return rough_sprite(rng), 0.0
    kind = rng.integers(10)
    n = int(rng.integers(8, 34))
    if kind == 0:  # checkerboard
        cells = np.indices((n, n)).sum(0) % 2
    elif kind == 1:  # linear bar code
        cells = np.tile((rng.random(n * 3) < 0.5), (n * 2, 1))
    elif kind == 2:  # data matrix: solid edge left and below, clock track above and right
        cells = rng.random((n, n)) < 0.5
        cells[:, 0] = cells[-1] = 1
        cells[0] = np.arange(n) % 2 == 0
        cells[:, -1] = np.arange(n) % 2
    elif kind == 3:  # noise without finder patterns
        cells = rng.random((n, n)) < rng.uniform(0.3, 0.7)
    elif kind == 4:  # concentric squares
        y, x = np.indices((n, n)) - n // 2
        cells = np.maximum(abs(x), abs(y)) // int(rng.integers(1, 3)) % 2
    elif kind == 5:  # crossword or window grid
        cells = np.ones((n * 2, n * 2))
        step = int(rng.integers(3, 7))
        cells[::step] = cells[:, ::step] = 0
        if rng.random() < 0.5:
            cells = np.maximum(cells, 0) * (rng.random((n * 2, n * 2)) < 0.9)
    elif kind == 6:  # a few big blocks
        cells = np.kron(rng.random((5, 5)) < 0.5, np.ones((4, 4)))
    elif kind == 7:  # a label: bars of one to four units, sometimes in several rows, with light ends
        cells = np.repeat(*label_bars(rng, n), axis=1)
        cells = np.pad(np.repeat(cells, int(rng.integers(n // 2, n * 2)), axis=0), ((2, 2), (5, 5)))
    elif kind == 8:  # a page of letters made of dots
        cells = dot_letters(rng)
    else:  # lines of text
        return text_sprite(rng), 0.0
    cells = np.pad(np.asarray(cells, np.float32), int(rng.integers(0, 3)))
    dark, light = rng.uniform(0, 90, 3), rng.uniform(150, 255, 3)
    rgb = light + (dark - light) * cells[..., None]
    picture = Image.fromarray(rgb.astype(np.uint8)).convert("RGBA")
    return picture.resize((picture.width * 8, picture.height * 8), Image.NEAREST), 0.0


def label_bars(rng, n):
    """Rows of alternate bars, and the width of each bar."""
    rows = int(rng.choice([1, 1, 1, 3, 5]))
    first = rng.integers(0, 2, (rows, 1)) if rows > 1 else np.ones((1, 1), int)
    return (np.arange(n * 2) + first) % 2, rng.integers(1, 5, n * 2)


def dot_letters(rng):
    """Lines of letters of 2x3 to 4x6 random dots, with gaps between letters, words and lines."""
    high, wide = int(rng.integers(3, 7)), int(rng.integers(2, 5))
    rows, columns = int(rng.integers(2, 12)), int(rng.integers(4, 24))
    letters = rng.random((rows, columns, high, wide)) < rng.uniform(0.35, 0.65)
    letters &= rng.random((rows, columns, 1, 1)) > 0.15
    gaps = ((0, 0), (0, 0), (0, int(rng.integers(1, high + 2))), (0, int(rng.integers(1, 3))))
    return np.pad(letters, gaps).transpose(0, 2, 1, 3).reshape(rows * (high + gaps[2][1]), -1)


def rough_sprite(rng):
    kind = rng.integers(4)
    n = int(rng.integers(12, 40))
    if kind == 0:  # a maze: noise of one scale, cut at its middle
        noise = Image.fromarray(rng.random((n, n), np.float32)).resize((n * 8, n * 8), Image.BICUBIC)
        cells = np.asarray(noise) > 0.5
    elif kind == 1:  # a symmetrical sign
        side = rng.random((n // 3, n // 6)) < 0.5
        cells = np.kron(np.concatenate([side, side[:, ::-1]], 1), np.ones((24, 24)))
    elif kind == 2:  # dots, as of a screen or a sieve
        y, x = np.mgrid[0:n * 8, 0:n * 8]
        pitch = int(rng.integers(8, 33))
        radius = pitch * rng.uniform(0.2, 0.5)
        cells = (x % pitch - pitch / 2) ** 2 + (y % pitch - pitch / 2) ** 2 < radius * radius
    else:
        return script_sprite(rng)
    dark, light = rng.uniform(0, 110, 3), rng.uniform(130, 255, 3)
    if rng.random() < 0.3:
        dark, light = light, dark
    rgb = light + (dark - light) * np.asarray(cells, np.float32)[..., None]
    return Image.fromarray(rgb.astype(np.uint8)).convert("RGBA")


def script_sprite(rng):
    """Signs of many strokes, dark on light or light on dark, sometimes without a card."""
    columns, rows, cell = int(rng.integers(1, 6)), int(rng.integers(1, 5)), 48
    paper, ink = colour(rng, 150, 256), colour(rng, 0, 100)
    if rng.random() < 0.5:
        paper, ink = ink, paper
    picture = Image.new("RGBA", (columns * cell, rows * cell), paper + (255,))
    draw = ImageDraw.Draw(picture)
    for i in range(columns * rows):
        x, y = i % columns * cell + 4, i // columns * cell + 4
        for _ in range(int(rng.integers(3, 12))):
            a, b = rng.uniform(0, cell - 8, 2), rng.uniform(0, cell - 8, 2)
            turn = rng.random()
            b = (b[0], a[1]) if turn < 0.4 else (a[0], b[1]) if turn < 0.8 else b
            draw.line([x + a[0], y + a[1], x + b[0], y + b[1]], fill=ink, width=int(rng.integers(2, 7)))
    return picture


def text_sprite(rng):
    width, height = int(rng.integers(60, 200)), int(rng.integers(30, 120))
    picture = Image.new("RGBA", (width, height), colour(rng, 150, 255) + (255,))
    draw = ImageDraw.Draw(picture)
    ink = colour(rng, 0, 90)
    for y in range(2, height - 8, 11):
        draw.text((2, y), "".join(rng.choice(list(string.printable[:94]), size=width // 6)), fill=ink)
    return picture.resize((width * 2, height * 2), Image.BICUBIC)


# ---- backgrounds --------------------------------------------------------------------------------------------------
def colour(rng, low=0, high=256):
    return tuple(int(v) for v in rng.integers(low, high, 3))


def cloud(rng, size, power=None):
    """Noise of several octaves, 0 to 1."""
    out = np.zeros((size, size), np.float32)
    power = rng.uniform(0.35, 0.85) if power is None else power
    cells, weight = 2, 1.0
    while cells <= size:
        layer = Image.fromarray(rng.random((cells, cells), np.float32))
        out += weight * np.asarray(layer.resize((size, size), Image.BICUBIC))
        cells, weight = cells * 2, weight * power
    out -= out.min()
    return out / max(float(out.max()), 1e-6)


def rough_background(rng, size):
    """Leaves, gravel, fur: noise with hard light and shadow, up to the finest scale."""
    octave = Image.fromarray((cloud(rng, size, rng.uniform(0.8, 1.5)) * 255).astype(np.uint8))
    if rng.random() < 0.4:  # drawn out in one direction
        w = int(size * rng.uniform(2, 5))
        octave = octave.resize((w, size), Image.BICUBIC).rotate(rng.uniform(0, 360), Image.BICUBIC)
        octave = octave.crop((w // 2 - size // 2, 0, w // 2 - size // 2 + size, size))
    t = np.asarray(octave, np.float32)
    t = np.clip((t - np.median(t)) / (t.std() + 1e-6) * rng.uniform(0.4, 2.5) + 0.5, 0, 1)[..., None]
    mood = cloud(rng, size, 0.4)[..., None]
    dark, light, other = (np.array(colour(rng, a, b), np.float32) for a, b in ((0, 90), (110, 256), (0, 256)))
    rgb = dark * (1 - t) + light * t
    keep = np.clip((mood - rng.uniform(0.1, 0.6)) * 4, 0, 1)
    return rgb * keep + (other * (0.8 + 0.2 * mood)) * (1 - keep)


def background(rng, size, rough=0.0):
    kind = rng.random()
    if rough and rng.random() < rough:
        rgb = rough_background(rng, size)
    elif kind < 0.6:  # coloured clouds
        a, b, c = (np.array(colour(rng), np.float32) for _ in range(3))
        m, k = cloud(rng, size)[..., None], cloud(rng, size)[..., None]
        rgb = (a * m + b * (1 - m)) * k + c * (1 - k)
    elif kind < 0.8:  # a gradient
        angle = rng.uniform(0, 2 * np.pi)
        y, x = np.mgrid[0:size, 0:size] / size
        t = (x * np.cos(angle) + y * np.sin(angle))[..., None]
        rgb = np.array(colour(rng)) * t + np.array(colour(rng)) * (1 - t)
    else:  # stripes, bricks, tiles
        y, x = np.mgrid[0:size, 0:size]
        angle = rng.uniform(0, np.pi)
        u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
        p, q = rng.uniform(3, 40, 2)
        mode = rng.integers(3)
        t = (np.sin(u * 2 * np.pi / p) if mode == 0 else
             np.sign(np.sin(u * 2 * np.pi / p) * np.sin(v * 2 * np.pi / q)) if mode == 1 else
             np.minimum((u % p) / p, ((v + (u // p % 2) * q / 2) % q) / q) * 8 - 1)
        t = (np.clip(t, -1, 1)[..., None] + 1) / 2
        rgb = np.array(colour(rng)) * t + np.array(colour(rng)) * (1 - t)
        rgb = rgb * (0.7 + 0.3 * cloud(rng, size)[..., None])
    rgb = np.clip(rgb, 0, 255)
    if rng.random() < 0.6:  # most of the world is less colourful than random numbers
        rgb = rgb.mean(2, keepdims=True) + (rgb - rgb.mean(2, keepdims=True)) * rng.uniform(0, 0.6)
    picture = Image.fromarray(rgb.astype(np.uint8))
    draw = ImageDraw.Draw(picture, "RGBA")
    for _ in range(int(rng.integers(0, 26))):
        shape(rng, draw, size)
    return picture


def shape(rng, draw, size):
    fill = colour(rng) + (int(rng.integers(90, 256)),)
    x, y = rng.uniform(-0.1, 1.0, 2) * size
    w, h = rng.uniform(0.02, 0.5, 2) ** 1.5 * size
    kind = rng.integers(6)
    if kind == 0:
        draw.rectangle([x, y, x + w, y + h], fill=fill, outline=colour(rng) if rng.random() < 0.5 else None)
    elif kind == 1:
        draw.ellipse([x, y, x + w, y + h], fill=fill)
    elif kind == 2:
        points = rng.uniform(-0.5, 0.5, (int(rng.integers(3, 7)), 2)) * [w * 2, h * 2] + [x, y]
        draw.polygon([tuple(p) for p in points], fill=fill)
    elif kind == 3:
        draw.line([x, y, *(rng.uniform(0, size, 2))], fill=fill, width=int(rng.integers(1, 7)))
    elif kind == 4:
        draw.text((x, y), "".join(rng.choice(list(string.ascii_letters), size=int(rng.integers(2, 14)))), fill=fill)
    else:  # a row of small equal things: windows, keys, leaves
        step, side = rng.uniform(5, 18), rng.uniform(2, 9)
        for i in range(int(rng.integers(3, 10))):
            for j in range(int(rng.integers(1, 5))):
                draw.rectangle([x + i * step, y + j * step, x + i * step + side, y + j * step + side], fill=fill)


# ---- putting things on it -----------------------------------------------------------------------------------------
def perspective(corners, targets):
    """Coefficients for Image.transform that carry `targets` (in the result) to `corners` (in the source)."""
    rows = []
    for (x, y), (u, v) in zip(targets, corners):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    return np.linalg.solve(np.array(rows), np.array(corners, float).reshape(-1))


def random_quad(rng, side, aspect):
    """A square of about `side` pixels, turned and tilted; corners around the origin."""
    tilt = rng.uniform(0, 0.75) if rng.random() < 0.6 else 0.0
    a, turn, spin = rng.uniform(0, 2 * np.pi), rng.uniform(0, 2 * np.pi), 0.0
    points = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], float) * [0.5 * aspect, 0.5]
    rot = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    if rng.random() < 0.25:  # upright, as on a screen
        rot = np.eye(2)
    points = points @ rot.T
    axis = np.array([np.cos(a), np.sin(a)])
    depth = points @ axis * np.sin(tilt)  # turned about an axis in the picture plane
    flat = points - np.outer(points @ axis, axis) * (1 - np.cos(tilt))
    return flat / (1 + depth * rng.uniform(0.2, 0.7))[:, None] * side


def paste(rng, canvas, sprite, quad):
    """Warps the sprite onto the quad; gives the patch's opacity."""
    low = np.floor(quad.min(0)).astype(int) - 1
    high = np.ceil(quad.max(0)).astype(int) + 1
    width, height = int(high[0] - low[0]), int(high[1] - low[1])
    longest = max(np.linalg.norm(quad - np.roll(quad, 1, 0), axis=1).max(), 4)
    # Shrink first, for transform does not filter; not always as far as it needs: a frame that is larger
    # than the model's input is sampled with as little care.
    left = rng.uniform(1.3, 4.5) if rng.random() < 0.6 else 1.3
    if max(sprite.size) > longest * left * 1.2:
        scale = longest * left / max(sprite.size)
        sprite = sprite.resize([max(4, int(s * scale)) for s in sprite.size], Image.BOX)
    w, h = sprite.size
    coefficients = perspective([(0, 0), (w, 0), (w, h), (0, h)], quad - low)
    padded = Image.new("RGBA", (w, h))
    padded.paste(sprite)
    patch = padded.transform((width, height), Image.PERSPECTIVE, coefficients, Image.BICUBIC)
    mask = Image.new("L", (width * 2, height * 2))
    ImageDraw.Draw(mask).polygon([tuple(p) for p in (quad - low) * 2], fill=255)
    mask = mask.resize((width, height), Image.BOX)
    if rng.random() < 0.3:  # light across the print
        y, x = np.mgrid[0:height, 0:width] / max(width, height)
        a = rng.uniform(0, 2 * np.pi)
        gain = 1 + rng.uniform(0, 0.6) * (x * np.cos(a) + y * np.sin(a) - 0.5)
        patch = Image.fromarray(np.clip(np.asarray(patch.convert("RGB")) * gain[..., None], 0, 255).astype(np.uint8))
    canvas.paste(patch.convert("RGB"), (int(low[0]), int(low[1])), mask)


def overlap(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    return max(w, 0) * max(h, 0)


def render(rng, size, sprites, decoys, rough=0.0):
    """One picture (uint8 HWC) and rows x0, y0, x1, y1, wanted (0 = neither wanted nor punished)."""
    canvas = background(rng, size, rough)
    taken, rows = [], []
    for _ in range(int(rng.integers(0, 8 if rough else 7))):
        put(rng, canvas, decoys[int(rng.integers(len(decoys)))], size, rng.uniform(14, 0.7 * size), taken)
    taken = [] if rng.random() < 0.5 else taken
    for _ in range(int(rng.choice([0, 1, 2, 3, 4, 6], p=[0.1, 0.32, 0.26, 0.16, 0.1, 0.06]))):
        # Small ones, whose modules are less than a pixel, are the hard ones.
        most = 56 if rng.random() < 0.3 else 0.9 * size
        side = float(np.exp(rng.uniform(np.log(20), np.log(most))))
        row = put(rng, canvas, sprites[int(rng.integers(len(sprites)))], size, side, taken)
        if row is not None:
            rows.append(row)
    return degrade(rng, canvas, size), np.array(rows, np.float32).reshape(-1, 5)


def put(rng, canvas, item, size, side, taken):
    sprite, quiet = item
    for _ in range(12):
        quad = random_quad(rng, side, sprite.width / sprite.height)
        quad = quad + rng.uniform(0, size, 2)
        box = [*quad.min(0), *quad.max(0)]
        area = (box[2] - box[0]) * (box[3] - box[1])
        inside = overlap(box, [0, 0, size, size]) / area
        if inside > 0.35 and (inside > 0.97 or rng.random() < 0.3) and not any(overlap(box, t) for t in taken):
            break
    else:
        return None
    taken.append(box)
    paste(rng, canvas, sprite, quad)
    if rng.random() < 0.1:  # something in front of a corner or an edge
        draw = ImageDraw.Draw(canvas)
        p, r = quad[int(rng.integers(4))], side * rng.uniform(0.05, 0.16)
        draw.ellipse([p[0] - r, p[1] - r, p[0] + r, p[1] + r], fill=colour(rng))
    # The box is of the symbol alone: the quad shrunk by the quiet zone, in the sprite's own perspective.
    inner = shrink(quad, quiet)
    lo, hi = inner.min(0), inner.max(0)
    full = (hi[0] - lo[0]) * (hi[1] - lo[1])
    x0, y0 = np.clip(lo, 0, size)
    x1, y1 = np.clip(hi, 0, size)
    share = (x1 - x0) * (y1 - y0) / full
    edges = np.linalg.norm(inner - np.roll(inner, 1, 0), axis=1)
    wanted = share > 0.6 and edges.min() >= LEAST_SIDE
    return [x0, y0, x1, y1, float(wanted)]


def shrink(quad, share):
    if share == 0:
        return quad
    unit = [(0, 0), (1, 0), (1, 1), (0, 1)]
    a, b, c, d, e, f, g, h = perspective(quad, unit)  # unit square to picture
    points = []
    for u, v in ((share, share), (1 - share, share), (1 - share, 1 - share), (share, 1 - share)):
        z = g * u + h * v + 1
        points.append([(a * u + b * v + c) / z, (d * u + e * v + f) / z])
    return np.array(points)


def degrade(rng, canvas, size):
    """What lens, sensor and codec do."""
    if rng.random() < 0.5:
        canvas = canvas.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 1.3)))
    if rng.random() < 0.3:  # a smaller picture made larger
        small = int(size * rng.uniform(0.45, 0.9))
        canvas = canvas.resize((small, small), Image.BILINEAR).resize((size, size), Image.BILINEAR)
    rgb = np.asarray(canvas, np.float32)
    if rng.random() < 0.4:
        rgb = rgb * (0.45 + 0.75 * cloud(rng, size, 0.2)[..., None])
    if rng.random() < 0.6:
        gain, offset = rng.uniform(0.5, 1.3), rng.uniform(-30, 50)
        rgb = rgb * gain + offset
    if rng.random() < 0.5:
        rgb = rgb + rng.standard_normal(rgb.shape, np.float32) * rng.uniform(1, 16)
    canvas = Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8))
    if rng.random() < 0.6:
        file = io.BytesIO()
        canvas.save(file, "JPEG", quality=int(rng.integers(18, 92)))
        canvas = Image.open(file).convert("RGB")
    return np.asarray(canvas)


def make_sprites(rng, count, rough=False):
    """Codes and decoys to choose from."""
    return [code_sprite(rng) for _ in range(count)], [decoy_sprite(rng, rough) for _ in range(count)]
