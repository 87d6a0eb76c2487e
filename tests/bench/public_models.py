#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many public models `vartml compile` takes at first try, without an option, and how many with the option that it names.

usage: public_models.py [FOLDER]

FOLDER, by default VARTML_PUBLIC_MODELS, holds .onnx files of public_models.tsv anywhere below it, under any name: they are
known by git's hash of their content. Exit 1 where a model fares worse than its row says, or a refusal names neither node nor
input; 77 where there is no folder."""
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED, LIMIT = 77, 600  # seconds for a model
COMPILES, ASKS, REFUSED = 'compiles', 'asks', 'refused'
BEST_FIRST = [COMPILES, ASKS, REFUSED]


def listed():
    """Name and expectation by hash."""
    with open(pathlib.Path(__file__).with_suffix('.tsv'), encoding='utf-8') as file:
        rows = [line.rstrip('\n').split('\t') for line in file if not line.startswith('#')]
    return {blob: (name, expected) for name, _repository, _path, _commit, blob, expected in rows}


def git_hash(path):
    content = path.read_bytes()
    return hashlib.sha1(b'blob %d\0' % len(content) + content).hexdigest()


def compile_model(path, out, *options):
    """The sentence of the refusal, "" where there is none."""
    done = subprocess.run(['vartml', 'compile', path, '-o', out, *options], capture_output=True, text=True, timeout=LIMIT,
                          check=False)
    if done.returncode == 0:
        return ''
    lines = done.stderr.strip().splitlines() or [f'ended with {done.returncode}']
    return next((line for line in lines if 'ERROR' in line), lines[-1])


def fate(path, out):
    """What compile does with a model, and its first refusal."""
    first = compile_model(path, out)
    if not first:
        return COMPILES, ''
    options = [word for shape in re.findall(r'--input-shape (\S+:[0-9,]*[0-9])', first) for word in ('--input-shape', shape)]
    return (ASKS if options and not compile_model(path, out, *options) else REFUSED), first


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get('VARTML_PUBLIC_MODELS', '')
    if not os.path.isdir(folder):
        print('public models: skipped; VARTML_PUBLIC_MODELS names no folder with the files of tests/bench/public_models.tsv')
        return SKIPPED
    rows, counts, faults = listed(), dict.fromkeys(BEST_FIRST, 0), []
    runnable = 0
    with tempfile.TemporaryDirectory() as work:
        for path in sorted(pathlib.Path(folder).rglob('*.onnx')):
            name, expected = rows.pop(git_hash(path), (None, None))
            if not name:
                continue
            what, sentence = fate(path, os.path.join(work, 'model.rai'))
            print(f'{what:9} {name}  {sentence}', flush=True)
            if BEST_FIRST.index(what) > BEST_FIRST.index(expected):
                faults.append(f'{name} is {what}, {expected} before')
            if sentence and not re.search(r"(node|input) '|operator set", sentence):
                faults.append(f'{name}: the refusal names neither node nor input')
            if expected != REFUSED:
                runnable += 1
                counts[what] += 1
    if not runnable:
        print(f'public models: none of the list is below {folder}')
        return SKIPPED
    followed = counts[COMPILES] + counts[ASKS]
    print(f'public models: of {runnable} that ONNX Runtime runs {counts[COMPILES]} compile at first try '
          f'({100 * counts[COMPILES] / runnable:.1f} %), {followed} ({100 * followed / runnable:.1f} %) with the option that is '
          f'asked for; {len(rows)} of the list are not here')
    for fault in faults:
        print('worse:', fault)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
