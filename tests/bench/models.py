# SPDX-License-Identifier: Apache-2.0
"""Whole models against ONNX Runtime, their floors and the peak; compiling."""
import math
import os
import subprocess
import time

from rows import (MODELS, NUMERICS, PEAK_MODEL, ROUNDS, SHARED, THREADS, Program, compiled, geometric_mean, measure,
                  ort_libraries)


def float_limit(bench):
    """Three times ONNX Runtime where the processor multiplies bf16; else float work is fp32, with the limit of model/f32."""
    if bench.doctor['facts']['compute_type'] == 'bf16':
        return 3
    bench.notes.append('model/float: this processor has no bf16 products, so float work is fp32 and the limit that of '
                       'model/f32, 1.5 instead of 3')
    return 1.5


def bench_models(bench, work):
    ratios = {}
    for numerics, models in NUMERICS.items():
        for model in models:
            name = f'model/{model}/{numerics}'
            if not (bench.wants(name) or bench.wants(f'model/{numerics}')):
                continue
            onnx = os.path.join(SHARED, 'models', model, 'model.onnx')
            if not os.path.exists(onnx):
                bench.notes.append(f'{name}: {onnx} is not here')
                continue
            place = compiled(work, model, numerics)
            ours = Program('ours', [os.path.join(bench.build, 'tests/bench/vartml_peer'), place, str(THREADS)])
            programs = [ours]
            for label, library, provider in ort_libraries():
                try:
                    programs.append(Program(label, [os.path.join(bench.build, 'tests/bench/ort_peer'), library,
                                                    provider, str(THREADS), onnx]))
                except RuntimeError as error:
                    bench.notes.append(str(error))
            result = measure(programs)
            for p in programs:
                p.close()
            mine = 1e9 / result.pop('ours')
            if not result:
                continue
            peer = min(result, key=result.get)
            bench.add(name, 'inferences/s', mine, 1e9 / result[peer], peer, None, 'min')
            ratios.setdefault(numerics, []).append(mine * result[peer] / 1e9)
    for numerics, values in ratios.items():
        if len(values) == len(NUMERICS[numerics]):
            limit = float_limit(bench) if numerics == 'float' else 1.5
            bench.add(f'model/{numerics}', 'x', geometric_mean(values), 1.0, 'fastest ONNX Runtime', limit, 'min')
    everything = [v for values in ratios.values() for v in values]
    if len(everything) == sum(map(len, NUMERICS.values())):
        bench.add('model/worst', 'x', min(everything), 1.0, 'fastest ONNX Runtime', 1.0, 'min')


def bench_floor(bench, work):
    """Whole models against their convolutions alone in oneDNN, and one against the peak of the processor. Best of repeats on
    both sides: the floor of short pieces is found on a busy machine, too, the time of a whole model less."""
    ratios = []
    for model in MODELS:
        has_peak = model == PEAK_MODEL and bench.wants('model/peak')
        if not (has_peak or bench.wants(f'floor/{model}') or bench.wants('model/floor')):
            continue
        place = compiled(work, model)
        if place is None:
            bench.notes.append(f'floor/{model}: the model is not here')
            continue
        programs = [Program(name, [os.path.join(bench.build, 'tests/bench', name), place, str(THREADS)])
                    for name in ('vartml_peer', 'conv_floor')]
        macs = programs[1].ask('macs')[0]
        best = [math.inf, math.inf]
        for _ in range(ROUNDS):
            for i, count in enumerate((40, 1)):  # the floor repeats each convolution by itself
                best[i] = min(best[i], *programs[i].run(count), math.inf)
        for p in programs:
            p.close()
        ours, floor = best
        bench.add(f'floor/{model}', 'us', ours / 1e3, floor / 1e3, 'convolutions in oneDNN', None, 'max')
        ratios.append(ours / floor)
        if has_peak:
            add_peak(bench, 2 * macs / ours)
    if len(ratios) == len(MODELS):
        bench.add('model/floor', 'x', max(ratios), 1.0, 'its convolutions in oneDNN', 1.2, 'max')


def add_peak(bench, rate):
    rates = next(p['ops_per_second'] for p in bench.doctor['peaks'] if p['threads'] == THREADS)
    kind = 'bf16' if rates['bf16'] else 'fp32'
    name = f'calibrated {kind} peak' + ('' if rates['bf16'] else ' (no bf16 products)')
    bench.add('model/peak', 'GFLOP/s', rate, rates[kind] / 1e9, name, 0.75, 'min')


def bench_compile(bench, work):
    """Time and peak memory of `vartml compile`, the best of three: limits of its own, no peer."""
    model = os.path.join(SHARED, 'models', 'yolox_nano_416', 'model.onnx')
    if not bench.wants('compile/') or not os.path.exists(model):
        return
    times, peaks = [], []
    for i in range(3):
        start = time.monotonic()
        process = subprocess.Popen([os.path.join(bench.build, 'lib', 'tools', 'vartml'), 'compile', model, '--quiet',
                                    '--cache-dir', os.path.join(work, f'compile{i}')])
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise RuntimeError('vartml compile failed')
        times.append(time.monotonic() - start)
        peaks.append(usage.ru_maxrss * 1024)
    limit = 4 * os.path.getsize(model) + 100_000_000
    bench.add('compile/time', 's', min(times), None, '', 2, 'max')
    bench.add('compile/memory', 'MB', min(peaks) / 1e6, None, '', limit / 1e6, 'max')
