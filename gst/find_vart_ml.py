#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds AMD's VART-ML where pkg-config does not look: it is a Python wheel, and its vart-ml.pc lies inside site-packages.
Prints a line each: the file, the version, the compiler's flags, the linker's flags. Ends with 1 and one sentence where
there is none.

usage: find_vart_ml.py MINIMUM_VERSION
"""
import glob
import os
import shlex
import subprocess
import sys

MODULE = 'vart-ml'
# Where the file is inside a tree of site-packages, or beside it.
PLACES = ['vart_ml/lib*/pkgconfig', 'vart_ml*/**', '../../pkgconfig', '../../../share/pkgconfig']
# What an interpreter says of itself; it need not be the one that the wheel was installed with.
ASK = ('import site, sysconfig; print(sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), '
       'site.getusersitepackages(), *getattr(site, "getsitepackages", list)(), sep="\\n")')


def asked():
    try:
        answer = subprocess.run(['python3', '-c', ASK], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return answer.stdout.splitlines()


def by_version(path):
    digits = os.path.basename(os.path.dirname(path)).removeprefix('python').split('.')
    return [int(d) if d.isdigit() else 0 for d in digits]


def trees():
    """Trees of packages, the likeliest first, each once. With a sysroot those of the board alone."""
    sysroot = os.environ.get('PKG_CONFIG_SYSROOT_DIR', '').rstrip('/')
    roots = [sysroot + '/usr', sysroot + '/usr/local']
    found = []
    if not sysroot:
        found += asked()
        own = os.environ.get('PYTHONUSERBASE') or os.path.expanduser('~/.local')
        roots = [r for r in (os.environ.get('VIRTUAL_ENV'), own) if r] + roots
    for root in roots:
        for kind in ('site-packages', 'dist-packages'):
            found += sorted(glob.glob(f'{glob.escape(root)}/lib*/python3*/{kind}'), key=by_version, reverse=True)
    return list(dict.fromkeys(os.path.normpath(path) for path in found))


def files_in(tree):
    for place in PLACES:
        yield from sorted(glob.glob(os.path.join(glob.escape(tree), place, MODULE + '.pc'), recursive=True))


def pkg_config(file, *arguments):
    """Asks for the file by its path. A wheel is built elsewhere than it is installed, so a prefix that is not there is that of
    the file's place."""
    command = [*shlex.split(os.environ.get('PKG_CONFIG', 'pkg-config')), *arguments, file]
    environment = dict(os.environ)
    folder = os.path.dirname(file)
    environment['PKG_CONFIG_PATH'] = os.pathsep.join(filter(None, [folder, environment.get('PKG_CONFIG_PATH')]))
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        sys.exit(f'{file}: {" ".join(result.stderr.split())}')
    return result.stdout.strip()


def flags(file):
    prefix = pkg_config(file, '--variable=prefix')
    moved = ['--define-prefix'] if prefix and not os.path.isdir(prefix) else []
    # Installed plugins find the library in its tree, which the dynamic linker does not search.
    libdir = pkg_config(file, *moved, '--variable=libdir')
    sysroot = os.environ.get('PKG_CONFIG_SYSROOT_DIR', '').rstrip('/')
    rpath = [f'-Wl,-rpath,{libdir.removeprefix(sysroot)}'] if libdir else []
    return pkg_config(file, *moved, '--cflags'), ' '.join([pkg_config(file, *moved, '--libs'), *rpath])


def number(version):
    return [int(part) if part.isdigit() else 0 for part in version.split('.')]


def main():
    minimum, looked, old = sys.argv[1], trees(), []
    for tree in looked:
        for file in files_in(tree):
            version = pkg_config(file, '--modversion')
            if number(version) < number(minimum):
                old.append(f'{file} is of version {version}')
                continue
            print(os.path.normpath(file), version, *flags(file), sep='\n')
            return 0
    print(f'-Druntime=vart-ml needs {MODULE}.pc of AMD\'s VART-ML, version {minimum} or later, and found it neither by pkg-config nor in '
          f'{", ".join(looked)}{"".join("; " + o for o in old)}; install the wheel vart_ml, or set PKG_CONFIG_PATH to the folder that '
          f'holds its {MODULE}.pc, or build without the option', file=sys.stderr)
    return 1


sys.exit(main())
