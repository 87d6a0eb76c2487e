#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a trace that vartml wrote, as a viewer would, and lists what breaks the rules of the Trace Event Format, those of Perfetto's
importer and its own.

usage: trace_check.py [--arrows STREAM:FRAMES] [--quiet] FILE...

Host traces (an array, which a crash may have cut off) and those of `vartml opstats` (an object). Nothing of the writer is used.
With --arrows each of the first FRAMES frames of the stream must have one arrow that begins, and one that ends later on.
Prints a line per file with its counts, and a line per fault (50 at most); exit code 1 where there is one.
"""
import argparse
import collections
import json
import re
import sys

DEVICE_PID = 1 << 30
HOST_ID_LIMIT = 1 << 22
LARGE = 64 << 20  # bytes; above, one event per line is read at a time
MOST_FAULTS = 50
THREE_DECIMALS = re.compile(r'-?\d+\.\d{3}')

# Phase: members that it needs beside ph, name, pid and tid.
NEEDS = {
    'X': {'ts', 'dur', 'cat'}, 'B': {'ts'}, 'E': {'ts'}, 'i': {'ts', 's'}, 'M': {'args'}, 'C': {'ts', 'args'},
    'b': {'ts', 'id', 'cat'}, 'e': {'ts', 'id', 'cat'}, 'n': {'ts', 'id', 'cat'},
    's': {'ts', 'id', 'cat'}, 't': {'ts', 'id', 'cat'}, 'f': {'ts', 'id', 'cat'},
}
KNOWN = {'ph', 'name', 'cat', 'pid', 'tid', 'ts', 'dur', 'id', 'bp', 's', 'args'}
METADATA = {'process_name': 'name', 'thread_name': 'name', 'thread_sort_index': 'sort_index', 'process_sort_index': 'sort_index',
            'process_labels': 'labels', 'vartml_capture': 'clock'}
HEADER = {'version', 'clock', 'boot_id', 'pid', 'start_monotonic_ns', 'start_realtime_ns'}

Slice = collections.namedtuple('Slice', 'start end position frames')
Arrow = collections.namedtuple('Arrow', 'start phase position lane')


class Number(str):
    """A number with a point, as it is written."""


def refuse(word):
    raise ValueError(f'{word} is no JSON')


def unique(members):
    names = [name for name, _ in members]
    if len(set(names)) != len(names):
        raise ValueError(f'a member twice: {names}')
    return dict(members)


def parse(text):
    return json.loads(text, parse_float=Number, parse_constant=refuse, object_pairs_hook=unique)


def ns(text):
    return int(text.replace('.', ''))


def large_events(file):
    """One event per line: a file of any size takes the memory of one."""
    header = file.readline()
    head = parse(header.rstrip().rstrip(',') + '}')
    assert list(head) == ['displayTimeUnit', 'otherData'], header
    assert file.readline() == '"traceEvents":[\n'
    for line in file:
        if line.strip() == ']}':
            assert file.readline() == '', 'something behind the end'
            return
        yield parse(line.rstrip().rstrip(','))
    raise ValueError('cut off')


def object_events(text):
    whole = parse(text)
    if set(whole) != {'displayTimeUnit', 'otherData', 'traceEvents'} or whole['displayTimeUnit'] != 'ns':
        raise ValueError(f'members {sorted(whole)}')
    return whole['traceEvents']


class Check:
    def __init__(self, path, arrows=()):
        self.path, self.wanted_arrows = path, arrows
        self.faults, self.count = [], collections.Counter()
        self.position = 0
        self.is_host = False    # an array
        self.is_whole = True    # neither cut off nor with lost events, of which one may be an end of two
        self.first = {}
        self.process_of = {}    # of a tid
        self.names = collections.defaultdict(set)
        self.lanes = set()      # with events
        self.slices = collections.defaultdict(list)
        self.begun = collections.defaultdict(list)
        self.flows = collections.defaultdict(list)  # (cat, name, id)
        self.pairs = collections.defaultdict(list)

    def fault(self, rule, text):
        self.faults.append(f'{self.path}: {rule}: {text}')

    def fault_of(self, event, rule, text):
        self.fault(rule, f'{text}: {json.dumps(event)[:300]}')

    def run(self):
        with open(self.path, encoding='utf-8', errors='strict') as file:
            size = file.seek(0, 2)
            file.seek(0)
            self.is_host = file.read(1) == '['
            file.seek(0)
            if self.is_host:
                events = self.array_events(file.read())
            else:
                events = large_events(file) if size > LARGE else object_events(file.read())
            for event in events:
                self.add(event)
        if self.position == 0:
            self.fault('format', 'has no events')
        self.check_lanes()
        self.check_nesting()
        self.check_flows()
        self.check_pairs()
        self.check_header()
        for stream, frames in self.wanted_arrows:
            self.check_whole_arrows(stream, frames)
        return self.faults

    def array_events(self, text):
        if not text.rstrip().endswith(']'):
            self.is_whole = False  # whole lines are whole events
            text = text[:text.rfind('\n')].rstrip().rstrip(',') + ']'
        return parse(text)

    # ---- one event

    def add(self, event):
        self.position += 1
        if self.position == 1:
            self.first = event
        phase = event.get('ph')
        self.count[phase] += 1
        if phase not in NEEDS:
            return self.fault_of(event, 'format', 'a phase that is not in the format')
        missing = ({'name', 'pid', 'tid'} | NEEDS[phase]) - set(event) - ({'name'} if phase == 'E' else set())
        if missing:
            return self.fault_of(event, 'format', f'lacks {sorted(missing)}')
        if set(event) - KNOWN:
            self.fault_of(event, 'format', f'has {sorted(set(event) - KNOWN)}')
        self.check_values(event, phase)
        self.check_ids(event)
        if phase == 'M':
            return self.note_metadata(event)
        if phase == 'i' and event['name'] in ('lost events', 'recording stopped'):
            self.is_whole = False
        self.note(event, phase)

    def check_values(self, event, phase):
        """T1: microseconds with exactly three decimals, no slice without time."""
        for key in ('ts', 'dur'):
            if key in event and not (isinstance(event[key], Number) and THREE_DECIMALS.fullmatch(event[key])):
                self.fault_of(event, 'T1', f'{key} has not three decimals')
                event[key] = Number('0.001')
        if phase == 'X' and ns(event['dur']) < 1:
            self.fault_of(event, 'T1', 'dur is below 0.001')
        for key in ('name', 'cat'):
            if not isinstance(event.get(key, ''), str):
                self.fault_of(event, 'format', f'{key} is no text')
        if 'id' in event and (not isinstance(event['id'], int) or not 0 <= event['id'] < 1 << 53):
            self.fault_of(event, 'T7', 'id is no integer below 2^53')
        if not isinstance(event.get('args', {}), dict):
            self.fault_of(event, 'format', 'args is no object')
        if phase == 'f' and event.get('bp') != 'e':
            self.fault_of(event, 'T7', 'binds to the next slice, not to the one that it lies in')

    def check_ids(self, event):
        """T3: an id of a lane is in one process; in host traces, numbers of devices are apart from those of Linux."""
        pid, tid = event['pid'], event['tid']
        for key in ('pid', 'tid'):
            if not isinstance(event[key], int) or not 0 <= event[key] < 1 << 32:
                return self.fault_of(event, 'T3', f'{key} is no number below 2^32')
        process = self.process_of.setdefault(tid, pid)
        if process != pid:
            self.fault_of(event, 'T3', f'tid {tid} is in process {process} too')
        if not self.is_host:
            return
        if pid < DEVICE_PID:
            if pid >= HOST_ID_LIMIT or tid >= HOST_ID_LIMIT:
                self.fault_of(event, 'T3', f'lane {pid}, {tid} is neither of Linux nor of a device')
        elif (pid - DEVICE_PID) % (1 << 24) or not pid < tid < pid + (1 << 24):
            self.fault_of(event, 'T3', f'lane {pid}, {tid} is none of a device')

    def note_metadata(self, event):
        key = METADATA.get(event['name'])
        if not key or key not in event['args']:
            return self.fault_of(event, 'format', 'metadata without its argument')
        if event['name'] in ('process_name', 'thread_name'):
            where = event['pid'] if event['name'] == 'process_name' else (event['pid'], event['tid'])
            self.names[event['name'], where].add(event['args']['name'])

    def note(self, event, phase):
        lane, start = (event['pid'], event['tid']), ns(event['ts'])
        self.lanes.add(lane)
        if phase == 'X':
            args = event.get('args', {})
            frames = (*args.get('frames', ()), args['frame']) if 'frame' in args else tuple(args.get('frames', ()))
            self.slices[lane].append(Slice(start, start + ns(event['dur']), self.position, frames))
        elif phase == 'B':
            self.begun[lane].append((start, self.position))
        elif phase == 'E':
            if self.begun[lane]:
                begin, position = self.begun[lane].pop()
                self.slices[lane].append(Slice(begin, start, position, ()))
            elif not self.is_host:
                self.fault_of(event, 'format', 'ends nothing')
        elif phase in 'stf':
            self.flows[event['cat'], event['name'], event['id']].append(Arrow(start, phase, self.position, lane))
        elif phase in 'be':
            # Viewers tell pairs of one id in two processes apart; in a host trace an id is nobody else's.
            scope = None if self.is_host else event['pid']
            self.pairs[scope, event['cat'], event['name'], event['id']].append((start, phase))

    # ---- all of them

    def check_lanes(self):
        """T4: each lane with events has one name, and its process has one."""
        for pid, tid in sorted(self.lanes):
            wanted = [('thread_name', (pid, tid))]
            if self.is_host:
                wanted.append(('process_name', pid))
            elif (pid, tid) not in self.slices:
                continue
            for key in wanted:
                if len(self.names[key]) != 1:
                    self.fault('T4', f'{key[0]} of {key[1]} is {sorted(self.names[key])}')
                    self.names[key] = {'told'}
        for (what, where), names in self.names.items():
            if what == 'thread_name' and len(names) > 1:
                self.fault('T4', f'lane {where} is named {sorted(names)}')

    def check_nesting(self):
        """T2: slices of a lane nest or are disjoint; an enclosed one starts a nanosecond later."""
        for lane, slices in self.slices.items():
            slices.sort(key=lambda s: (s.start, -s.end))
            enclosing = []
            for one in slices:
                while enclosing and enclosing[-1].end <= one.start:
                    enclosing.pop()
                if enclosing and (one.start <= enclosing[-1].start or one.end > enclosing[-1].end):
                    self.fault('T2', f'lane {lane}: {one} and {enclosing[-1]} cross or start together')
                enclosing.append(one)

    def check_flows(self):
        """T7, T8: both ends agree, each lies in a slice that stands before it in the file."""
        kinds, by_lane = collections.defaultdict(set), collections.defaultdict(list)
        for key, ends in self.flows.items():
            kinds[key[2]].add(key[:2])
            self.check_flow(key, sorted(ends, key=lambda e: (e.start, 'stf'.index(e.phase))))
            for end in ends:
                by_lane[end.lane].append((end, key))
        if self.is_host:  # in the other form dependencies and frames are counted apart
            for flow_id, found in kinds.items():
                if len(found) > 1:
                    self.fault('T7', f'flow {flow_id} is {sorted(found)}')
        for lane, ends in by_lane.items():
            self.check_ends(lane, sorted(ends))

    def check_flow(self, key, ends):
        phases = [end.phase for end in ends]
        if self.is_host:
            # A frame that is dropped has an arrow that goes nowhere.
            is_good = phases.count('s') == 1 and phases[0] == 's' and (len(phases) > 1 or key[0] == 'frame')
            is_good = is_good or not self.is_whole
        elif key[0] in ('true', 'false'):
            is_good = sorted(phases) == ['f', 's']
        else:
            is_good = phases[0] == 's' and phases.count('s') == 1 and phases[-1] == 'f'
        if not is_good:
            self.fault('T7', f'arrow {key}: its ends are {phases}')

    def check_ends(self, lane, ends):
        slices, at, around = self.slices.get(lane, []), 0, []
        for end, key in ends:
            while at < len(slices) and slices[at].start <= end.start:
                around.append(slices[at])
                at += 1
            around = [s for s in around if s.end > end.start]
            bound = max((s for s in around if s.position < end.position), default=None)
            if bound is None:
                self.fault('T7', f'arrow {key}: its {end.phase} at {end.start} ns lies in no slice of lane {lane} that is before it')
            elif end.phase == 'f' and key[0] in ('true', 'false', 'frame') and end.start != bound.start:
                self.fault('T7', f'arrow {key}: its f at {end.start} ns is not at the start of {bound}')
            elif key[0] == 'frame' and f'{key[2] >> 40}:{key[2] & (1 << 40) - 1}' not in bound.frames:
                self.fault('T8', f'arrow {key}: its {end.phase} at {end.start} ns lies in {bound}, which is of another frame')

    def check_pairs(self):
        """T9: an async pair has two ends in order; in a host trace an id of its own."""
        for key, ends in self.pairs.items():
            begins = sorted(start for start, phase in ends if phase == 'b')
            finishes = sorted(start for start, phase in ends if phase == 'e')
            is_pair = len(begins) == len(finishes) and (len(begins) == 1 or not self.is_host)
            if not is_pair and self.is_host and not self.is_whole:
                continue
            if not is_pair or any(b > e for b, e in zip(begins, finishes)):
                self.fault('T9', f'pair {key}: begins at {begins}, ends at {finishes}')

    def check_header(self):
        if not self.is_host:
            return
        first = self.first
        if first.get('ph') != 'M' or first.get('name') != 'vartml_capture' or not HEADER <= set(first['args']):
            self.fault('header', f'the first event is {first}')

    def check_whole_arrows(self, stream, frames):
        for number in range(frames):
            ends = self.flows.get(('frame', 'frame', (stream << 40) + number), [])
            phases = [end.phase for end in sorted(ends)]
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
        check = Check(path, options.arrows)
        try:
            check.run()
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError, OSError) as error:
            check.fault('format', f'cannot be read: {error}')
        for fault in check.faults[:MOST_FAULTS]:
            print(fault)
        failed = failed or bool(check.faults)
        if not check.faults and not options.quiet:
            counts = ' '.join(f'{phase}={n}' for phase, n in sorted(check.count.items(), key=str))
            print(f'{path}: {check.position} events ({counts}), {len(check.slices)} lanes with slices'
                  f'{"" if check.is_whole else ", not whole"}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
