#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a C++ source that holds the given files, so that the program does not need them.

usage: embed.py FILE.json...
"""
import os
import sys

print('// Made by lib/model/targets/embed.py.\n#include "lib/model/target.h"\n')
print('namespace vartml::device {\nnamespace {\nconstexpr TargetFile files[] = {')
for path in sys.argv[1:]:
    name = os.path.splitext(os.path.basename(path))[0]
    with open(path, encoding='utf-8') as file:
        print(f'    {{"{name}", R"json({file.read()})json"}},')
print('};\n}  // namespace\nstd::span<const TargetFile> target_files() {\n    return files;\n}')
print('}  // namespace vartml::device')
