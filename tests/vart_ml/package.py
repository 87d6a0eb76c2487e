#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configures the project with -Druntime=vart-ml where the stand-in of AMD's runtime lies as the wheel does, inside a tree of Python
packages that pkg-config does not search; then where it lies nowhere, is too old, or was built with another prefix.

usage: package.py SOURCE_ROOT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

# The prefix is where the wheel was built.
PC = """prefix={prefix}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: vart-ml
Description: stand-in
Version: {version}
Libs: -L${{libdir}} -lvart-ml
Cflags: -I${{includedir}}
"""


def wheel(root, base, version='0.3.0', prefix=None):
    package = os.path.join(base, 'lib', 'python3.12', 'site-packages', 'vart_ml')
    folder = os.path.join(package, 'lib', 'pkgconfig')
    os.makedirs(folder)
    shutil.copytree(os.path.join(root, 'tests', 'vart_ml', 'include'), os.path.join(package, 'include'))
    with open(os.path.join(package, 'lib', 'libvart-ml.so'), 'wb'):
        pass
    with open(os.path.join(folder, 'vart-ml.pc'), 'w', encoding='utf-8') as file:
        file.write(PC.format(prefix=prefix or package, version=version))
    return package


def environment(base):
    env = {k: v for k, v in os.environ.items() if k not in ('PKG_CONFIG_PATH', 'VIRTUAL_ENV', 'PKG_CONFIG_SYSROOT_DIR')}
    return {**env, 'PYTHONUSERBASE': base}


def find(root, base):
    return subprocess.run([sys.executable, os.path.join(root, 'gst', 'find_vart_ml.py'), '0.1'],
                          capture_output=True, text=True, env=environment(base))


def configured(root, folder, package):
    """The whole project, whose plugins must see the package's headers and find its library when they are installed."""
    build = os.path.join(folder, 'build')
    setup = subprocess.run(['meson', 'setup', build, root, '-Druntime=vart-ml', '-Dtests=disabled', '-Dtools=disabled'],
                           capture_output=True, text=True, env=environment(os.path.join(folder, 'here')))
    if setup.returncode != 0:
        yield f'meson setup: {setup.stdout[-2000:]} {setup.stderr[-2000:]}'
        return
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        lines = [c['command'] for c in json.load(file) if c['file'].endswith('runtime_vart_ml.cpp')]
    if not lines or not all(f'-I{package}/include' in line for line in lines):
        yield f'runtime_vart_ml.cpp is compiled by {lines}, without -I{package}/include'
    with open(os.path.join(build, 'build.ninja'), encoding='utf-8') as file:
        ninja = file.read()
    if f'-Wl,-rpath,{package}/lib' not in ninja:
        yield f'nothing is linked with -Wl,-rpath,{package}/lib'


def faults(root, folder):
    nowhere = find(root, os.path.join(folder, 'nowhere'))
    if nowhere.returncode == 0:
        print('skipped: VART-ML is installed on this machine')
        sys.exit(77)
    for text in ('vart-ml.pc', 'site-packages', 'install the wheel vart_ml', 'PKG_CONFIG_PATH'):
        if text not in nowhere.stderr:
            yield f'the sentence for none lacks "{text}": {nowhere.stderr}'

    wheel(root, os.path.join(folder, 'old'), version='0.0.9')
    old = find(root, os.path.join(folder, 'old'))
    if old.returncode == 0 or 'is of version 0.0.9' not in old.stderr:
        yield f'one that is too old: {old.stdout} {old.stderr}'

    package = wheel(root, os.path.join(folder, 'moved'), prefix='/build/of/the/wheel')
    moved = find(root, os.path.join(folder, 'moved'))
    if f'-L{package}/lib' not in moved.stdout or f'-I{package}/include' not in moved.stdout:
        yield f'one that was built with another prefix: {moved.stdout} {moved.stderr}'

    yield from configured(root, folder, wheel(root, os.path.join(folder, 'here')))


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = list(faults(sys.argv[1], os.path.realpath(folder)))
    for fault in found:
        print(fault)
    return 1 if found else 0


sys.exit(main())
