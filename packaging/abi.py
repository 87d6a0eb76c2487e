#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the interface of libraries with that of the last release, which lies in packaging/abi, a description for each soname.

usage: abi.py compare|describe FOLDER DEBUG LIBRARY...
    FOLDER holds the descriptions (SONAME.abi.xz); `describe` writes them anew.
    DEBUG is where the libraries' symbols for debuggers lie, such as /usr/lib/debug.
"""
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

WAY_OUT = ('Let what was there be as it was and add what is new beside it; or give the library the next soname, its packages the name '
           'of that, and the project the next first number of its version.')


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


def soname(library):
    found = re.search(r'SONAME.*\[(.*)\]', run('readelf', '-d', library).stdout)
    if not found:
        sys.exit(f'abi: {library} is no library with a soname')
    return found[1]


def left_out(root):
    """Elements of symbols that only libraries, programs and plugins of the same version use, and of inline functions, of which each
    object has its own."""
    weak = {e.attrib['name'] for e in root.iter('elf-symbol') if e.attrib.get('binding') == 'weak-binding'}
    for element in root.iter():
        symbol = element.attrib.get('elf-symbol-id') or (element.tag == 'elf-symbol' and element.attrib.get('version')) or ''
        if '_PRIVATE_' in symbol or symbol.split('@')[0] in weak or (element.tag == 'elf-symbol' and element.attrib['name'] in weak):
            yield element


def public(text):
    """The description of what applications see, without types that it does not need, which would be most of it."""
    root = ET.fromstring(text)
    gone = set(left_out(root))
    for parent in list(root.iter()):
        for element in [e for e in parent if e in gone]:
            parent.remove(element)
    defined = {}
    for element in root.iter():
        if 'id' in element.attrib:
            defined.setdefault(element.attrib['id'], []).append(element)
    needed, todo = set(), [e for e in root.iter() if 'elf-symbol-id' in e.attrib]
    while todo:
        for element in todo.pop().iter():
            for key in ('type-id', 'naming-typedef-id', 'def-of-decl-id'):
                name = element.attrib.get(key)
                if name and name not in needed:
                    needed.add(name)
                    todo += defined.get(name, [])
    for unit in root.findall('abi-instr'):
        prune(unit, needed)
    for symbols in root.findall('undefined-elf-function-symbols') + root.findall('undefined-elf-variable-symbols'):
        root.remove(symbols)
    return ET.tostring(root, encoding='unicode') + '\n'


def holds(element, needed):
    return any('elf-symbol-id' in e.attrib or e.attrib.get('id') in needed for e in element.iter())


def prune(scope, needed):
    for element in list(scope):
        if element.tag == 'namespace-decl':
            prune(element, needed)
        if not holds(element, needed):
            scope.remove(element)


def description(debug, library):
    with tempfile.TemporaryDirectory() as work:
        done = run('abidw', '--debug-info-dir', debug, '--no-architecture',
                   '--no-corpus-path', '--no-comp-dir-path', '--no-show-locs', '--no-elf-needed', '--no-parameter-names',
                   '--type-id-style', 'hash', '--out-file', f'{work}/abi', library)
        if done.returncode:
            sys.exit(f'abi: abidw does not read {library}: {done.stderr}')
        text = public(pathlib.Path(work, 'abi').read_text(encoding='utf-8'))
    if '<function-decl' not in text:
        sys.exit(f'abi: {library} has no symbols for debuggers, neither itself nor in {debug}, and without them no types')
    return text


def describe(folder, debug, libraries):
    for stored in folder.glob('*.abi.xz'):
        stored.unlink()
    for library in libraries:
        stored = folder / f'{soname(library)}.abi.xz'
        stored.write_bytes(lzma.compress(description(debug, library).encode(), preset=9 | lzma.PRESET_EXTREME))
        print(f'abi: {stored.name} has {stored.stat().st_size} bytes')
    return 0


def compare(folder, debug, libraries):
    now, faults = {soname(library): library for library in libraries}, 0
    for stored in sorted(folder.glob('*.abi.xz')):
        name = stored.name.removesuffix('.abi.xz')
        if name not in now:
            print(f'abi: no library has the soname {name} any more; if that is meant, delete {stored.name}')
            faults += 1
            continue
        with tempfile.TemporaryDirectory() as work:
            before, after = pathlib.Path(work, 'before.abi'), pathlib.Path(work, 'after.abi')
            before.write_bytes(lzma.decompress(stored.read_bytes()))
            after.write_text(description(debug, now.pop(name)), encoding='utf-8')
            done = run('abidiff', '--no-added-syms', before, after)
        if done.returncode:
            print(f'{done.stdout}{done.stderr}abi: {name} is not what applications of the last release were linked with, as above. '
                  f'{WAY_OUT}')
            faults += 1
    for name in now:
        print(f'abi: {name} is in no release so far')
    if not faults:
        print('abi: interfaces as in the last release, or more')
    return 1 if faults else 0


def main():
    verb, folder, debug, libraries = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
    return {'describe': describe, 'compare': compare}[verb](folder, debug, libraries)


sys.exit(main())
