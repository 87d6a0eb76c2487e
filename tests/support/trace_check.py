#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a trace that vartml wrote, as a viewer would, and lists what breaks its rules.

usage: trace_check.py [--arrows STREAM:FRAMES] [--quiet] FILE...

Host traces (an array, which a crash may have cut off) and those of `vartml opstats` (an object). Nothing of the writer is used.
With --arrows each of the first FRAMES frames of the stream must have one arrow that begins, and one that ends later on.
Exit code 1 with one line per fault on standard output.
"""
import argparse
import json
import re
import sys
from collections import defaultdict
from decimal import Decimal

DEVICE_PID = 1 << 30
HOST_ID_LIMIT = 1 << 22
STAMP = re.compile(r'^\d+\.\d{3}$')
NANOSECOND = Decimal('0.001')


class Number(Decimal):
    """A number with decimals, with the text it came from."""

    def __new__(cls, text):
        made = super().__new__(cls, text)
        made.text = text
        return made


def refuse(constant):
    raise ValueError(f'{constant} is no JSON number')


def parse(text):
    return json.loads(text, parse_float=Number, parse_constant=refuse)


def read(path):
    """The events, and whether the file was cut off."""
    with open(path, encoding='utf-8', errors='strict') as file:
        text = file.read()
    is_cut = False
    if text.startswith('[') and not text.rstrip().endswith(']'):
        is_cut = True  # whole lines are whole events
        text = text[:text.rfind('\n')].rstrip().rstrip(',') + ']'
    whole = parse(text)
    return (whole['traceEvents'] if isinstance(whole, dict) else whole), is_cut


class Check:
    def __init__(self, path, arrows):
        self.path, self.arrows, self.faults = path, arrows, []
        self.events, self.is_cut = read(path)
        with open(path, encoding='utf-8') as file:
            self.is_array = file.read(1) == '['
        # What was lost may be one end of two.
        lost = any(e['ph'] == 'i' and e['name'] in ('lost events', 'recording stopped') for e in self.events)
        self.is_whole = not self.is_cut and not lost
        self.slices = defaultdict(list)  # lane: (start, end, position in the file, event)
        for position, event in enumerate(self.events):
            if event['ph'] == 'X':
                self.slices[self.lane(event)].append((event['ts'], event['ts'] + event['dur'], position, event))

    @staticmethod
    def lane(event):
        return event['pid'], event['tid']

    def fault(self, rule, text):
        self.faults.append(f'{self.path}: {rule}: {text}')

    def run(self):
        self.stamps()
        self.nesting()
        self.lanes()
        self.names()
        self.flows()
        self.pairs()
        self.header()
        for stream, frames in self.arrows:
            self.whole_arrows(stream, frames)
        return self.faults

    def stamps(self):
        """T1: microseconds with exactly three decimals, no slice without time."""
        for event in self.events:
            if event['ph'] == 'M':
                continue
            for key in ('ts', 'dur') if event['ph'] == 'X' else ('ts',):
                value = event.get(key)
                if not isinstance(value, Number) or not STAMP.match(value.text):
                    self.fault('T1', f'{key} of {event} has not three decimals')
            if event['ph'] == 'X' and event['dur'] < NANOSECOND:
                self.fault('T1', f'{event} takes no time')

    def nesting(self):
        """T2: slices of a lane nest or are disjoint; an enclosed one starts a nanosecond later."""
        for lane, slices in self.slices.items():
            stack = []
            for start, end, _, event in sorted(slices, key=lambda s: (s[0], -s[1])):
                while stack and stack[-1][1] <= start:
                    stack.pop()
                if stack and end > stack[-1][1]:
                    self.fault('T2', f'on lane {lane}, {event} crosses {stack[-1][2]}')
                if stack and start < stack[-1][0] + NANOSECOND:
                    self.fault('T2', f'on lane {lane}, {event} starts with {stack[-1][2]}')
                stack.append((start, end, event))

    def lanes(self):
        """T3: an id of a lane is in one process; numbers of devices are apart from those of Linux."""
        pid_of = {}
        for event in self.events:
            pid, tid = self.lane(event)
            if pid_of.setdefault(tid, pid) != pid:
                self.fault('T3', f'tid {tid} is in processes {pid_of[tid]} and {pid}')
            if not (0 <= pid < 1 << 32 and 0 <= tid < 1 << 32):
                self.fault('T3', f'lane {pid}, {tid} does not fit 32 bits')
            if pid < DEVICE_PID:
                if pid >= HOST_ID_LIMIT or tid >= HOST_ID_LIMIT:
                    self.fault('T3', f'lane {pid}, {tid} is neither of Linux nor of a device')
            elif (pid - DEVICE_PID) % (1 << 24) or not pid < tid < pid + (1 << 24):
                self.fault('T3', f'lane {pid}, {tid} is none of a device')

    def names(self):
        """T4: each lane with events has one name, and its process has one."""
        names = defaultdict(set)
        for event in self.events:
            if event['ph'] == 'M' and event['name'] in ('process_name', 'thread_name'):
                where = event['pid'] if event['name'] == 'process_name' else self.lane(event)
                names[event['name'], where].add(event['args']['name'])
        for event in self.events:
            if event['ph'] == 'M':
                continue
            for key in (('process_name', event['pid']), ('thread_name', self.lane(event))):
                if len(names[key]) != 1:
                    self.fault('T4', f'{key[0]} of {key[1]} is {sorted(names[key])}')
                    names[key] = {'told'}

    def binding(self, event, position):
        """The innermost slice that a viewer binds a flow event to, or None."""
        found = None
        for start, end, at, one in self.slices[self.lane(event)]:
            if start <= event['ts'] <= end and at < position and (found is None or start >= found[0]):
                found = (start, one)
        return found and found[1]

    def flows(self):
        """T7, T8: both ends agree, each lies in a slice that stands before it in the file."""
        flows = defaultdict(list)
        for position, event in enumerate(self.events):
            if event['ph'] in 'stf' and len(event['ph']) == 1:
                flows[event['cat'], event['name'], event['id']].append((event, position))
        by_id = defaultdict(set)
        for cat, name, flow_id in flows:
            by_id[flow_id].add((cat, name))
            if not isinstance(flow_id, int) or not 0 <= flow_id < 1 << 53:
                self.fault('T7', f'flow id {flow_id} is no integer below 2^53')
        for flow_id, kinds in by_id.items():
            if len(kinds) > 1:
                self.fault('T7', f'flow {flow_id} is {sorted(kinds)}')
        for (cat, name, flow_id), events in flows.items():
            begins = [e['ts'] for e, _ in events if e['ph'] == 's']
            others = [e['ts'] for e, _ in events if e['ph'] != 's']
            # A frame that is dropped has an arrow that goes nowhere.
            if (others and len(begins) != 1 or cat != 'frame' and not others) and self.is_whole:
                self.fault('T7', f'flow {flow_id} of {cat} begins {len(begins)} times and goes on {len(others)} times')
            if begins and others and min(others) < begins[0] and self.is_whole:
                self.fault('T7', f'flow {flow_id} of {cat} goes on before it begins')
            for event, position in events:
                self.flow_event(event, position)

    def flow_event(self, event, position):
        bound = self.binding(event, position)
        if bound is None:
            self.fault('T7', f'{event} lies in no slice that stands before it')
            return
        if event['ph'] == 'f' and (event['ts'] != bound['ts'] or event.get('bp') != 'e'):
            self.fault('T7', f'{event} is not at the start of {bound}')
        if event['cat'] != 'frame':
            return
        key = f'{event["id"] >> 40}:{event["id"] & (1 << 40) - 1}'
        args = bound.get('args', {})
        if key != args.get('frame') and key not in args.get('frames', []):
            self.fault('T8', f'{event} is of frame {key}, its slice {bound} is not')

    def pairs(self):
        """T9: an async pair has two ends in order, and an id of its own."""
        ends = defaultdict(list)
        for event in self.events:
            if event['ph'] in ('b', 'e'):
                ends[event['cat'], event['name'], event['id']].append(event)
        for key, events in ends.items():
            phases = sorted(e['ph'] for e in events)
            if phases != ['b', 'e'] and self.is_whole:
                self.fault('T9', f'{key} has ends {phases}')
            elif phases == ['b', 'e']:
                begin, end = sorted(events, key=lambda e: e['ph'])
                if end['ts'] < begin['ts']:
                    self.fault('T9', f'{key} ends before it begins')

    def header(self):
        if not self.is_array:
            return
        first = self.events[0] if self.events else {'ph': ''}
        wanted = {'version', 'clock', 'boot_id', 'pid', 'start_monotonic_ns', 'start_realtime_ns'}
        if first['ph'] != 'M' or first['name'] != 'vartml_capture' or not wanted <= set(first['args']):
            self.fault('header', f'the first event is {first}')

    def whole_arrows(self, stream, frames):
        for number in range(frames):
            own = [e for e in self.events if e['ph'] in ('s', 't', 'f') and e['cat'] == 'frame' and e['id'] == (stream << 40) + number]
            phases = [e['ph'] for e in sorted(own, key=lambda e: e['ts'])]
            if phases[:1] != ['s'] or 'f' not in phases:
                self.fault('arrows', f'frame {stream}:{number} has {phases}')


def arrows(text):
    stream, frames = text.split(':')
    return int(stream), int(frames)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--arrows', type=arrows, action='append', default=[])
    parser.add_argument('--quiet', action='store_true')
    parser.add_argument('files', nargs='+')
    options = parser.parse_args()
    failed = False
    for path in options.files:
        try:
            check = Check(path, options.arrows)
            faults = check.run()
        except (ValueError, KeyError, TypeError, OSError) as error:
            print(f'{path}: cannot be read: {error!r}')
            failed = True
            continue
        for fault in faults[:50]:
            print(fault)
        failed = failed or bool(faults)
        if not faults and not options.quiet:
            print(f'{path}: {len(check.events)} events{", cut off" if check.is_cut else ""}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
