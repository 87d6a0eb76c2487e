#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines that start, stop, swap models, gain and lose streams and brokers, for a long time in one process; what of
memory, descriptors and threads grows. Beside the resident memory stands what of the heap is in use: where that stays and the
other grows, the allocator keeps gaps and nothing leaks. At the end all pipelines stop: what is in use then beyond the start is
kept for ever, by plugins that were loaded, or lost.

usage: soak.py --out DIR [--minutes N] [--parts PART,...] MODEL.onnx
  --minutes  how long [10]
  --parts    restart, swap, streams, publish, upstream (the same restarts with none of our elements) [the first four]

Writes OUT/soak.csv (a row every two seconds), OUT/soak.svg and OUT/soak.json, and prints a table: the slope of each figure by
least squares over the last two thirds, with its standard error: of runs of 30 minutes and more over the means of each minute,
since rows that follow each other are not independent. Exit code 1 where memory grows by 1 MB/h or more beyond twice its error, descriptors or threads by one an hour,
a pipeline failed, or a record is missing.
"""
import argparse
import array
import collections
import csv
import ctypes
import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time

import gi

gi.require_version('Gst', '1.0')
from gi.repository import GLib, Gst  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from figures import keep  # noqa: E402
from ports import free_port  # noqa: E402

LIMITS = {'resident_mb': 1.0, 'heap_mb': 1.0, 'descriptors': 1.0, 'threads': 1.0}  # an hour
TITLES = {'resident_mb': 'resident memory in MB', 'heap_mb': 'heap in use in MB', 'descriptors': 'descriptors', 'threads': 'threads'}
PERIOD = 2  # seconds


class Part:
    """Something that goes on until it is told to stop; `count` says how often it did what it is for."""
    pause = 0.5

    def __init__(self, stand):
        self.stand, self.count = stand, 0

    def go_on(self):
        while not self.stand.over.wait(self.pause):
            self.step()
            self.count += 1
        self.end()

    def end(self):
        pass

    def start(self, text):
        pipeline = Gst.parse_launch(text)
        pipeline.set_state(Gst.State.PLAYING)
        if pipeline.get_state(20 * Gst.SECOND)[0] == Gst.StateChangeReturn.FAILURE:
            self.stand.fault(f'{type(self).__name__}: did not start: {text}')
        return pipeline

    def listen(self, pipeline):
        while message := pipeline.get_bus().pop():
            if message.type == Gst.MessageType.ERROR:
                self.stand.fault(f'{type(self).__name__}: {message.parse_error()[0].message}')

    def stop(self, pipeline):
        self.listen(pipeline)
        pipeline.set_state(Gst.State.NULL)
        pipeline.get_state(20 * Gst.SECOND)


class Restart(Part):
    def step(self):
        self.stop(self.start(f'videotestsrc num-buffers=20 ! video/x-raw,width=320,height=240 ! vartmlinfer model={self.stand.models[0]} ! '
                             'vartmldecode ! vartmltrack ! vartmloverlay ! fakesink'))


class Upstream(Part):
    def step(self):
        self.stop(self.start('videotestsrc num-buffers=20 ! video/x-raw,width=320,height=240 ! videoconvert ! videoscale ! '
                             'video/x-raw,format=RGB,width=160,height=120 ! queue ! fakesink'))


class Swap(Part):
    pause = 1.3

    def __init__(self, stand):
        super().__init__(stand)
        self.pipeline = self.start('videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=20/1 ! '
                                   f'vartmlinfer name=infer model={stand.models[0]} ! vartmldecode ! fakesink sync=false')

    def step(self):
        self.listen(self.pipeline)
        self.pipeline.get_by_name('infer').set_property('model', self.stand.models[(self.count + 1) % 2])

    def end(self):
        self.stop(self.pipeline)


class Streams(Part):
    """Streams that share a model come and go; never fewer than one."""
    pause = 0.7

    def __init__(self, stand):
        super().__init__(stand)
        self.running = [self.stream(), self.stream()]

    def stream(self):
        return self.start('videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=10/1 ! '
                          f'vartmlinfer model={self.stand.models[0]} model-instance-id=soak ! vartmldecode ! fakesink sync=false')

    def step(self):
        for pipeline in self.running:
            self.listen(pipeline)
        if self.count % 2:
            self.stop(self.running.pop(0))
        else:
            self.running.append(self.stream())

    def end(self):
        for pipeline in self.running:
            self.stop(pipeline)


class Publish(Part):
    """Records go to a broker that is away half of the time; a subscriber counts what arrives."""
    pause = 15

    def __init__(self, stand):
        super().__init__(stand)
        self.port = free_port()
        self.broker = None
        self.turn_on()
        self.pipeline = self.start('videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=10/1 ! '
                                   f'vartmlinfer model={stand.models[0]} ! vartmldecode ! vartmlpublish method=mqtt '
                                   f'address=127.0.0.1 port={self.port} topic=soak spool-dir={stand.folder}/spool ! fakesink sync=false')

    def turn_on(self):
        config = os.path.join(self.stand.folder, 'mosquitto.conf')
        with open(config, 'w', encoding='utf-8') as f:
            f.write(f'listener {self.port} 127.0.0.1\nallow_anonymous true\n')
        self.broker = subprocess.Popen(['mosquitto', '-c', config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def step(self):
        self.listen(self.pipeline)
        if self.broker:
            self.broker.kill()
            self.broker.wait()
            self.broker = None
        else:
            self.turn_on()

    def end(self):
        self.stop(self.pipeline)
        if self.broker:
            self.broker.kill()
            self.broker.wait()


PARTS = {'restart': Restart, 'swap': Swap, 'streams': Streams, 'publish': Publish, 'upstream': Upstream}


class Stand:
    def __init__(self, folder, models):
        self.folder, self.models = folder, models
        self.over = threading.Event()
        self.faults = []

    def fault(self, sentence):
        self.faults.append(sentence)
        print(sentence, file=sys.stderr, flush=True)


class MallInfo(ctypes.Structure):
    """struct mallinfo2 of malloc.h."""
    _fields_ = [(name, ctypes.c_size_t) for name in
                ('arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks', 'fsmblks', 'uordblks', 'fordblks', 'keepcost')]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = MallInfo


def heap_mb():
    heap = mallinfo2()
    return (heap.uordblks + heap.hblkhd) / 2**20


class Columns:
    """The figures of each moment, in memory that is taken at the start: the stand shall not grow itself."""

    def __init__(self, seconds):
        self.columns = {name: array.array('d', bytes(8 * int(seconds / PERIOD + 2))) for name in ('seconds', *LIMITS)}
        self.count = 0

    def sample(self, seconds):
        with open('/proc/self/status', encoding='utf-8') as f:
            status = dict(line.split(':', 1) for line in f if ':' in line)
        row = {'seconds': round(seconds, 1), 'resident_mb': int(status['VmRSS'].split()[0]) / 1024, 'heap_mb': heap_mb(),
               'descriptors': len(os.listdir('/proc/self/fd')), 'threads': int(status['Threads'])}
        for name, value in row.items():
            self.columns[name][self.count] = value
        self.count += 1

    def rows(self):
        return [{name: column[i] for name, column in self.columns.items()} for i in range(self.count)]


def threads_by_name():
    names = collections.Counter()
    for thread in os.listdir('/proc/self/task'):
        try:
            with open(f'/proc/self/task/{thread}/comm', encoding='utf-8', errors='replace') as f:
                names[f.read().strip()] += 1
        except OSError:
            pass  # ended meanwhile
    return names


class LastingThreads:
    """How many threads of each name were there all the time, in a minute at a third and in the last one."""

    def __init__(self, seconds):
        self.begins, self.least = (seconds / 3, max(seconds / 3 + 60, seconds - 60)), [None, None]

    def sample(self, seconds):
        window = 1 if seconds >= self.begins[1] else 0
        if self.begins[window] <= seconds < self.begins[window] + 60:
            now, least = threads_by_name(), self.least[window]
            self.least[window] = now if least is None else now & least

    def more(self):
        first, last = self.least
        return dict(last - first) if first and last else {}


def minutes_of(rows):
    """The mean row of each minute; of each sample where there are fewer than twenty minutes."""
    span = 60 if rows[-1]['seconds'] - rows[0]['seconds'] >= 20 * 60 else PERIOD
    minutes = {}
    for row in rows:
        minutes.setdefault(int(row['seconds'] // span), []).append(row)
    return [{name: sum(row[name] for row in group) / len(group) for name in group[0]} for group in minutes.values()]


def slope(rows, name):
    """Per hour, and its standard error."""
    t = [row['seconds'] / 3600 for row in rows]
    y = [row[name] for row in rows]
    n, mean_t, mean_y = len(t), sum(t) / len(t), sum(y) / len(y)
    spread = sum((a - mean_t) ** 2 for a in t)
    if n < 3 or spread == 0:
        return 0.0, math.inf
    k = sum((a - mean_t) * (b - mean_y) for a, b in zip(t, y)) / spread
    rest = sum((b - mean_y - k * (a - mean_t)) ** 2 for a, b in zip(t, y))
    return k, math.sqrt(rest / (n - 2) / spread)


def picture(rows):
    """A graph over time for each figure, as SVG."""
    width, height, text = 900, 150, []
    last, whole = max(row['seconds'] for row in rows) or 1, len(TITLES) * (height + 50) + 5
    for index, (name, title) in enumerate(TITLES.items()):
        low, high = min(row[name] for row in rows), max(row[name] for row in rows)
        span, top = (high - low) or 1, index * (height + 50) + 35
        points = ' '.join(f'{60 + row["seconds"] / last * (width - 80):.1f},{top + height - (row[name] - low) / span * height:.1f}' for row in rows)
        text += [f'<text x="60" y="{top - 10}">{title}</text>', f'<text x="5" y="{top + 10}">{high:.0f}</text>',
                 f'<text x="5" y="{top + height}">{low:.0f}</text>',
                 f'<rect x="60" y="{top}" width="{width - 80}" height="{height}" fill="none" stroke="#999"/>',
                 f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="1.5"/>']
    text.append(f'<text x="{width - 140}" y="{whole - 7}">{last / 60:.0f} minutes</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{whole}" font-family="sans-serif" font-size="14">'
            f'<rect width="{width}" height="{whole}" fill="white"/>' + ''.join(text) + '</svg>\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', required=True)
    parser.add_argument('--minutes', type=float, default=10)
    parser.add_argument('--parts', default='restart,swap,streams,publish')
    parser.add_argument('model')
    options = parser.parse_args()
    chosen = options.parts.split(',')
    if unknown := [name for name in chosen if name not in PARTS]:
        sys.exit(f'soak: no part {unknown[0]!r}; there are {", ".join(PARTS)}')
    Gst.init(None)
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        models = [os.path.join(folder, name) for name in ('a.rai', 'b.rai')]
        for path, numerics in zip(models, ('auto', 'f32')):
            subprocess.run(['vartml', 'compile', options.model, '-o', path, '--numerics', numerics], check=True, stdout=subprocess.DEVNULL)
        stand = Stand(folder, models)
        at_first = heap_mb()
        parts = [PARTS[name](stand) for name in chosen]
        workers = [threading.Thread(target=part.go_on) for part in parts]
        begun = time.monotonic()
        columns, lasting = Columns(options.minutes * 60), LastingThreads(options.minutes * 60)
        for worker in workers:
            worker.start()
        while time.monotonic() - begun < options.minutes * 60:
            columns.sample(time.monotonic() - begun)
            lasting.sample(time.monotonic() - begun)
            time.sleep(PERIOD)
        stand.over.set()
        for worker in workers:
            worker.join()
        steps = {name: part.count for name, part in zip(chosen, parts)}
        del parts, workers
        gc.collect()
    left = heap_mb() - at_first
    rows = columns.rows()
    with open(os.path.join(options.out, 'soak.csv'), 'w', newline='', encoding='utf-8') as f:
        writer = csv.DictWriter(f, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    with open(os.path.join(options.out, 'soak.svg'), 'w', encoding='utf-8') as f:
        f.write(picture(rows))
    settled, grows = minutes_of(rows[len(rows) // 3:]), []
    result = {'minutes': options.minutes, 'steps': steps, 'faults': stand.faults, 'left_mb': left, 'more_threads': lasting.more()}
    print(', '.join(f'{name} {count}' for name, count in steps.items()))
    for name, limit in LIMITS.items():
        k, error = slope(settled, name)
        result[name] = {'first': settled[0][name], 'last': settled[-1][name], 'per_hour': k, 'standard_error': error}
        print(f'{name:<12} {settled[0][name]:8.1f} -> {settled[-1][name]:8.1f}   {k:+8.2f} an hour, standard error {error:.2f}')
        if k - 2 * error >= limit:
            grows.append(name)
    if result['more_threads']:
        print('threads at the end that were not there at a third: ' + ', '.join(f'{name} {count}' for name, count in result['more_threads'].items()))
    print(f'{left:.1f} MB of heap are in use when all has stopped that were not at the start')
    with open(os.path.join(options.out, 'soak.json'), 'w', encoding='utf-8') as f:
        json.dump(result, f, indent=1)
    keep('soak', result)
    for name in grows:
        print(f'{name} grows', file=sys.stderr)
    return 1 if grows or stand.faults else 0


sys.exit(main())
