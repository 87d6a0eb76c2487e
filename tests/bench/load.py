# SPDX-License-Identifier: Apache-2.0
"""Time and memory of loading a model."""
import os
import statistics
import subprocess
import tempfile

from rows import SHARED, MODELS, INT8_MODELS, THREADS, ROUNDS, ort_libraries, compiled, geometric_mean


def load_once(command, cache):
    """Seconds to create the runner or session, and most resident bytes after one run, of a fresh process."""
    process = subprocess.run(command, input='load 1\n', text=True, check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=dict(os.environ, XDG_CACHE_HOME=cache))
    nanoseconds, resident = process.stdout.split('\n')[1].split()
    return int(nanoseconds) / 1e9, int(resident)


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
