# SPDX-License-Identifier: Apache-2.0
"""What it costs to capture each inference, against a runner that nobody asks."""
import os
import statistics

from rows import THREADS, Program, compiled

PAIRS = 20
# Level with the limit of the round trip's median, on the model of the smallest and of a usual inference.
LIMITS = {50: 1.02, 70: 1.05}
CAPTURED = ['yolox_nano_416', 'mnist_cntk']


def bench_capture(bench, work):
    for level, limit in LIMITS.items():
        for model in CAPTURED:
            name = f'profile/level{level}' + ('' if model == CAPTURED[0] else f'/{model}')
            if not bench.wants(name):
                continue
            place = compiled(work, model, stats_level=70)
            if place is None:
                bench.notes.append(f'{name}: the model is not here')
                continue
            program = Program(name, [os.path.join(bench.build, 'tests/bench/capture_cost'), place, str(THREADS), str(level)])
            times = program.ask(f'pairs {PAIRS}')
            program.close()
            off, on = times[::2], times[1::2]
            ratio = statistics.median(b / a for a, b in zip(off, on))
            usual = statistics.median(off) / 1e3
            bench.add(name, 'us', usual * ratio, usual, 'without', limit if model == CAPTURED[0] else None, 'max')
