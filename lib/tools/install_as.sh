#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the file $1 as $2 below the prefix: several files of one folder of the build have one name.
set -eu
install -D -m 644 "$1" "$MESON_INSTALL_DESTDIR_PREFIX/$2"
