#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vartml run` as a collector of profiles: options, files, exit statuses.

usage: run_profile.py vartml MODEL.onnx      MODEL is small: it runs some thousand times
"""
import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper

PROGRAM, MODEL = (os.path.abspath(path) for path in sys.argv[1:3])
CHECK_TRACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'trace_check.py')
failures = []


def vartml(*words, folder, **more):
    return subprocess.run([PROGRAM, *words], cwd=folder, text=True, capture_output=True, check=False, **more)


def check(is_good, what):
    if not is_good:
        failures.append(what)
        print(f'FAILED: {what}')


def expect(status, pattern, *words, folder, **more):
    """The command ends so and says so; the process."""
    done = vartml(*words, folder=folder, **more)
    said = done.stdout + done.stderr
    check(done.returncode == status and re.search(pattern, said),
          f'{" ".join(words)}: exit {done.returncode}, expected {status} and {pattern!r}; it said:\n{said}')
    return done


def files(folder, inside):
    return sorted(os.listdir(os.path.join(folder, inside)))


def fresh(folder, name):
    path = os.path.join(folder, name)
    os.makedirs(path)
    return path


def buffers(folder, inside):
    """(activation, inference) of each raw buffer."""
    found = []
    for name in files(folder, inside):
        match = re.fullmatch(r'aic-profiling-program-0-activation-(\d+)-inf-(\d+)-qrfinder-aiccyclecounts\.bin', name)
        if match:
            with open(os.path.join(folder, inside, name), 'rb') as f:
                check(f.read(8) == b'VMLSTATS', f'{name}: is no stats buffer')
            found.append((int(match[1]), int(match[2])))
    return sorted(found)


RAW = '--profiling-type=raw_device_stats'


def refuses_wrong_options(folder):
    open(os.path.join(folder, 'a-file'), 'w', encoding='utf-8').close()
    rows = [
        (2, 'no MODEL is given, and no --test-data', []),
        (2, 'exclude each other', ['m70.rai', '--test-data', '.']),
        (2, 'stats, trace, latency or raw_device_stats', ['m70.rai', '--profiling-type=text']),
        (2, 'use trace', ['m70.rai', '--profiling-type=trace_stream']),
        (2, 'use latency', ['m70.rai', '--aic-profiling-type=latency_stream']),
        (2, 'profiling-num-samples', ['m70.rai', RAW, '--profiling-num-samples=0']),
        (2, 'profiling-start-iter', ['m70.rai', RAW, '--profiling-start-iter=-1']),
        (2, 'sampling-rate', ['m70.rai', RAW, '--profiling-sampling-rate=third']),
        (2, 'profiling-level', ['m70.rai', RAW, '--profiling-level=39']),
        (2, 'is 70, m40.rai was compiled with --stats-level=40; recompile with --stats-level=70',
         ['m40.rai', RAW, '--profiling-level=70']),
        (2, '--profiling-start-iter needs --profiling-type', ['m70.rai', '--profiling-start-iter=1']),
        (2, '--profiling-num-samples needs --profiling-type', ['m70.rai', '--aic-profiling-num-samples=2']),
        (2, '--profiling-overhead-limit needs --profiling-overhead', ['m70.rai', '--profiling-overhead-limit=2']),
        (2, 'exclude each other', ['m70.rai', RAW, '--profiling-overhead']),
        (1, 'a-file: cannot write into it', ['m70.rai', RAW, '--profiling-out-dir=a-file']),
        (1, 'no-folder: cannot write into it', ['m70.rai', RAW, '--profiling-out-dir=no-folder']),
        (1, '/proc: cannot write into it', ['m70.rai', RAW, '--aic-profiling-out-dir', '/proc']),
        # The folder is looked at before the model.
        (1, 'no-folder: cannot write into it', ['no-model.rai', RAW, '--profiling-out-dir=no-folder']),
        (1, 'programqpc.bin', ['--test-data', '.', RAW]),
    ]
    for status, pattern, words in rows:
        expect(status, pattern, 'run', *words, folder=folder)
    done = expect(0, 'compatibility:', 'run', '--help', folder=folder)
    before = done.stdout.split('compatibility:')[0]
    check('--aic-' not in before, '--help shows a foreign spelling outside of its group')


def collects_whatever_the_start(folder):
    """Iterations before the begin come on top; indices count from the first inference, warm-up included."""
    rows = [
        (['--profiling-start-iter=0', '--num-iter=2'], [5, 6], 2),
        (['--profiling-start-iter=2', '--num-iter=4', '--profiling-sampling-rate=half'], [7, 9], 4),
        (['--profiling-start-iter=3', '--num-iter=3', '--warmup=0'], [3, 4], 3),
        (['--aic-profiling-start-iter', '9', '--num-iter=3'], [14, 15], 3),
        (['--profiling-start-iter=9', '--profiling-duration=100000', '-n', '2', '--in-flight=3'], [14, 15], 2),
    ]
    for i, (words, indices, count) in enumerate(rows):
        out = f'start-{i}'
        fresh(folder, out)
        expect(0, f'InferenceCnt {count} ', 'run', 'm70.rai', RAW, '--profiling-num-samples=2',
               f'--profiling-out-dir={out}', *words, folder=folder)
        check(buffers(folder, out) == [(0, i) for i in indices], f'{words}: {files(folder, out)}')
    # A delay longer than the iterations would take.
    fresh(folder, 'delay')
    expect(0, 'InferenceCnt 2 ', 'run', 'm70.rai', RAW, '--profiling-num-samples=2', '--profiling-out-dir=delay',
           '--aic-profiling-start-delay=200', '--num-iter=2', folder=folder)
    found = buffers(folder, 'delay')
    check(len(found) == 2 and found[0][1] >= 5, f'start delay: {found}')


def writes_into_the_current_folder(folder):
    current = fresh(folder, 'current')
    expect(0, 'InferenceCnt 1 ', 'run', '../m70.rai', '--aic-profiling-type=raw_device_stats', '-n', '1', folder=current)
    check(buffers(folder, 'current') == [(0, 5)], f'without --aic-profiling-out-dir: {files(folder, "current")}')


def collects_each_activation(folder):
    fresh(folder, 'two')
    expect(0, 'InferenceCnt 8 ', 'run', 'm70.rai', RAW, '-a', '2', '--num-iter=4', '--profiling-num-samples=2',
           '--profiling-out-dir=two', folder=folder)
    check(buffers(folder, 'two') == [(0, 5), (0, 6), (1, 5), (1, 6)], f'-a 2: {files(folder, "two")}')


def always_has_a_sample(folder):
    """However short the time, and of every sampling rate the first."""
    fresh(folder, 'short')
    for words in (['--time=1e-9'], ['--time=1e-9', '--in-flight=3'], ['-n', '1', '--profiling-sampling-rate=sixteenth']):
        expect(0, 'InferenceCnt 1 ', 'run', 'm70.rai', RAW, '--profiling-out-dir=short', *words, folder=folder)
        check(buffers(folder, 'short') == [(0, 5)], f'{words}: {files(folder, "short")}')
    expect(0, 'InferenceCnt 1 ', 'run', 'm70.rai', '--time=1e-9', folder=folder)


def has_no_sample_without_a_level(folder):
    expect(0, 'model: ', 'compile', MODEL, '-o', 'm0.rai', '--stats-level=0', folder=folder)
    fresh(folder, 'none')
    for kind in 'raw_device_stats', 'stats', 'trace', 'latency':
        expect(1, 'm0.rai: has no opstatsdesc.bin .*compile it with --stats-level 40 or more', 'run', 'm0.rai',
               f'--profiling-type={kind}', '--profiling-out-dir=none', folder=folder)
    check(not files(folder, 'none'), f'left over: {files(folder, "none")}')


def opens_no_more_files_than_it_may(folder):
    """More samples than the system has files open at once."""
    fresh(folder, 'many')
    expect(0, 'Writing file:many/aic-profiling-program-0-trace.json', 'run', 'm70.rai', '--profiling-type=trace', '-n', '80',
           '--profiling-num-samples=80', '--profiling-out-dir=many', folder=folder,
           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50)))
    check(files(folder, 'many') == ['aic-profiling-program-0-trace.json'], f'many: {files(folder, "many")}')


def says_what_it_writes(folder):
    fresh(folder, 'said')
    words = ['run', 'm70.rai', RAW, '--profiling-type', 'latency', '--profiling-out-dir=said', '--num-iter=3']
    first = expect(0, 'Writing file:said/aic-profiling-program-0-activation-0-inf-5-qrfinder-aiccyclecounts.bin\n',
                   *words, folder=folder)
    check('Deleting' not in first.stdout, 'a new file was called an old one')
    check('Writing file:said/aic-profiling-program-0-latency.txt\n' in first.stdout, 'latency file not announced')
    expect(0, 'Deleting previous file: said/aic-profiling-program-0-latency.txt\n'
              'Writing file:said/aic-profiling-program-0-latency.txt\n', *words, folder=folder)
    check(len(files(folder, 'said')) == 2, f'left over: {files(folder, "said")}')
    done = expect(0, 'asked for 9, recorded 3', *words, '--profiling-num-samples=9', folder=folder)
    check('WARNING' in done.stderr, 'fewer samples are no warning')
    with open(os.path.join(folder, 'said', 'aic-profiling-program-0-latency.txt'), encoding='utf-8') as f:
        lines = f.read().splitlines()
    check(lines[:4] == ['Profiling Data', 'ProgramId:0', 'ProgramName: Program:qrfinder',
                        'NumSamples collected: 3 Num Requested: 9'], f'latency file: {lines[:4]}')
    rows = [{k.strip(): v.strip() for k, v in row.items()} for row in csv.DictReader(lines[4:])]
    check([row['Sample'] for row in rows] == ['0', '1', '2'], f'samples: {rows}')
    for row in rows:
        parts = float(row['exectoVcUs']) + float(row['execToCompleteUs'])
        check(abs(float(row['hostRoundTripUs']) - parts) < 0.01, f'round trip: {row}')
        check(0 < float(row['devExecUs']) <= float(row['totalRoundtripTimeUs']), f'execution: {row}')


def keeps_to_the_level(folder):
    fresh(folder, 'level')
    to = '--profiling-out-dir=level'
    expect(0, 'no operator data: m40.rai was compiled with --stats-level=40; recompile with 70',
           'run', 'm40.rai', RAW, to, '-n', '3', folder=folder)
    expect(0, 'no operator data: recorded with --profiling-level=50', 'run', 'm70.rai', RAW, to,
           '--profiling-level=50', '-n', '3', folder=folder)
    done = expect(0, r'ExecTimeUs,      \d', 'run', 'm70.rai', RAW, to, '-n', '3', folder=folder)
    check('no operator data' not in done.stderr, 'operators are missing at level 70')
    check(re.search(r'\nInputWaitTimeUs, \d+\.\d{3}, ', done.stdout), f'waits at level 70: {done.stdout}')
    done = expect(0, 'not measured: InputWaitTimeUs, OutputWaitTimeUs: recorded at level 40, waits need 50', 'run', 'm40.rai',
                  '--profiling-level=40', '-n', '3', folder=folder)
    check(re.search(r'\nExecTimeUs,      \d', done.stdout), f'times at level 40: {done.stdout}')
    done = expect(0, 'not measured: ExecTimeUs, InputWaitTimeUs, OutputWaitTimeUs: not recorded; add --profiling-level=40',
                  'run', 'm40.rai', '-n', '3', folder=folder)
    check('N/A' not in done.stdout and 'Device Performance' not in done.stdout, f'only what was measured: {done.stdout}')


def makes_reports_of_its_own(folder):
    """Summaries and one trace, without a raw buffer, of two activations at once."""
    fresh(folder, 'reports')
    expect(0, 'InferenceCnt 12 ', 'run', 'm70.rai', '--profiling-type=stats', '--profiling-type=trace',
           '--profiling-out-dir=reports', '--profiling-num-samples=3', '-a', '2', '--in-flight=2', '-n', '6', folder=folder)
    summaries = [f'aic-profiling-program-0-activation-{a}-inf-{i}.txt' for a in range(2) for i in range(5, 8)]
    check(files(folder, 'reports') == sorted(summaries + ['aic-profiling-program-0-trace.json']),
          f'reports: {files(folder, "reports")}')
    for name in summaries:
        path = os.path.join(folder, 'reports', name)
        with open(path, encoding='utf-8') as f:
            text = f.read()
        check(re.search(r'^c\d+ .* SNPU DDR ', text, re.MULTILINE) and '\n# verdict: ' in text, f'{name}: {text}')
        check(re.search(r'\n# host: enqueue \d+\.\d{3} us, .*total round trip \d+\.\d{3} us\n', text), f'{name}: {text}')
        expect(0, '', 'opstats', '--check', path, folder=folder)
    trace = os.path.join(folder, 'reports', 'aic-profiling-program-0-trace.json')
    done = subprocess.run([sys.executable, CHECK_TRACE, trace], text=True, capture_output=True, check=False)
    check(done.returncode == 0, f'trace: {done.stdout}{done.stderr}')
    with open(trace, encoding='utf-8') as f:
        events = json.load(f)['traceEvents']
    jobs = {e['args']['jobKey'] for e in events if e['ph'] == 'X' and 'jobKey' in e['args']}
    check(jobs == {f'0/{a}/{i}' for a in range(2) for i in range(5, 8)}, f'jobs of the trace: {jobs}')


def leaves_nothing_half_written(folder):
    """A file system that takes no more: files of at most 8 KiB. Tensors are files too, so the model is tiny."""
    def little_space():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ('x', 'y')]
    graph = helper.make_graph([helper.make_node('Relu', ['x'], ['y'])], 'tiny', shape[:1], shape[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              os.path.join(folder, 'tiny.onnx'))
    expect(0, 'model: ', 'compile', 'tiny.onnx', '-o', 'tiny.rai', '--stats-level=70', folder=folder)
    fresh(folder, 'full')
    for kind in 'latency', 'trace':
        expect(1, 'ERROR: full/.*: cannot write: File too large', 'run', 'tiny.rai', f'--profiling-type={kind}', '-n', '100',
               '--profiling-num-samples=100', '--profiling-out-dir=full', folder=folder, preexec_fn=little_space)
        check(not files(folder, 'full'), f'left over: {files(folder, "full")}')


def writes_figures_as_json(folder):
    expect(0, 'InferenceCnt 3 ', 'run', 'm70.rai', '--profiling-level=50', '-n', '3', '--json=run.json', folder=folder)
    with open(os.path.join(folder, 'run.json'), encoding='utf-8') as f:
        result = json.load(f)
    check(result['machine']['cpu'] and result['versions']['vartml'], 'JSON: machine, versions')
    rows = {row['name']: row['ours'] for row in result['rows']}
    check(rows['qrfinder/device_execution'] > 0 and rows['qrfinder/inferences'] > 0, f'JSON: {rows}')


def finds_what_recording_costs(folder):
    expect(0, r'profiling overhead level 50: [+-]\d+\.\d % \(median of 20 pairs, 95 % interval [+-]\d+\.\d\.\.'
              r'[+-]\d+\.\d\), budget 1000 %: met\n', 'run', 'm70.rai', '--profiling-overhead',
           '--profiling-overhead-limit=1000', folder=folder)


def main():
    with tempfile.TemporaryDirectory(prefix='vartml-run-') as folder:
        for level in 40, 70:
            expect(0, 'model: ', 'compile', MODEL, '-o', f'm{level}.rai', f'--stats-level={level}', folder=folder)
        for part in (refuses_wrong_options, collects_whatever_the_start, writes_into_the_current_folder,
                     collects_each_activation, always_has_a_sample,
                     has_no_sample_without_a_level, opens_no_more_files_than_it_may, says_what_it_writes,
                     keeps_to_the_level, makes_reports_of_its_own, leaves_nothing_half_written, writes_figures_as_json,
                     finds_what_recording_costs):
            part(folder)
    return 1 if failures else 0


sys.exit(main())
