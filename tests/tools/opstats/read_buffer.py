#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a raw stats buffer by the tables of docs/formats.md, with struct and zlib alone.

usage: read_buffer.py PROGRAM      PROGRAM FILE writes the buffer of captures.h
"""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

HEADER = '<8sHHIQIIQII16s16s16sIIQIIHHIIIQ' + 'Q' * 11 + 'III12s'
SECTION = '<4sHHQQIIHHI'
RECORDS = {'THRD': '<HHHHIIQQQQQQ', 'OPTS': '<QQ', 'OPPC': '<Q', 'OPMU': '<QQ', 'PORT': '<HHHHIIQ', 'BELL': '<HHIQ',
           'SEMA': '<HHIQQ', 'DDRT': '<HHIQQ', 'PMUD': '<IiQ48s', 'PMUT': '<HHHHQQ8Q', 'HOST': '<9Q', 'FRAM': '<IIQqQ'}
NOT_CAPTURED = 2 ** 64 - 1
START = 1_000_000_000  # of captures.h


def sections_of(data):
    """{(type, core, thread): records or text}; every size, place and checksum is asserted."""
    assert struct.calcsize(HEADER) == 256 and struct.calcsize(SECTION) == 40
    header = struct.unpack_from(HEADER, data)
    magic, major, minor, size, file_size, crc, count, table, table_crc, flags = header[:10]
    assert (magic, major, minor, size, file_size) == (b'VMLSTATS', 1, 0, 256, len(data))
    assert crc == zlib.crc32(data[:24] + bytes(4) + data[28:256])
    assert table_crc == zlib.crc32(data[table:table + 40 * count])
    # Operators, pcycles, PMU, DDR computed, ports, frames, host stamps.
    assert flags == 0b111011011, bin(flags)
    assert header[10] == bytes(17 * i for i in range(16)) and header[12] == b'\xb0' * 16
    assert header[13:17] == (0, 0, 3, 0) and header[18:22] == (70, 100, 8, 8), header
    assert header[22:24] == (1, 10 ** 9) and header[-4:] == (4242, 2, 10, bytes(12)), header
    found = {}
    for i in range(count):
        kind, version, _, offset, length, records, crc, core, thread, record = struct.unpack_from(SECTION, data, table + 40 * i)
        body = data[offset:offset + length]
        assert offset % 8 == 0 and len(body) == length and version == 1 and crc == zlib.crc32(body), kind
        kind = kind.decode()
        if kind in RECORDS:
            assert record == struct.calcsize(RECORDS[kind]) and length == records * record, kind
            found[kind, core, thread] = list(struct.iter_unpack(RECORDS[kind], body))
        else:
            found[kind, core, thread] = body.decode()
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'buffer.bin')
        subprocess.run([sys.argv[1], path], check=True)
        with open(path, 'rb') as file:
            found = sections_of(file.read())
    whole = {kind: body for (kind, core, thread), body in found.items() if (core, thread) == (0xffff, 0xffff)}
    assert whole['NETW'] == 'small net' and whole['STRM'] == '0\tcamera\n'
    assert len(whole['THRD']) == 10
    straggler = whole['THRD'][2]
    assert straggler == (0, 2, 0, 0, 1002, 1, START + 200, START + 200_000, 400_002, 1_002_000, 150_000, 7), straggler
    assert whole['THRD'][9][8] == NOT_CAPTURED
    assert found['OPTS', 0, 2][1] == (START + 10_000, START + 90_000)
    assert found['OPTS', 0, 1][5] == (0, 0)
    assert found['OPPC', 0, 0][3] == (140_000,) and ('OPPC', 1, 0) not in found
    assert found['OPMU', 1, 4][2] == (2, 4)
    assert whole['PORT'][1] == (0, 0, 101, 1, 1, 0, 1000)
    assert whole['BELL'][1] == (1, 100, 3, START + 4000)
    assert whole['DDRT'][0] == (0, 1, 0, 200_000, 135_000)
    assert whole['PMUD'][1] == (0, 13, 9, b'ref-cycles'.ljust(48, b'\0'))
    assert whole['PMUT'][4][2:7] == (2, 0, 200_000, 200_000, 1_000_004) and whole['PMUT'][4][7:] == (NOT_CAPTURED,) * 7
    assert whole['HOST'][0][0] == START - 60_000 and whole['HOST'][0][8] == START + 240_000
    assert whole['FRAM'] == [(0, 0, 12, 400_000_000, 12)]
    assert 'pmu ref-cycles\tperf_event_open refused' in whole['NOCA']
    return 0


sys.exit(main())
