#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that the layers do not allow, and on an object that exports or links what it must not.

usage: layers.py SOURCE_ROOT [libvartml.so libvartml-runtime.so [plugin.so ...]]
The tables below are section 3 of docs/style.md.
"""
import os
import re
import subprocess
import sys

# Folder: folders of the project that it may include besides itself and lib/include.
MAY_INCLUDE = {
    'kernels': [],
    'lib/include': [],
    'lib/common': [],
    'lib/graph': ['lib/common'],
    'lib/profiling': ['lib/common'],
    'lib/tensor': ['lib/common', 'kernels'],
    'lib/artifact': ['lib/graph', 'lib/common', 'lib/profiling'],
    'lib/vision': ['lib/artifact', 'lib/tensor', 'kernels', 'lib/common'],
    'lib/publish': ['lib/common'],
    'lib/cpu': ['lib/graph', 'lib/tensor', 'lib/profiling', 'kernels', 'lib/common'],
    'lib/device': ['lib/graph', 'lib/cpu', 'lib/tensor', 'lib/artifact', 'lib/profiling', 'lib/common'],
    'lib/device/softnpu': ['lib/device', 'lib/graph', 'lib/cpu', 'lib/tensor', 'lib/artifact', 'lib/profiling', 'lib/common',
                           'kernels'],
    'lib/device/onnxruntime': ['lib/device', 'lib/graph', 'lib/cpu', 'lib/common'],
    'lib/runtime': ['lib/artifact', 'lib/tensor', 'lib/device', 'lib/cpu', 'lib/profiling', 'lib/common',
                    'lib/graph/graph.h'],
    'lib/onnx': ['lib/graph', 'lib/cpu', 'lib/common'],
    'lib/compiler': ['lib/graph', 'lib/onnx', 'lib/tensor', 'lib/artifact', 'lib/vision', 'lib/cpu', 'lib/common', 'lib/profiling',
                     'lib/device/target.h'],
    'lib/verify': ['lib/compiler', 'lib/vision', 'lib/tensor', 'lib/artifact', 'lib/graph/graph.h', 'lib/common',
                   'lib/device/onnxruntime/serve.h', 'lib/device/onnxruntime/describe.h'],
    'lib/doctor': ['lib/device', 'lib/artifact', 'lib/vision', 'lib/profiling', 'lib/common'],
    'lib/tools': ['lib/tensor', 'lib/compiler/compile.h', 'lib/compiler/config.h', 'lib/verify/verify.h', 'lib/verify/report.h', 'lib/verify/compare.h',
                  'lib/verify/collection.h', 'lib/verify/collection_report.h', 'lib/verify/computed.h',
                  'lib/verify/folder_check.h', 'lib/doctor/doctor.h', 'lib/artifact',
                  'lib/common', 'lib/graph', 'lib/onnx', 'lib/profiling', 'lib/runtime/inspect.h'],
    'gst': [],
    'pipelines': [],
}

# Third-party header (regular expression): folders or files where it may stand.
THIRD_PARTY = [
    (r'hwy/', [r'kernels/.*(\.cpp|-inl\.h)$']),
    (r'(oneapi/dnnl|dnnl)', ['lib/cpu/', 'lib/device/softnpu/']),
    (r'omp\.h', ['lib/cpu/', 'lib/device/softnpu/']),
    (r'flatbuffers/', ['lib/artifact/']),
    (r'(archive\.h|archive_entry\.h|gelf\.h|libelf\.h)', ['lib/artifact/']),
    (r'(onnx/|google/protobuf)', ['lib/onnx/']),
    (r'(onnxruntime)', ['lib/verify/ort.cpp', 'lib/device/onnxruntime/(serve|describe)', 'tests/']),
    (r'CLI/', ['lib/tools/', 'pipelines/']),
    (r'gdk-pixbuf', ['lib/tools/pictures.cpp']),
    (r'nlohmann/', [r'(lib|gst|pipelines)/.*\.cpp$', r'lib/compiler/config_\w+\.h$']),
    (r'(gst/(?!vartml/)|glib)', ['gst/', 'pipelines/']),
    (r'xrt/', ['lib/device/xrt/']),
    (r'mosquitto', ['lib/publish/mqtt']),
    (r'(cairo|pango)', ['gst/overlay/text.cpp']),
    (r'qrencode', ['pipelines/']),
    (r'libsoup', ['pipelines/']),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path):
    best = ''
    for folder in MAY_INCLUDE:
        if path.startswith(folder + '/') and len(folder) > len(best):
            best = folder
    return best


def check_own(path, folder, target):
    """A private header: by its path from the root."""
    if folder in ('gst', 'pipelines'):
        allowed = [folder]
    else:
        allowed = [folder, *MAY_INCLUDE[folder]]
    for entry in allowed:
        if target == entry or target.startswith(entry + '/'):
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
    return faults


def exported(library):
    output = subprocess.run(['nm', '-DC', '--defined-only', library], check=True, capture_output=True, text=True)
    return [line.split(' ', 2)[2] for line in output.stdout.splitlines() if line.count(' ') >= 2]


def needed(library):
    output = subprocess.run(['readelf', '-d', library], check=True, capture_output=True, text=True)
    return re.findall(r'NEEDED.*\[(.*)\]', output.stdout)


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
            if re.match(r'lib(mosquitto|cairo|pango)', name):
                faults.append(f'{os.path.basename(library)} links {name}: it belongs to libgstvartmlextra.so')
    for plugin in plugins:
        for name in needed(plugin):
            if os.path.basename(plugin) == 'libgstvartml.so' and re.match(r'lib(cairo|pango|mosquitto)', name):
                faults.append(f'{os.path.basename(plugin)} links {name}')
            if os.path.basename(plugin) == 'libgstvartmlextra.so' and re.match(r'lib(vartml-runtime|vart-ml)', name):
                faults.append(f'{os.path.basename(plugin)} links {name}: it goes beside either runtime')
    return faults


def main():
    root, libraries = sys.argv[1], sys.argv[2:]
    faults = check_includes(root)
    if libraries:
        faults += check_objects(libraries[0], libraries[1], libraries[2:])
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
