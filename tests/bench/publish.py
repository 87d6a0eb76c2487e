# SPDX-License-Identifier: Apache-2.0
"""How long vartmlpublish keeps a frame, whatever its broker does."""
import json
import os
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from ports import free_port  # noqa: E402


def bench_publish(bench, work):
    """99th percentile from pad to pad: the broker answers, is not there, takes the connection and says nothing."""
    program = os.path.join(bench.build, 'tests/bench/publish')
    broker = shutil.which('mosquitto', path=os.environ.get('PATH', '') + ':/usr/sbin:/usr/local/sbin')
    if not bench.wants('publish/') or not os.path.exists(program) or not broker:
        return
    for name in ('up', 'gone', 'silent'):
        if not bench.wants(f'publish/{name}'):
            continue
        port, silent, process = free_port(), None, None
        if name == 'up':
            process = subprocess.Popen([broker, '-p', str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
        elif name == 'silent':
            silent = socket.create_server(('127.0.0.1', port))
        times = []
        for i in range(3):
            line = subprocess.run([program, str(port), os.path.join(work, f'spool-{name}-{i}')], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout
            times.append(json.loads(line)['p99'])
        bench.add(f'publish/{name}', 'us', sorted(times)[1], None, None, 1000, 'max')
        if process:
            process.terminate()
            process.wait()
        if silent:
            silent.close()
