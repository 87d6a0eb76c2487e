# SPDX-License-Identifier: Apache-2.0
"""What an installation takes on the disk: what `meson install` would write, stripped as packages have it."""
import json
import os
import subprocess


def files_below(place):
    if not os.path.isdir(place):
        return [place]
    return [os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names]


def installed_bytes(build, work):
    text = subprocess.run(['meson', 'introspect', '--installed', build], stdout=subprocess.PIPE, text=True, check=True).stdout
    total, copy = 0, os.path.join(work, 'stripped')
    for place in json.loads(text):
        if not os.path.isabs(place):  # a link
            continue
        for source in files_below(place):
            done = subprocess.run(['strip', '--strip-unneeded', '-o', copy, source], stderr=subprocess.DEVNULL, check=False)
            total += os.path.getsize(copy if done.returncode == 0 else source)
    return total


def bench_installed(bench, work):
    if bench.wants('live/installed'):
        bench.add('live/installed', 'MiB', installed_bytes(bench.build, work) / 2**20, None, None, None, 'max')
