#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs vart-ml-conformance on our runtime, where every check is as expected, and on the stand-in of AMD's, where the report names
what differs, what is refused and what crashes.

usage: conformance.py VARTML MODEL.onnx PROGRAM PLUGINS STAND_IN_PROGRAM STAND_IN_PLUGINS
"""
import json
import os
import subprocess
import sys
import tempfile

# What the stand-in does otherwise, one of each kind, and what comes after a crash.
STAND_IN = {
    'create/cpu': 'same',
    'header/layouts': 'refused',
    'header/print': 'refused',
    'property/unknown': 'refused',
    'tensor/read-only output': 'differs',
    'allocate/outlives the runner': 'differs or crashed',
    'allocate/wrapped again': 'same',
    'sub-tensor/past the end': 'differs',
    'export/allocated': 'refused',
    'execute/CPU views': 'same',
    'execute/HW inputs': 'same',
    'execute/HW outputs': 'differs',
    'batch/full': 'not shown',
    'async/wait again': 'differs',
    'async/exception in a callback': 'crashed',
    'async/destroyed with jobs': 'same',
    'async/dropped in a callback': 'crashed',
    'process/end': 'same',
    'element/vartmlinfer': 'same',
}


def run(folder, program, plugins, model, report, *options):
    env = {**os.environ, 'GST_PLUGIN_PATH': plugins, 'GST_REGISTRY': os.path.join(folder, report + '.bin'), 'GST_REGISTRY_FORK': 'no'}
    ended = subprocess.run([program, model, '--report', report, *options], cwd=folder, env=env, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


def checks(folder, report):
    with open(os.path.join(folder, report), encoding='utf-8') as file:
        content = json.load(file)
    return content['facts'], {c['check']: c for c in content['checks']}


def ours(folder, vartml, onnx, program, plugins):
    for batch in ('1', '4'):
        model, report = os.path.join(folder, f'batch{batch}.rai'), f'batch{batch}.json'
        subprocess.run([vartml, 'compile', '-q', '--batch-size', batch, onnx, '-o', model], check=True)
        status, output = run(folder, program, plugins, model, report)
        if status != 0:
            yield f'ended with {status}:\n{output}'
            return
        facts, seen = checks(folder, report)
        for name, check in seen.items():
            shown = not (batch == '1' and name.startswith('batch/'))
            if check['verdict'] not in (('same',) if shown else ('same', 'not shown')):
                yield f'ours, batch {batch}: {check}'
        if 'libvartml-runtime' not in facts['library of the runtime'] or 'libvartml-runtime' not in facts['runtime of the plugin']:
            yield f'ours: {facts}'


def stand_in_model(folder, kind):
    model = os.path.join(folder, 'means' + kind)
    os.makedirs(os.path.join(model, 'vaiml_par_0'))
    with open(os.path.join(model, 'vaiml_par_0', 'extent'), 'w', encoding='utf-8') as file:
        file.write('12 16 ' + kind)
    with open(os.path.join(model, 'modelinfo'), 'w', encoding='utf-8') as file:
        file.write('[modelinfo]\nversion=1.0\n\n[images]\ndir=input\nx-vartml-mean=0\nx-vartml-scale=0.25\n')
    return model


def stand_in(folder, program, plugins, expected_names):
    model = stand_in_model(folder, '')
    status, output = run(folder, program, plugins, model, 'means.json')
    if status != 1:
        yield f'ended with {status}:\n{output}'
        return
    facts, seen = checks(folder, 'means.json')
    if set(seen) != expected_names:
        yield f'checks of one alone: {set(seen) ^ expected_names}'
    for name, verdict in STAND_IN.items():
        if seen[name]['verdict'] not in verdict.split(' or '):
            yield f'the stand-in, expected {verdict}: {seen[name]}'
    if 'signal 6' not in seen['async/exception in a callback']['seen']:
        yield f'the signal is missing: {seen["async/exception in a callback"]}'
    if 'libvart-ml' not in facts['library of the runtime'] or 'libvart-ml' not in facts['runtime of the plugin']:
        yield f'the stand-in: {facts}'
    # The table for people has each row that is not as expected in bold.
    status, output = run(folder, program, plugins, model, 'means.md')
    with open(os.path.join(folder, 'means.md'), encoding='utf-8') as file:
        page = file.read()
    if '| async/exception in a callback | reading |' not in page or '**crashed**' not in page or 'Please send in means.md' not in output:
        yield f'the Markdown report:\n{page}\n{output}'


# Kind of model, checks, the one that gets no answer: what comes after it is checked in another process.
HANGS = (
    ('hangs', 'execute/', 'execute/CPU views', {'execute/HW inputs': 'same', 'process/end': 'same'}),
    ('stays', 'create/cpu', 'process/end', {'create/cpu': 'same'}),
)


def hanging(folder, program, plugins):
    for kind, only, hung, others in HANGS:
        model, report = stand_in_model(folder, kind), kind + '.json'
        status, output = run(folder, program, plugins, model, report, '--only', only, '--timeout', '10')
        if status != 1:
            yield f'{kind}: ended with {status}:\n{output}'
            continue
        seen = checks(folder, report)[1]
        if seen[hung]['verdict'] != 'crashed' or 'no answer within 10 s' not in seen[hung]['seen']:
            yield f'{kind}: {seen[hung]}'
        for name, verdict in others.items():
            if seen[name]['verdict'] != verdict:
                yield f'{kind}, expected {verdict}: {seen[name]}'


def wrong_usage(folder, program):
    for arguments, says in (([], 'no model'), (['nowhere.rai'], "'nowhere.rai': No such file"), (['.', '--only', 'no such'], 'no such'),
                            (['.', '--report'], 'lacks its value'), (['.', '--timeout', '0'], 'expected 1 to 86400')):
        ended = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        if ended.returncode != 2 or says not in ended.stderr:
            yield f'{arguments}: {ended.returncode} {ended.stderr}'


def main():
    vartml, onnx, program, plugins, stand_in_program, stand_in_plugins = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        faults = list(ours(folder, vartml, onnx, program, plugins))
        if not faults:
            faults += stand_in(folder, stand_in_program, stand_in_plugins, set(checks(folder, 'batch4.json')[1]))
            faults += hanging(folder, stand_in_program, stand_in_plugins)
            faults += wrong_usage(folder, program)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
