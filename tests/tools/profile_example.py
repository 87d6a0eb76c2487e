#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The published end-to-end example of profiling, word for word but for the names of the programs: compile, run, opstats.

usage: profile_example.py vartml MODEL.onnx      exit 77: the model is not here
"""
import json
import os
import re
import subprocess
import sys
import tempfile

EXAMPLE = '''
# 1. Compile with operator-level stats enabled
vartml compile -model=model.onnx \\
   -aic-binary-dir=./binaries \\
   -stats-level=70

# 2. Run the model and collect raw stats buffers
vartml run --test-data=./binaries \\
   --aic-profiling-type=raw_device_stats \\
   --aic-profiling-out-dir=./stats \\
   --aic-profiling-num-samples=3 \\
   --aic-profiling-start-delay=1000 \\
   --num-iter=200

# 3. Post-process with opstats
vartml opstats \\
   --qpc ./binaries/programqpc.bin \\
   --input-dir ./stats \\
   --output-dir ./stats-out \\
   --summary \\
   --trace \\
   --flow-events full

# 4. View results
ls ./stats-out/aic-profiling-program-0-activation-0-inf-*.qaic-opstats.summary.txt
ls ./stats-out/aic-profiling-program-0-activation-0-inf-*.qaic-opstats.trace.json
'''
OPERATORS = re.compile(r'^c\d+ .* SNPU DDR ', re.MULTILINE)


def main():
    program, model = (os.path.abspath(path) for path in sys.argv[1:3])
    if not os.path.exists(model):
        print(f'{model} is not here')
        return 77
    with tempfile.TemporaryDirectory(prefix='vartml-example-') as folder:
        for name in ('stats', 'stats-out'):
            os.mkdir(os.path.join(folder, name))
        os.symlink(os.path.abspath(model), os.path.join(folder, 'model.onnx'))
        environment = dict(os.environ, PATH=os.path.dirname(program) + ':' + os.environ['PATH'])
        subprocess.run(['sh', '-ex'], input=EXAMPLE, text=True, cwd=folder, env=environment, check=True)
        out = os.path.join(folder, 'stats-out')
        names = sorted(os.listdir(out))
        summaries = [os.path.join(out, name) for name in names if name.endswith('.summary.txt')]
        traces = [os.path.join(out, name) for name in names if name.endswith('.trace.json')]
        assert len(summaries) == len(traces) == 3 and len(names) == 6, names
        for path in summaries:
            with open(path, encoding='utf-8') as f:
                text = f.read()
            assert OPERATORS.search(text), text
            subprocess.run([program, 'opstats', '--check', path], check=True)
        for path in traces:
            with open(path, encoding='utf-8') as f:
                events = json.load(f)['traceEvents']
            phases = {event['ph'] for event in events}
            assert {'X', 'M', 's', 'f'} <= phases, phases
            slices = [event for event in events if event['ph'] == 'X' and event['cat'] == 'aic']
            assert slices and all(event['dur'] > 0 for event in slices), path
    return 0


sys.exit(main())
