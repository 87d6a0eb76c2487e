#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a trace in the Trace Event Format against the format's documentation and against what Perfetto's importer
asks for: fields of each phase, times with three decimals, unique lanes, slices that nest, arrows with both ends.

usage: check_trace.py [--host] FILE...
  --host   a host trace: the array form, which may be cut off; arrows and pairs may lack an end
Prints one line per file with its counts, and a line per fault (20 at most); exit 1 where there is one.
"""
import collections
import json
import re
import sys

THREE_DECIMALS = re.compile(r'-?\d+\.\d{3}')
LARGE = 64 << 20  # bytes; above, one event per line is read at a time

# Phase: members that it needs beside ph, name, pid and tid.
NEEDS = {
    'X': {'ts', 'dur', 'cat'}, 'B': {'ts'}, 'E': {'ts'}, 'i': {'ts', 's'}, 'M': {'args'}, 'C': {'ts', 'args'},
    'b': {'ts', 'id', 'cat'}, 'e': {'ts', 'id', 'cat'}, 'n': {'ts', 'id', 'cat'},
    's': {'ts', 'id', 'cat'}, 't': {'ts', 'id', 'cat'}, 'f': {'ts', 'id', 'cat'},
}
KNOWN = {'ph', 'name', 'cat', 'pid', 'tid', 'ts', 'dur', 'id', 'bp', 's', 'args'}
METADATA = {'process_name': 'name', 'thread_name': 'name', 'thread_sort_index': 'sort_index', 'process_sort_index': 'sort_index',
            'process_labels': 'labels', 'vartml_capture': 'clock'}


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


class Check:
    def __init__(self, host):
        self.host = host
        self.faults, self.count = [], collections.Counter()
        self.position = 0
        self.process_of, self.name_of = {}, {}  # of a lane
        self.slices = collections.defaultdict(list)  # lane: (start, end, position)
        self.begun = collections.defaultdict(list)
        self.arrows = collections.defaultdict(list)  # (cat, id, name): (start, phase, lane, position)
        self.pairs = collections.defaultdict(list)

    def fault(self, event, what):
        self.faults.append(f'{what}: {json.dumps(event)[:300]}')

    def add(self, event):
        self.position += 1
        phase = event.get('ph')
        self.count[phase] += 1
        if phase not in NEEDS:
            return self.fault(event, 'a phase that is not in the format')
        missing = ({'name', 'pid', 'tid'} | NEEDS[phase]) - set(event) - ({'name'} if phase == 'E' else set())
        if missing:
            return self.fault(event, f'lacks {sorted(missing)}')
        if set(event) - KNOWN:
            self.fault(event, f'has {sorted(set(event) - KNOWN)}')
        self.check_values(event, phase)
        self.check_lane(event)
        if phase == 'M':
            return self.check_metadata(event)
        self.note(event, phase)

    def check_values(self, event, phase):
        for key in ('ts', 'dur'):
            if key in event and not (isinstance(event[key], Number) and THREE_DECIMALS.fullmatch(event[key])):
                self.fault(event, f'{key} has not three decimals')
                event[key] = Number('0.001')
        if phase == 'X' and ns(event['dur']) < 1:
            self.fault(event, 'dur is below 0.001')
        for key in ('pid', 'tid'):
            if not isinstance(event[key], int) or not 0 <= event[key] < 1 << 32:
                self.fault(event, f'{key} is no number below 2^32')
        for key in ('name', 'cat'):
            if not isinstance(event.get(key, ''), str):
                self.fault(event, f'{key} is no text')
        if 'id' in event and (not isinstance(event['id'], int) or not 0 <= event['id'] < 1 << 53):
            self.fault(event, 'id is no integer below 2^53')
        if not isinstance(event.get('args', {}), dict):
            self.fault(event, 'args is no object')
        if phase == 'f' and event.get('bp') != 'e':
            self.fault(event, 'binds to the next slice, not to the one that it lies in')

    def check_lane(self, event):
        process = self.process_of.setdefault(event['tid'], event['pid'])
        if process != event['pid']:
            self.fault(event, f'tid {event["tid"]} is in process {process} too')

    def check_metadata(self, event):
        key = METADATA.get(event['name'])
        if not key or key not in event['args']:
            return self.fault(event, 'metadata without its argument')
        if event['name'] == 'thread_name' and self.name_of.setdefault(event['tid'], event['args']['name']) != event['args']['name']:
            self.fault(event, f'the lane is named {self.name_of[event["tid"]]!r} too')

    def note(self, event, phase):
        lane, start = event['tid'], ns(event['ts'])
        if phase == 'X':
            self.slices[lane].append((start, start + ns(event['dur']), self.position))
        elif phase == 'B':
            self.begun[lane].append((start, self.position))
        elif phase == 'E':
            if self.begun[lane]:
                begin, position = self.begun[lane].pop()
                self.slices[lane].append((begin, start, position))
            elif not self.host:
                self.fault(event, 'ends nothing')
        elif phase in 'stf':
            self.arrows[event['cat'], event['id'], event['name']].append((start, phase, lane, self.position))
        elif phase in 'be':
            self.pairs[event['pid'], event['cat'], event['id'], event['name']].append((start, phase))

    def check_nesting(self):
        for lane, slices in self.slices.items():
            slices.sort(key=lambda s: (s[0], -s[1]))
            enclosing = []
            for start, end, _ in slices:
                while enclosing and enclosing[-1][1] <= start:
                    enclosing.pop()
                if enclosing and (start <= enclosing[-1][0] or end > enclosing[-1][1]):
                    self.faults.append(f'lane {lane}: {start}..{end} ns and {enclosing[-1][0]}..{enclosing[-1][1]} ns cross or start together')
                enclosing.append((start, end))

    def check_arrows(self):
        for key, ends in self.arrows.items():
            phases = [phase for _, phase, _, _ in sorted(ends, key=lambda e: (e[0], 'stf'.index(e[1])))]
            whole = phases[0] == 's' and phases.count('s') == 1 and phases[-1] == 'f'
            if key[0] in ('true', 'false'):
                whole = phases == ['s', 'f'] or sorted(phases) == ['f', 's']
            if not whole and not self.host:
                self.faults.append(f'arrow {key}: its ends are {phases}')
        lanes = collections.defaultdict(list)
        for key, ends in self.arrows.items():
            for start, phase, lane, position in ends:
                lanes[lane].append((start, phase, position, key))
        for lane, ends in lanes.items():
            self.check_ends(lane, sorted(ends))

    def check_ends(self, lane, ends):
        """Each lies in a slice of its lane that stands before it in the file."""
        slices, at, around = self.slices.get(lane, []), 0, []
        for start, phase, position, key in ends:
            while at < len(slices) and slices[at][0] <= start:
                around.append(slices[at])
                at += 1
            around = [s for s in around if s[1] > start]
            if not any(self.host or s[2] < position for s in around):
                self.faults.append(f'arrow {key}: its {phase} at {start} ns lies in no slice of lane {lane} that is before it')

    def check_pairs(self):
        for key, ends in self.pairs.items():
            begins = sorted(start for start, phase in ends if phase == 'b')
            finishes = sorted(start for start, phase in ends if phase == 'e')
            if self.host:
                continue
            if len(begins) != len(finishes) or any(b > e for b, e in zip(begins, finishes)):
                self.faults.append(f'pair {key}: begins at {begins}, ends at {finishes}')

    def finish(self):
        self.check_nesting()
        self.check_arrows()
        self.check_pairs()
        for lane in self.slices:
            if lane not in self.name_of and not self.host:
                self.faults.append(f'lane {lane} has no name')


def whole_events(text):
    """Those of an array that may be cut off: one event per line."""
    for line in text.splitlines():
        line = line.strip().strip(',')
        line = line[1:] if line.startswith('[') else line
        line = line[:-1] if line.endswith('}]') else line
        if line in ('', ']'):
            continue
        try:
            yield parse(line)
        except ValueError:
            return  # cut off


def large_events(file):
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


def small_events(text):
    whole = parse(text)
    if set(whole) != {'displayTimeUnit', 'otherData', 'traceEvents'} or whole['displayTimeUnit'] != 'ns':
        raise ValueError(f'members {sorted(whole)}')
    return whole['traceEvents']


def events_of(file, host):
    if host:
        return whole_events(file.read())
    size = file.seek(0, 2)
    file.seek(0)
    return large_events(file) if size > LARGE else small_events(file.read())


def main():
    arguments = sys.argv[1:]
    host = '--host' in arguments
    failed = False
    for path in (a for a in arguments if a != '--host'):
        check = Check(host)
        with open(path, encoding='utf-8') as file:
            try:
                for event in events_of(file, host):
                    check.add(event)
                check.finish()
            except ValueError as error:
                check.faults.append(str(error))
        counts = ' '.join(f'{phase}={n}' for phase, n in sorted(check.count.items(), key=str))
        print(f'{path}: {check.position} events ({counts}), {len(check.slices)} lanes with slices, {len(check.faults)} faults')
        for fault in check.faults[:20]:
            print(f'  {fault}')
        failed = failed or bool(check.faults) or check.position == 0
    return 1 if failed else 0


sys.exit(main())
