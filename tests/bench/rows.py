# SPDX-License-Identifier: Apache-2.0
"""What the rows share: models, peers, measuring in pairs."""
import math
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get('VARTML_SHARED', os.path.join(HERE, '..', '..', '..', 'shared'))
MODELS = ['yolox_nano_416', 'ultraface_rfb_320', 'lightperson', 'selfie_landscape', 'hand_landmark',
          'super_resolution_10', 'mnist_cntk']
# Those that every engine is held against: mnist is too small to tell engines apart.
BEST_MODELS = [name for name in MODELS if name != 'mnist_cntk'] + ['nanodet_m_320', 'deimv2_femto_coco', 'yunet_n_320',
                                                                  'person_reid_0287']
INT8_MODELS = ['shufflenet_v2_int8']
PEAK_MODEL = 'super_resolution_10'
THREADS = int(os.environ.get('VARTML_BENCH_THREADS', 2))
ROUNDS = 7
# VARTML_BENCH_CAP: what every program of the bench may use of the processor, as oneDNN spells it.
CAPS = {'': None, 'avx2': 'AVX2', 'avx2-vnni': 'AVX2_VNNI', 'avx512': 'AVX512_CORE', 'avx512-vnni': 'AVX512_CORE_VNNI'}
CAP = os.environ.get('VARTML_BENCH_CAP', '')


def say(text):
    print(text, file=sys.stderr, flush=True)


class Program:
    """A benchmark program that answers `run N` with N times in nanoseconds."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:  # behind what an engine says of itself
            if line.strip() == 'ready':
                return
        self.close()
        raise RuntimeError(f'{name} did not start: {" ".join(command)}')

    def ask(self, line):
        try:
            self.process.stdin.write(line + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f'{self.name} ended with {self.process.wait()}: {" ".join(self.process.args)}')
        return [int(x) for x in answer.split()]

    def run(self, count):
        return self.ask(f'run {count}')

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # it ended by itself
            pass
        self.process.wait()


class Bench:
    def __init__(self, build, pattern):
        self.build, self.pattern, self.rows = build, re.compile(pattern), []
        self.notes = []
        self.doctor = {}

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


def cap(bench):
    """Hides instructions of the processor from our kernels and from oneDNN, ours and that of ONNX Runtime's provider."""
    if CAP not in CAPS:
        sys.exit(f'VARTML_BENCH_CAP is "{CAP}"; it may be {", ".join(filter(None, CAPS))}')
    if not CAP:
        return
    os.environ['ONEDNN_MAX_CPU_ISA'] = CAPS[CAP]
    bench.notes.append(f'capped to {CAP}: the peer is ONNX Runtime with oneDNN alone, and what its oneDNN provider leaves to '
                       'ONNX Runtime itself is not capped; the other builds and MNN, which nothing caps, are left out')


def ort_libraries():
    """(name, library, provider) of every build of ONNX Runtime that is here; capped, of those that can be."""
    found = []
    debian = '/usr/lib/x86_64-linux-gnu/libonnxruntime.so.1.21'
    if os.uname().machine == 'aarch64':
        debian = debian.replace('x86_64', 'aarch64')
    if os.path.exists(debian):
        found += [('onnxruntime-1.21', debian, 'cpu'), ('onnxruntime-1.21-onednn', debian, 'dnnl')]
    official = os.environ.get('VARTML_BENCH_ORT')
    if official:
        found.append(('onnxruntime-1.30', official, 'cpu'))
    return [row for row in found if not CAP or row[2] == 'dnnl']


class Mnn:
    """MNN of the folder VARTML_BENCH_MNN, which has include/MNN, libMNN.so and MNNConvert."""

    def __init__(self, folder, work):
        self.folder, self.work = folder, work
        self.program = os.path.join(work, 'mnn_peer')
        subprocess.run(['g++', '-std=c++20', '-O2', os.path.join(HERE, 'mnn_peer.cpp'), '-o', self.program,
                        '-I', os.path.join(folder, 'include'), os.path.join(folder, 'libMNN.so'),
                        '-Wl,-rpath,' + folder], check=True)

    def start(self, onnx):
        model = os.path.join(self.work, os.path.basename(os.path.dirname(onnx)) + '.mnn')
        converter = subprocess.run([os.path.join(self.folder, 'MNNConvert'), '-f', 'ONNX', '--modelFile', onnx,
                                    '--MNNModel', model, '--bizCode', 'bench'], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        if not os.path.exists(model):
            last = (converter.stdout.strip().split('\n') or [''])[-1]
            raise RuntimeError(f'MNN does not convert {onnx}: {last}')
        return Program('MNN', [self.program, model, str(THREADS)])


def measure(programs):
    """Median time of each program, interleaved: a round gives each the same wall time."""
    times = {p.name: [] for p in programs}
    counts = {}
    for p in programs:
        first = min(p.run(3))
        counts[p.name] = max(3, min(2000, int(0.15e9 / first)))
    for _ in range(ROUNDS):
        for p in programs:
            times[p.name].append(statistics.median(p.run(counts[p.name])))
    return {name: statistics.median(values) for name, values in times.items()}


def compiled(work, model, numerics='float', stats_level=None):
    """The compiled model, made where it is missing; None without the ONNX file."""
    onnx = os.path.join(SHARED, 'models', model, 'model.onnx')
    place = os.path.join(work, f'{model}-{numerics}{stats_level or ""}.rai')
    if not os.path.exists(onnx):
        return None
    if not os.path.exists(place):
        arguments = ['--numerics', 'f32'] if numerics == 'f32' else []
        if stats_level:
            arguments += ['--stats-level', str(stats_level)]
        subprocess.run(['vartml', 'compile', onnx, '-o', place, *arguments], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    return place


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
