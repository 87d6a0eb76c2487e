#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a fleet of many cameras costs: workers with programs that do nothing, on three brokers in a cluster.

usage: figures.py NATS_SERVER VARTML_WORKER [CAMERAS [WORKERS [TTL]]]     prints docs/fleet.md's table"""
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from ports import free_port  # noqa: E402

SERVER, WORKER = sys.argv[1:3]
CAMERAS, WORKERS, TTL = (int(word) for word in (sys.argv[3:] + ['1000', '20', '10'][len(sys.argv) - 3:]))


class Stand:
    def __init__(self, folder):
        self.folder = folder
        self.log = folder / 'log'
        self.log.touch()
        self.read_to, self.owned = 0, {}
        ports = [free_port() for _ in range(9)]
        self.clients, routes, self.monitors = ports[:3], ports[3:6], ports[6:]
        self.brokers = [self.broker(i, routes) for i in range(3)]
        self.nats = ','.join(f'nats://127.0.0.1:{p}' for p in self.clients)
        self.workers = {}

    def broker(self, i, routes):
        config = self.folder / f'broker{i}'
        config.write_text(f'server_name: b{i}\nlisten: "127.0.0.1:{self.clients[i]}"\nhttp: "127.0.0.1:{self.monitors[i]}"\n'
                          f'jetstream {{ store_dir: "{self.folder}/store{i}" }}\n'
                          f'cluster {{ name: fleet, listen: "127.0.0.1:{routes[i]}", routes: ['
                          + ', '.join(f'"nats://127.0.0.1:{r}"' for r in routes) + '] }\n')
        return subprocess.Popen([SERVER, '-c', config], stderr=subprocess.DEVNULL)

    def request(self, **more):
        return json.dumps({'nats': self.nats, 'replicas': 3, **more})

    def start(self, name, capacity):
        with open(self.log, 'ab') as log:
            self.workers[name] = subprocess.Popen(
                [WORKER, self.request(command='worker', name=name, capacity=capacity, ttl_ms=TTL * 1000, program=['sleep', '100000'])],
                stdout=log, stderr=subprocess.DEVNULL)

    def cameras_owned(self):
        with open(self.log, 'rb') as log:
            log.seek(self.read_to)
            data = log.read()
        whole = data[:data.rfind(b'\n') + 1]
        self.read_to += len(whole)
        for event in map(json.loads, whole.splitlines()):
            if event['event'] == 'start':
                self.owned[event['camera']] = self.owned.get(event['camera'], 0) + 1
            if event['event'] == 'stop':
                self.owned[event['camera']] -= 1
        if any(n > 1 for n in self.owned.values()):
            raise SystemExit('a camera had two owners: ' + str([c for c, n in self.owned.items() if n > 1]))
        return sum(self.owned.values())

    def wait_for(self, count, least_seconds=0):
        begin = time.monotonic()
        while self.cameras_owned() != count or time.monotonic() - begin < least_seconds:
            time.sleep(0.1)
        return time.monotonic() - begin

    def stops(self):
        """The reason of each stop."""
        return [e['reason'] for e in map(json.loads, self.log.read_text().splitlines()) if e['event'] == 'stop']

    def varz(self):
        all_of_them = []
        for monitor in self.monitors:
            with urllib.request.urlopen(f'http://127.0.0.1:{monitor}/varz') as answer:
                all_of_them.append(json.load(answer))
        return all_of_them

    def rates(self, seconds=10):
        before, begin = self.varz(), time.monotonic()
        time.sleep(seconds)
        after, passed = self.varz(), time.monotonic() - begin
        return [sum(b[key] - a[key] for a, b in zip(before, after)) / passed for key in ('in_msgs', 'out_msgs', 'in_bytes', 'out_bytes')]

    def end(self):
        for process in [*self.workers.values(), *self.brokers]:
            process.kill()
            process.wait()


def main():
    with tempfile.TemporaryDirectory() as name:
        stand = Stand(pathlib.Path(name))
        try:
            cpu = next((line.split(':')[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), '')
            print(f'{CAMERAS} cameras, {WORKERS} workers, 3 brokers, --ttl {TTL} s; {cpu}, {os.cpu_count()} processors, '
                  f'load {os.getloadavg()[0]:.0f}\n\n| | |\n|---|---|')
            (stand.folder / 'list').write_text(''.join(json.dumps({'camera': f'c{i}', 'uri': f'rtsp://10.0.0.1/{i}'}) + '\n'
                                                       for i in range(CAMERAS)))
            begin = time.monotonic()
            while subprocess.run([WORKER, stand.request(command='cameras', action='import', name=str(stand.folder / 'list'))],
                                 capture_output=True).returncode:
                time.sleep(0.5)
            print(f'| the list is imported after | {time.monotonic() - begin:.1f} s |', flush=True)
            for i in range(WORKERS):
                stand.start(f'w{i}', CAMERAS // WORKERS + CAMERAS // WORKERS // 4)
            print(f'| all cameras have an owner after | {stand.wait_for(CAMERAS):.1f} s |', flush=True)
            stand.wait_for(CAMERAS, TTL)
            in_msgs, out_msgs, in_bytes, out_bytes = stand.rates()
            print(f'| messages into and out of the brokers | {in_msgs:.0f}/s, {out_msgs:.0f}/s |')
            print(f'| bytes into and out of the brokers | {in_bytes / 1e6:.2f} MB/s, {out_bytes / 1e6:.2f} MB/s |')
            print('| resident memory of each broker | ' + ', '.join(f'{v["mem"] / 2**20:.0f} MiB' for v in stand.varz()) + ' |')
            print('| processor time of each broker | ' + ', '.join(f'{v["cpu"]:.0f} %' for v in stand.varz()) + ' |', flush=True)
            stand.workers['w0'].kill()
            stand.workers['w0'].wait()
            begin = time.monotonic()
            while stand.cameras_owned() == CAMERAS:
                time.sleep(0.05)
            stand.wait_for(CAMERAS)
            print(f'| a worker is killed: its cameras have owners after | {time.monotonic() - begin:.1f} s |', flush=True)
            stops = stand.stops()
            stand.brokers[0].send_signal(signal.SIGKILL)
            stand.brokers[0].wait()
            stand.wait_for(CAMERAS, 2 * TTL)
            print(f'| a broker of three is killed: cameras that stop within {2 * TTL} s | {len(stand.stops()) - len(stops)} |')
            for reason, count in collections.Counter(stand.stops()[len(stops):]).items():
                print(f'| … because {reason} | {count} |')
        finally:
            stand.end()


if __name__ == '__main__':
    main()
