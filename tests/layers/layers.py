#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that the layers do not allow, on one that is allowed and not used, on an object that exports or
links what it must not, and where docs/style.md has another table than this one or names a path that is not there.

usage: layers.py SOURCE_ROOT [libvartml.so libvartml-runtime.so [libgstvartml-1.0.so plugin.so ...]]
       layers.py --table                prints the table for docs/style.md
"""
import os
import re
import subprocess
import sys

# Folder: what it is linked into, and the folders or headers of the project that it may include besides itself and lib/include.
LAYERS = {
    'kernels': ('V', []),
    'lib/include': ('', []),
    'lib/base': ('V', ['kernels']),
    'lib/trace': ('V', ['lib/base']),
    'lib/graph': ('V', ['lib/base']),
    'lib/model': ('V', ['lib/graph', 'lib/trace', 'lib/base']),
    'lib/vision': ('V', ['lib/base', 'kernels']),
    'lib/publish': ('V', ['lib/base']),
    'lib/run/exec': ('R', ['lib/graph', 'lib/trace']),
    'lib/run/softnpu': ('R', ['lib/run/exec', 'lib/model', 'lib/graph', 'lib/base', 'kernels']),
    'lib/run/onnxruntime': ('R', ['lib/run/exec', 'lib/graph', 'lib/base']),
    'lib/run': ('R', ['lib/base']),
    'lib/run/memory': ('R', ['lib/base']),
    'lib/run/vart': ('R', ['lib/run/exec', 'lib/run/memory', 'lib/model', 'lib/graph', 'lib/trace', 'lib/base']),
    'lib/compile': ('T', ['lib/vision', 'lib/model', 'lib/graph', 'lib/trace', 'lib/base']),
    'lib/compile/onnx': ('T', ['lib/graph', 'lib/base']),
    'lib/compile/passes': ('T', ['lib/graph']),
    'lib/tools/verify': ('T', ['lib/compile', 'lib/run/onnxruntime', 'lib/vision', 'lib/model', 'lib/graph', 'lib/base']),
    'lib/tools/doctor': ('T', ['lib/run/softnpu/processor.h', 'lib/run/memory/xrt_memory.h', 'lib/vision', 'lib/model', 'lib/trace', 'lib/base']),
    'lib/tools/opstats': ('T', ['lib/trace', 'lib/base']),
    'lib/tools': ('T', ['lib/compile', 'lib/vision/modelinfo.h', 'lib/model', 'lib/graph', 'lib/trace', 'lib/base']),
    'gst/metadata': ('G', []),
    'gst': ('P, X', ['gst/metadata']),
    'pipelines': ('', []),
}

# Third-party header (regular expression): folders or files where it may stand.
THIRD_PARTY = [
    (r'hwy/', [r'kernels/.*(\.cpp|-inl\.h)$']),
    (r'(oneapi/dnnl|dnnl)', ['lib/run/softnpu/']),
    (r'xrt/', ['lib/run/memory/xrt_module.cpp', 'tests/run/xrt/']),
    (r'omp\.h', ['lib/run/softnpu/']),
    (r'flatbuffers/', ['lib/model/']),
    (r'(archive\.h|archive_entry\.h)', ['lib/model/']),
    (r'zlib\.h', ['lib/base/']),
    (r'(onnx/|google/protobuf)', ['lib/compile/onnx/']),
    (r'(onnxruntime)', ['lib/tools/verify/ort.cpp', 'lib/run/onnxruntime/(serve|describe)', 'tests/']),
    (r'CLI/', ['lib/tools/', 'pipelines/']),
    (r'gdk-pixbuf', ['lib/tools/pictures.cpp']),
    (r'nlohmann/', [r'(lib|gst|pipelines)/.*\.cpp$', 'lib/compile/config.h$']),
    (r'(gst/(?!vartml/)|glib)', ['gst/', 'pipelines/']),
    (r'mosquitto', ['lib/publish/mqtt']),
    (r'hiredis/', ['lib/publish/redis']),
    (r'librdkafka/', ['lib/publish/kafka']),
    (r'nats/', ['lib/publish/nats', 'gst/fleet/(store|watch)']),
    (r'xf86drm', ['gst/support/picture_info.cpp', 'tests/vm/']),
    (r'(cairo|pango)', ['gst/overlay/text.cpp']),
    (r'qrencode', ['pipelines/']),
    (r'libsoup', ['pipelines/']),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path):
    best = ''
    for folder in LAYERS:
        if path.startswith(folder + '/') and len(folder) > len(best):
            best = folder
    return best


def table():
    lines = ['| folder | linked into | may include |', '|---|---|---|']
    for folder, (linked, allowed) in LAYERS.items():
        names = ', '.join(f'`{name.removeprefix("lib/")}`' for name in allowed)
        lines.append(f'| `{folder}` | {linked or "–"} | {names or "–"} |')
    return lines


def check_style(root):
    with open(os.path.join(root, 'docs', 'style.md'), encoding='utf-8') as text:
        page = text.read()
    faults = []
    if '\n'.join(table()) not in page:
        faults.append('docs/style.md: its table is not that of tests/layers/layers.py; paste what layers.py --table prints')
    for path in re.findall(r'`((?:kernels|lib|gst|pipelines|tests|docs)/[\w./-]+)`', page):
        if not os.path.exists(os.path.join(root, path)):
            faults.append(f'docs/style.md: names {path}, which is not there')
    return faults


used = set()  # (folder, entry) of the table that an include needs


def check_own(path, folder, target):
    """A private header: by its path from the root."""
    for entry in [*LAYERS[folder][1], folder]:
        if target == entry or target.startswith(entry + '/'):
            used.add((folder, entry))
            return None
    return f'{path}: includes "{target}", which {folder} may not see'


def check_includes(root):
    faults = []
    for top in ('kernels', 'lib', 'gst', 'pipelines'):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for file in files:
                if not file.endswith(('.h', '.hpp', '.cpp')):
                    continue
                path = os.path.relpath(os.path.join(folder, file), root)
                layer = folder_of(path)
                with open(os.path.join(root, path), encoding='utf-8') as text:
                    includes = INCLUDE.findall(text.read())
                for kind, target in includes:
                    if re.match(r'(kernels|lib|gst|pipelines)/', target) and kind == '"':
                        fault = check_own(path, layer, target)
                        if fault:
                            faults.append(fault)
                        continue
                    if layer == 'lib/include' and '/' in target and not target.startswith(('vart/', 'vartml/')):
                        faults.append(f'{path}: a public header includes <{target}>, which is not of the standard library')
                    for pattern, places in THIRD_PARTY:
                        if re.match(pattern, target) and not any(re.match(place, path) for place in places):
                            faults.append(f'{path}: includes <{target}>, allowed only in {", ".join(places)}')
    for folder, (_, allowed) in LAYERS.items():
        for entry in allowed:
            if (folder, entry) not in used:
                faults.append(f'{folder} may include {entry}, and nothing of it does: take it out of the table')
    return faults


def exported(library):
    output = subprocess.run(['nm', '-DC', '--defined-only', library], check=True, capture_output=True, text=True)
    return [line.split(' ', 2)[2] for line in output.stdout.splitlines() if line.count(' ') >= 2]


def needed(library):
    output = subprocess.run(['readelf', '-d', library], check=True, capture_output=True, text=True)
    return re.findall(r'NEEDED.*\[(.*)\]', output.stdout)


def check_metadata(library, plugins):
    """One object has the types of metadata, and whoever writes or reads them links it."""
    faults = []
    for symbol in exported(library):
        if not re.match(r'gst_vartml_|vartml::gst::|GST_VARTML_', symbol):
            faults.append(f'libgstvartml-1.0 exports {symbol}: only what gst/include and gst/metadata declare may leave it')
    for name in needed(library):
        if re.match(r'lib(vartml-runtime|vart-ml|cairo|pango|mosquitto|hiredis|rdkafka)', name):
            faults.append(f'libgstvartml-1.0 links {name}: applications that read metadata need it not')
    for plugin in plugins:
        if not any(name.startswith('libgstvartml-1.0.so') for name in needed(plugin)):
            faults.append(f'{os.path.basename(plugin)} does not link libgstvartml-1.0')
        for symbol in exported(plugin):
            if symbol.startswith(('gst_vartml_', 'vartml::gst::')):
                faults.append(f'{os.path.basename(plugin)} exports {symbol}: nobody links a plugin')
    return faults


def check_objects(vartml, runtime, plugins):
    faults = []
    for symbol in exported(vartml):
        if re.search(r'(^|\s)vart::', symbol):
            faults.append(f'libvartml exports {symbol}: vart belongs to libvartml-runtime')
    for symbol in exported(runtime):
        if not re.search(r'(^|\s)vart::', symbol) and not symbol.startswith('VART_'):
            faults.append(f'libvartml-runtime exports {symbol}: only names of vart may leave it')
    for library in (vartml, runtime, *plugins):
        for name in needed(library):
            if re.match(r'lib(onnx|protobuf|onnxruntime)', name):
                faults.append(f'{os.path.basename(library)} links {name}')
    for library in (vartml, runtime):
        for name in needed(library):
            if re.match(r'lib(mosquitto|hiredis|rdkafka|nats|cairo|pango)', name):
                faults.append(f'{os.path.basename(library)} links {name}: it belongs to libgstvartmlextra.so')
    for plugin in plugins:
        for name in needed(plugin):
            if os.path.basename(plugin) == 'libgstvartml.so' and re.match(r'lib(cairo|pango|mosquitto|hiredis|rdkafka|nats)', name):
                faults.append(f'{os.path.basename(plugin)} links {name}')
            if os.path.basename(plugin) == 'libgstvartmlextra.so' and re.match(r'lib(vartml-runtime|vart-ml)', name):
                faults.append(f'{os.path.basename(plugin)} links {name}: it goes beside either runtime')
    return faults


def main():
    if sys.argv[1:] == ['--table']:
        print('\n'.join(table()))
        return 0
    root, libraries = sys.argv[1], sys.argv[2:]
    faults = check_includes(root) + check_style(root)
    if libraries:
        faults += check_objects(libraries[0], libraries[1], libraries[3:])
    if libraries[2:]:
        faults += check_metadata(libraries[2], libraries[3:])
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
