#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a C++ source that holds the given files, so that the program does not need them.

usage: embed.py HEADER NAMESPACE FUNCTION FILE...
HEADER declares `std::span<const EmbeddedFile> FUNCTION();` in NAMESPACE.
"""
import os
import sys

header, namespace, function, *paths = sys.argv[1:]
print(f'// Made by lib/base/embed.py.\n#include "{header}"\n')
print(f'namespace {namespace} {{\nnamespace {{\nconstexpr EmbeddedFile files[] = {{')
for path in paths:
    name = os.path.splitext(os.path.basename(path))[0]
    with open(path, encoding='utf-8') as file:
        print(f'    {{"{name}", R"embedded({file.read()})embedded"}},')
print(f'}};\n}}  // namespace\nstd::span<const EmbeddedFile> {function}() {{\n    return files;\n}}')
print(f'}}  // namespace {namespace}')
