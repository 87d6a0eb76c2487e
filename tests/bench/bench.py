#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed against peers, measured in pairs in one run; the rows and limits are those of docs/architecture.md.

usage: bench.py --build DIR --out bench.json [REGEX]
Each row: {name, unit, ours, peer, peer_name, ratio, limit, sense, pass}; ratio = ours / peer. Exit 1 when a row misses its
limit or a row of the committed list (rows.txt) is missing.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get('VARTML_SHARED', os.path.join(HERE, '..', '..', '..', 'shared'))
MODELS = ['yolox_nano_416', 'ultraface_rfb_320', 'lightperson', 'selfie_landscape', 'hand_landmark',
          'super_resolution_10', 'mnist_cntk']
INT8_MODELS = ['shufflenet_v2_int8']
# What is computed in, with the models that are.
NUMERICS = {'float': MODELS, 'f32': MODELS, 'int8': INT8_MODELS}
THREADS = 2
ROUNDS = 7


def say(text):
    print(text, file=sys.stderr, flush=True)


class Program:
    """A benchmark program that answers `run N` with N times in nanoseconds."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        if self.process.stdout.readline().strip() != 'ready':
            self.close()
            raise RuntimeError(f'{name} did not start: {" ".join(command)}')

    def run(self, count):
        self.process.stdin.write(f'run {count}\n')
        self.process.stdin.flush()
        return [int(x) for x in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Bench:
    def __init__(self, build, pattern):
        self.build, self.pattern, self.rows = build, re.compile(pattern), []
        self.notes = []

    def wants(self, name):
        return self.pattern.search(name) is not None

    def add(self, name, unit, ours, peer, peer_name, limit, sense):
        ratio = ours / peer if peer else None
        measured = ours if ratio is None else ratio
        ok = None if limit is None else (measured >= limit if sense == 'min' else measured <= limit)
        self.rows.append({'name': name, 'unit': unit, 'ours': ours, 'peer': peer, 'peer_name': peer_name,
                          'ratio': ratio, 'limit': limit, 'sense': sense, 'pass': ok})
        shown = '' if ratio is None else f'  {peer_name} {peer:.1f}  ratio {ratio:.2f}'
        verdict = '' if ok is None else ('  ok' if ok else f'  MISSED (limit {sense} {limit})')
        say(f'{name:38} {ours:10.2f} {unit}{shown}{verdict}')


def ort_libraries():
    """(name, library, provider) of every build of ONNX Runtime that is here."""
    found = []
    debian = '/usr/lib/x86_64-linux-gnu/libonnxruntime.so.1.21'
    if os.uname().machine == 'aarch64':
        debian = debian.replace('x86_64', 'aarch64')
    if os.path.exists(debian):
        found += [('onnxruntime-1.21', debian, 'cpu'), ('onnxruntime-1.21-onednn', debian, 'dnnl')]
    official = os.environ.get('VARTML_BENCH_ORT')
    if official:
        found.append(('onnxruntime-1.30', official, 'cpu'))
    return found


def measure(programs):
    """Median time of each program, interleaved: a round gives each the same wall time."""
    times = {p.name: [] for p in programs}
    counts = {}
    for p in programs:
        p.run(3)
        first = min(p.run(3))
        counts[p.name] = max(3, min(2000, int(0.15e9 / first)))
    for _ in range(ROUNDS):
        for p in programs:
            times[p.name].append(statistics.median(p.run(counts[p.name])))
    return {name: statistics.median(values) for name, values in times.items()}


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
            compiled = os.path.join(work, f'{model}-{numerics}.rai')
            arguments = ['--numerics', 'f32'] if numerics == 'f32' else []
            subprocess.run(['vartml', 'compile', onnx, '-o', compiled, *arguments], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ours = Program('ours', [os.path.join(bench.build, 'tests/bench/vartml_peer'), compiled, str(THREADS)])
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
            bench.add(f'model/{numerics}', 'x', geometric_mean(values), 1.0, 'fastest ONNX Runtime', 1.5, 'min')
    everything = [v for values in ratios.values() for v in values]
    if len(everything) == sum(map(len, NUMERICS.values())):
        bench.add('model/worst', 'x', min(everything), 1.0, 'fastest ONNX Runtime', 1.0, 'min')


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


def load_once(command, cache):
    """Seconds to create the runner or session, and most resident bytes after one run, of a fresh process."""
    process = subprocess.run(command, input='load 1\n', text=True, check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=dict(os.environ, XDG_CACHE_HOME=cache))
    nanoseconds, resident = process.stdout.split('\n')[1].split()
    return int(nanoseconds) / 1e9, int(resident)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def bench_load(bench, work):
    """Fresh processes, one after another in turn: each makes a runner of the .rai, or a session of the .onnx with all
    optimisations, and runs once. Time is that of create_runner or CreateSession alone, without the start of the process
    and the loading of libraries; memory is the most that was ever resident (VmHWM), shared pages of libraries and files
    included. `warm`: packed weights are in the side cache; `cold`: the folder is new. Medians; each model is held
    against its fastest, or smallest, peer."""
    if not bench.wants('load/'):
        return
    means = {'time': [], 'rss': [], 'cold': []}
    models = MODELS + INT8_MODELS
    for model in models:
        onnx = os.path.join(SHARED, 'models', model, 'model.onnx')
        if not os.path.exists(onnx):
            bench.notes.append(f'load/{model}: {onnx} is not here')
            continue
        compiled = os.path.join(work, f'{model}.rai')
        subprocess.run(['vartml', 'compile', onnx, '-o', compiled], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        warm = os.path.join(work, 'warm-cache')
        ours = [os.path.join(bench.build, 'tests/bench/vartml_peer'), compiled, str(THREADS)]
        peers = {label: [os.path.join(bench.build, 'tests/bench/ort_peer'), library, provider, str(THREADS), onnx]
                 for label, library, provider in ort_libraries()}
        load_once(ours, warm)  # builds the cache
        times, sizes = {}, {}
        for i in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=work) as cold:
                runs = {'ours': (ours, warm), 'cold': (ours, cold)}
                runs.update({label: (command, warm) for label, command in peers.items()})
                for label, (command, cache) in runs.items():
                    try:
                        seconds, resident = load_once(command, cache)
                    except subprocess.CalledProcessError:
                        if i == 0:
                            bench.notes.append(f'load/{model}: {label} does not load it')
                        peers.pop(label)
                        continue
                    times.setdefault(label, []).append(seconds)
                    sizes.setdefault(label, []).append(resident)
        times = {label: statistics.median(values) for label, values in times.items()}
        sizes = {label: statistics.median(values) for label, values in sizes.items()}
        if not peers:
            continue
        fastest, smallest = min(peers, key=times.get), min(peers, key=sizes.get)
        for row, mine, peer, unit, scale, table in (('time', 'ours', fastest, 'ms', 1e3, times),
                                                    ('rss', 'ours', smallest, 'MB', 1e-6, sizes),
                                                    ('cold', 'cold', fastest, 'ms', 1e3, times)):
            bench.add(f'load/{row}/{model}', unit, table[mine] * scale, table[peer] * scale, peer, None, 'max')
            means[row].append(table[mine] / table[peer])
    limits = {'time': 0.33, 'rss': 0.6, 'cold': None}
    for row, values in means.items():
        if len(values) == len(models):
            peer = 'smallest ONNX Runtime' if row == 'rss' else 'fastest ONNX Runtime'
            bench.add(f'load/{row}', 'x', geometric_mean(values), 1.0, peer, limits[row], 'max')


def frames_per_second(line, frames):
    """Without the time to start: from a run of few frames to one of many."""
    def seconds(count):
        start = time.monotonic()
        subprocess.run(['gst-launch-1.0', '-q', *line.replace('FRAMES', str(count)).split()], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - start
    few = 20
    return frames / (seconds(frames + few) - seconds(few))


def bench_video(bench, work):
    name = 'video/yolox'
    if not bench.wants(name):
        return
    clip = os.path.join(SHARED, 'models', 'video', 'person_one_by_one.mp4')
    onnx = os.path.join(SHARED, 'models', 'yolox_nano_416', 'model.onnx')
    if not os.path.exists(clip):
        bench.notes.append(f'{name}: {clip} is not here')
        return
    # onnxinference of 1.26 wants a metadata property per output name.
    tagged = os.path.join(work, 'tagged.onnx')
    subprocess.run([sys.executable, os.path.join(HERE, 'tag_outputs.py'), onnx, tagged], check=True)
    compiled = os.path.join(work, 'yolox.rai')
    subprocess.run(['vartml', 'compile', onnx, '-o', compiled, '--decoder', 'yolox'], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # identity counts one buffer more than it lets through.
    source = f'filesrc location={clip} ! decodebin ! identity eos-after=FRAMES'
    ours = (f'{source} ! queue ! vartmlinfer model={compiled} output-tensor-type=hw ! queue ! vartmldecode ! '
            'fakesink sync=false')
    convert = ('videoconvertscale ! video/x-raw,format=RGB,width=416,height=416,pixel-aspect-ratio=1/1')
    infer = f'onnxinference optimization-level=enable-all input-image-format=chw model-file={tagged}'
    peers = [f'{source} ! {convert} ! {infer} ! fakesink sync=false',
             f'{source} ! queue ! {convert} ! queue ! {infer} ! queue ! fakesink sync=false']
    mine, theirs = [], []
    for _ in range(3):
        mine.append(frames_per_second(ours, 600))
        theirs.append(max(frames_per_second(peer, 150) for peer in peers))
    bench.add(name, 'frames/s', statistics.median(mine), statistics.median(theirs), 'onnxinference', 5.0, 'min')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--out', default='bench.json')
    parser.add_argument('regex', nargs='?', default='')
    options = parser.parse_args()
    bench = Bench(options.build, options.regex)
    with tempfile.TemporaryDirectory() as work:
        bench_models(bench, work)
        bench_compile(bench, work)
        bench_load(bench, work)
        bench_video(bench, work)
    with open(os.path.join(HERE, 'rows.txt'), encoding='utf-8') as f:
        listed = [line.strip() for line in f if line.strip() and not line.startswith('#')]
    have = {row['name'] for row in bench.rows}
    missing = [name for name in listed if bench.wants(name) and name not in have]
    for note in bench.notes:
        say(f'note: {note}')
    for name in missing:
        say(f'missing row: {name}')
    machine = {'cpu': next((line.split(':')[1].strip() for line in open('/proc/cpuinfo', encoding='utf-8')
                            if line.startswith('model name')), '?'), 'threads': THREADS}
    with open(options.out, 'w', encoding='utf-8') as f:
        json.dump({'machine': machine, 'rows': bench.rows, 'notes': bench.notes}, f, indent=2)
        f.write('\n')
    return 1 if missing or any(row['pass'] is False for row in bench.rows) else 0


sys.exit(main())
