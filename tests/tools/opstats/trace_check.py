#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader that checks traces finds each kind of fault of a host trace: a right trace, and what makes it wrong.

usage: trace_check.py [trace.json written by a program]...
"""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'support'))
import trace_check as reader

DEVICE = 1 << 30
ARGS = {'version': '1', 'clock': 'CLOCK_MONOTONIC', 'boot_id': 'b', 'pid': 9, 'start_monotonic_ns': 1, 'start_realtime_ns': 1}


def meta(what, pid, tid, args):
    return {'ph': 'M', 'name': what, 'pid': pid, 'tid': tid, 'args': args}


def lane(pid, tid, name):
    return [meta('process_name', pid, tid, {'name': f'P{pid}'}), meta('thread_name', pid, tid, {'name': name})]


def span(name, tid, start, dur, **rest):
    return {'ph': 'X', 'cat': 'gst', 'name': name, 'pid': 9, 'tid': tid, 'ts': start, 'dur': dur, 'args': {'frame': '0:4'}} | rest


def flow(phase, tid, at, **rest):
    return {'ph': phase, 'cat': 'frame', 'name': 'frame', 'id': 4, 'pid': 9, 'tid': tid, 'ts': at, 'bp': 'e'} | rest


def right():
    """Two threads and a device; a frame from one to the other; a wait between them."""
    return [
        meta('vartml_capture', 9, 9, ARGS), *lane(9, 10, 'one'), *lane(9, 11, 'two'), *lane(DEVICE, DEVICE + 1, 'net_Core_0'),
        span('inner', 10, '1.001', '2.000'), span('outer', 10, '1.000', '5.000'), flow('s', 10, '1.000'),
        span('run', DEVICE + 1, '6.500', '1.000', pid=DEVICE), flow('t', DEVICE + 1, '6.500', pid=DEVICE),
        span('sink', 11, '8.000', '0.001'), flow('f', 11, '8.000'),
        {'ph': 'b', 'cat': 'queue', 'name': 'q', 'id': 1, 'pid': 9, 'tid': 11, 'ts': '2.000'},
        {'ph': 'e', 'cat': 'queue', 'name': 'q', 'id': 1, 'pid': 9, 'tid': 11, 'ts': '8.000'},
    ]


def text_of(events):
    """Times stand in the events as the text that they shall be."""
    text = json.dumps(events)
    for key in ('ts', 'dur'):
        text = re.sub(rf'"{key}": "([^"]*)"', rf'"{key}": \1', text)
    return text.replace('}, {"ph"', '},\n{"ph"')


def faults(text):
    with tempfile.NamedTemporaryFile('w', suffix='.json', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        try:
            return reader.Check(file.name, [(0, 0)]).run()
        except (ValueError, KeyError) as error:
            return [f'unreadable: {error}']


def find(events, **wanted):
    return next(e for e in events if all(e.get(k) == v for k, v in wanted.items()))


def change(wanted, **values):
    def apply(events):
        find(events, **wanted).update(values)
    return apply


def drop(**wanted):
    def apply(events):
        events.remove(find(events, **wanted))
    return apply


def flow_first(events):
    begin = find(events, ph='s')
    events.remove(begin)
    events.insert(7, begin)


# What is done to the right trace, and the rule that must speak.
CASES = [
    (change({'name': 'inner'}, ts='1.01'), 'T1'),
    (change({'name': 'sink'}, dur='0.000'), 'T1'),
    (change({'name': 'inner'}, dur='6.000'), 'T2'),
    (change({'name': 'inner'}, ts='1.000'), 'T2'),
    (change({'name': 'run'}, pid=9), 'T3'),
    (change({'name': 'sink'}, tid=1 << 23), 'T3'),
    (change({'name': 'run'}, pid=DEVICE + 5), 'T3'),
    (change({'name': 'run'}, tid=1 << 32), 'T3'),
    (drop(name='thread_name', tid=10), 'T4'),
    (lambda events: events.extend(lane(9, 10, 'another')), 'T4'),
    (change({'ph': 's'}, ts='7.000'), 'T7'),
    (change({'ph': 's'}, id=1 << 53), 'T7'),
    (change({'ph': 'f'}, name='other'), 'T7'),
    (change({'ph': 'f'}, ts='8.001'), 'T7'),
    (change({'ph': 't'}, cat='true'), 'T7'),
    (drop(ph='s'), 'T7'),
    (flow_first, 'T7'),
    (change({'name': 'sink'}, args={'frame': '0:5'}), 'T8'),
    (drop(ph='e'), 'T9'),
    (change({'ph': 'e'}, ts='1.000'), 'T9'),
    (drop(name='vartml_capture'), 'header'),
]


def main():
    failed = []
    if found := faults(text_of(right())):
        failed.append(f'the right trace: {found}')
    for number, (apply, rule) in enumerate(CASES):
        events = right()
        apply(events)
        found = faults(text_of(events))
        if not any(f': {rule}: ' in fault for fault in found):
            failed.append(f'case {number}: wanted {rule}, found {found}')
    whole = text_of(right())
    for text, wanted in [(whole.replace('"inner"', '"in\xffner'), 'unreadable'), (whole.replace('2.000', 'NaN', 1), 'unreadable'),
                         (whole[:whole.rindex('\n')] + ',\n{"ph": "X", "ca', None)]:
        found = faults(text)
        if bool(found) != bool(wanted) or wanted and not found[0].startswith(wanted):
            failed.append(f'wanted {wanted}, found {found}')
    print('\n'.join(failed) or f'{len(CASES)} kinds of fault are found')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
