# SPDX-License-Identifier: Apache-2.0
"""Whole models against ONNX Runtime, their floors and the peak; compiling."""
import math
import os
import subprocess
import time

import int8
from rows import (BEST_MODELS, CAP, INT8_MODELS, MODELS, PEAK_MODEL, ROUNDS, SHARED, THREADS, Mnn, Program, compiled,
                  geometric_mean, measure, ort_libraries)


def float_limit(bench):
    """Three times ONNX Runtime where float work is bf16; else it is fp32, with the limit of model/f32."""
    if bench.doctor['facts']['compute_type'] == 'bf16':
        return 3
    bench.notes.append('model/float: bf16 products are not faster here, so float work is fp32 and the limit that of '
                       'model/f32, 1.5 instead of 3')
    return 1.5


def start_mnn(work):
    """MNN where it is given and runs what we run: nothing caps it."""
    return Mnn(os.environ['VARTML_BENCH_MNN'], work) if os.environ.get('VARTML_BENCH_MNN') and not CAP else None


def start_peers(bench, onnx, mnn):
    """Every build of ONNX Runtime, and MNN where it is given, that runs the model. oneDNN in ONNX Runtime has a team of
    OpenMP, whose size sessions do not say."""
    os.environ['OMP_NUM_THREADS'] = str(THREADS)
    starts = [lambda library=library, label=label, provider=provider: Program(
        label, [os.path.join(bench.build, 'tests/bench/ort_peer'), library, provider, str(THREADS), onnx])
        for label, library, provider in ort_libraries()]
    if mnn:
        starts.append(lambda: mnn.start(onnx))
    for start in starts:
        try:
            program = start()
            program.run(3)
            yield program
        except RuntimeError as error:
            bench.notes.append(str(error))


class Table:
    """What models were measured to do: rows for each, and ratios for the rows of all."""

    def __init__(self, bench):
        self.bench, self.ratios = bench, {}

    def add(self, model, kind, mine, others):
        """`mine` in nanoseconds against the fastest of `others`, by name."""
        if not others:
            return
        peer = min(others, key=others.get)
        self.bench.add(f'model/{model}/{kind}', 'inferences/s', 1e9 / mine, 1e9 / others[peer], peer, None, 'min')
        self.ratios.setdefault(kind, []).append(others[peer] / mine)

    def summary(self, kind, models, peer, limit):
        values = self.ratios.get(kind, [])
        if len(values) == len(models):
            self.bench.add(f'model/{kind}', 'x', geometric_mean(values), 1.0, peer, limit, 'min')

    def worst(self, name, kinds, count, peer, limit):
        values = [v for kind in kinds for v in self.ratios.get(kind, [])]
        if len(values) == count:
            self.bench.add(f'model/{name}', 'x', min(values), 1.0, peer, limit, 'min')


def bench_models(bench, work):
    """All engines run a model in turn. `best` is held against the fastest engine of all, the others against the fastest
    ONNX Runtime."""
    table = Table(bench)
    kinds = ('float', 'f32', 'best', 'f32-best', 'bf16-over-f32', 'int8', 'worst')
    mnn = start_mnn(work)
    for model in MODELS + [m for m in BEST_MODELS if m not in MODELS] + INT8_MODELS:
        if not any(bench.wants(f'model/{model}/{kind}') or bench.wants(f'model/{kind}') for kind in kinds):
            continue
        onnx = os.path.join(SHARED, 'models', model, 'model.onnx')
        if not os.path.exists(onnx):
            bench.notes.append(f'model/{model}: {onnx} is not here')
            continue
        own = ['int8'] if model in INT8_MODELS else ['float', 'f32']
        programs = [Program(numerics, [os.path.join(bench.build, 'tests/bench/vartml_peer'),
                                       compiled(work, model, numerics), str(THREADS)]) for numerics in own]
        for p in programs:
            p.run(3)
        programs += start_peers(bench, onnx, mnn)
        times = measure(programs)
        for p in programs:
            p.close()
        mine = {numerics: times.pop(numerics) for numerics in own}
        ort = {name: t for name, t in times.items() if name.startswith('onnxruntime')}
        if model in MODELS or model in INT8_MODELS:
            for numerics, t in mine.items():
                table.add(model, numerics, t, ort)
        if model in BEST_MODELS:
            table.add(model, 'best', mine['float'], times)
            table.add(model, 'f32-best', mine['f32'], times)
        if 'float' in mine and bench.doctor['facts']['compute_type'] == 'bf16':
            table.add(model, 'bf16-over-f32', mine['float'], {'f32': mine['f32']})
    ort_name = 'fastest ONNX Runtime'
    table.summary('float', MODELS, ort_name, float_limit(bench))
    table.summary('f32', MODELS, ort_name, 1.5)
    table.summary('int8', INT8_MODELS, ort_name, 1.5)
    table.worst('worst', ('float', 'f32', 'int8'), 2 * len(MODELS) + len(INT8_MODELS), ort_name, 1.0)
    best_limit = 2.2 if float_limit(bench) == 3 else 1.5
    table.summary('best', BEST_MODELS, 'fastest engine', best_limit)
    table.worst('best-worst', ('best',), len(BEST_MODELS), 'fastest engine', 1.3 if best_limit == 2.2 else 1.0)
    table.summary('f32-best', BEST_MODELS, 'fastest engine', 1.5)
    table.worst('f32-best-worst', ('f32-best',), len(BEST_MODELS), 'fastest engine', 1.0)
    table.worst('bf16-over-f32', ('bf16-over-f32',), len(set(MODELS + BEST_MODELS)), 'the same in f32', 1.0)


def bench_int8_from_float(bench, work):
    """Models that --quantize made int8 against the fastest session of any engine that runs the float model, and against
    ourselves in floats."""
    table = Table(bench)
    mnn = None
    for model in int8.MODELS:
        names = [f'model/{model}/int8-from-float', f'model/{model}/int8-over-float', 'model/int8-from-float', 'model/int8-over-float']
        if not any(bench.wants(name) for name in names):
            continue
        onnx = os.path.join(SHARED, 'models', model, 'model.onnx')
        if not os.path.exists(onnx):
            bench.notes.append(f'model/{model}/int8-from-float: {onnx} is not here, nor the films that it is quantised with')
            continue
        mnn = mnn or start_mnn(work)
        places = {'int8': int8.quantised(work, model)[0], 'float': compiled(work, model)}
        programs = [Program(name, [os.path.join(bench.build, 'tests/bench/vartml_peer'), place, str(THREADS)])
                    for name, place in places.items()]
        for p in programs:
            p.run(3)
        programs += start_peers(bench, onnx, mnn)
        times = measure(programs)
        for p in programs:
            p.close()
        ours, floats = times.pop('int8'), times.pop('float')
        table.add(model, 'int8-from-float', ours, times)
        table.add(model, 'int8-over-float', ours, {'the same in floats': floats})
    table.summary('int8-from-float', int8.MODELS, 'fastest engine in floats', 2.5 if CAP else 3)
    table.worst('int8-over-float', ('int8-over-float',), len(int8.MODELS), 'the same in floats', 1.0)


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
    kind = bench.doctor['facts']['compute_type']
    bench.add('model/peak', 'GFLOP/s', rate, rates[kind] / 1e9, f'calibrated {kind} peak', 0.75, 'min')


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
