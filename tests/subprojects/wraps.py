#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a wrap lacks its checksum, or provides a name that no meson.build of the project asks for.

usage: wraps.py SOURCE_ROOT
"""
import configparser
import os
import re
import sys


def asked_for(root):
    """Names of dependencies and programs in the meson.build files of the project."""
    names = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ('subprojects', '.git') and not f.startswith('build')]
        if 'meson.build' in files:
            with open(os.path.join(folder, 'meson.build'), encoding='utf-8') as text:
                names |= set(re.findall(r"(?:dependency|find_program)\(\s*'([^']+)'", text.read()))
    return names


def faults_of(path, names):
    wrap = configparser.ConfigParser(interpolation=None)
    wrap.read(path)
    file, provide = wrap['wrap-file'], wrap['provide']
    name = os.path.basename(path)
    if not re.fullmatch(r'[0-9a-f]{64}', file.get('source_hash', '')):
        yield f'{name}: has no source_hash, which is what makes the download the one that was looked at'
    if not file.get('source_url', '').startswith('https://'):
        yield f'{name}: source_url is not https'
    patch = file.get('patch_directory')
    if patch and not os.path.exists(os.path.join(os.path.dirname(path), 'packagefiles', patch, 'meson.build')):
        yield f'{name}: subprojects/packagefiles/{patch}/meson.build is not there'
    provided = set()
    for key, value in provide.items():
        provided |= {v.strip() for v in value.split(',')} if key in ('dependency_names', 'program_names') else {key}
    for one in sorted(provided - {n.lower() for n in names} - names):
        yield f'{name}: provides {one}, which no meson.build asks for'


def main():
    root = sys.argv[1]
    folder = os.path.join(root, 'subprojects')
    wraps = sorted(f for f in os.listdir(folder) if f.endswith('.wrap'))
    names = asked_for(root)
    faults = [fault for wrap in wraps for fault in faults_of(os.path.join(folder, wrap), names)]
    if not wraps:
        faults.append('subprojects: holds no wrap')
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
