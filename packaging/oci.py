#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an image of a root: one file that podman, skopeo and docker load, an archive in OCI layout that has Docker's
manifest.json too. No daemon and no program of theirs is needed, and equal roots give equal bytes.

usage: oci.py ROOT.tar IMAGE.tar NAME:TAG ARCHITECTURE SECONDS_SINCE_1970
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time

LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip'
CONFIG = 'application/vnd.oci.image.config.v1+json'
MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
INDEX = 'application/vnd.oci.image.index.v1+json'


def digest(file):
    file.seek(0)
    return 'sha256:' + hashlib.file_digest(file, 'sha256').hexdigest()


def as_json(value):
    return io.BytesIO(json.dumps(value, sort_keys=True, separators=(',', ':')).encode())


class Image:
    def __init__(self, path, seconds):
        self.tar = tarfile.open(path, 'w', format=tarfile.PAX_FORMAT)
        self.seconds = seconds

    def add(self, name, file):
        entry = tarfile.TarInfo(name)
        entry.size = file.seek(0, os.SEEK_END)
        entry.mtime = self.seconds
        file.seek(0)
        self.tar.addfile(entry, file)

    def add_blob(self, kind, file):
        """The descriptor by which others name it."""
        name = digest(file)
        self.add('blobs/' + name.replace(':', '/'), file)
        return {'mediaType': kind, 'digest': name, 'size': file.seek(0, os.SEEK_END)}


def main():
    root, out, name, architecture, seconds = sys.argv[1:]
    created = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(int(seconds)))
    image = Image(out, int(seconds))
    with open(root, 'rb') as plain, tempfile.TemporaryFile(dir=os.path.dirname(out)) as packed:
        with gzip.GzipFile(filename='', fileobj=packed, mode='wb', compresslevel=6, mtime=0) as writer:
            shutil.copyfileobj(plain, writer, 1 << 20)
        layer = image.add_blob(LAYER, packed)
        plain_digest = digest(plain)
    config = image.add_blob(CONFIG, as_json({
        'architecture': architecture, 'os': 'linux', 'created': created,
        'config': {
            # Whoever the user is: what is compiled and scanned once is kept in a folder that all may write.
            'Env': ['PATH=/usr/local/bin:/usr/bin:/bin', 'LANG=C.UTF-8', 'XDG_CACHE_HOME=/tmp'],
            'Cmd': ['bash'], 'WorkingDir': '/work',
        },
        'rootfs': {'type': 'layers', 'diff_ids': [plain_digest]},
        'history': [{'created': created, 'created_by': 'gst-vartml: ./dev package'}],
    }))
    manifest = image.add_blob(MANIFEST, as_json({'schemaVersion': 2, 'mediaType': MANIFEST, 'config': config, 'layers': [layer]}))
    manifest |= {'annotations': {'org.opencontainers.image.ref.name': name.split(':')[1], 'io.containerd.image.name': name},
                 'platform': {'architecture': architecture, 'os': 'linux'}}
    image.add('index.json', as_json({'schemaVersion': 2, 'mediaType': INDEX, 'manifests': [manifest]}))
    image.add('oci-layout', as_json({'imageLayoutVersion': '1.0.0'}))
    paths = ['blobs/' + part['digest'].replace(':', '/') for part in (config, layer)]
    image.add('manifest.json', as_json([{'Config': paths[0], 'RepoTags': [name], 'Layers': paths[1:]}]))
    image.tar.close()


main()
