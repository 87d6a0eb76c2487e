#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Debian packages of a folder are and need, as an SPDX 2.3 document on standard output.

usage: sbom.py FOLDER CREATED      CREATED in seconds since 1970, so that equal packages give equal bytes

Needs are those that a package names as Depends, each with the version that it was built against, where that is installed here.
"""
import hashlib
import json
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote


def fields_of(deb):
    """The control fields of a package, as text by name."""
    text = subprocess.run(['dpkg-deb', '--field', deb], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r'^([\w-]+): *(.*(?:\n .*)*)', text, re.MULTILINE))


def installed_version(name, architecture):
    for known in (f'{name}:{architecture}', f'{name}:all'):
        done = subprocess.run(['dpkg-query', '--show', '--showformat=${Version}', known], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout:
            return done.stdout
    return None


def identifier(name):
    return 'SPDXRef-' + re.sub(r'[^A-Za-z0-9.-]', '-', name)


def package(name, version, architecture, **more):
    url = f'pkg:deb/debian/{name}' + (f'@{quote(version, safe=":~")}' if version else '') + f'?arch={architecture}'
    return {'SPDXID': identifier(name), 'name': name, **({'versionInfo': version} if version else {}),
            'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False, 'licenseConcluded': 'NOASSERTION',
            'licenseDeclared': 'NOASSERTION', 'copyrightText': 'NOASSERTION',
            'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl', 'referenceLocator': url}], **more}


def document(folder, created):
    packages, relations, needed = {}, [], set()
    for deb in sorted(folder.glob('*.deb')):
        control = fields_of(deb)
        name = control['Package']
        packages[name] = package(name, control['Version'], control['Architecture'], licenseConcluded='Apache-2.0',
                                 licenseDeclared='Apache-2.0', packageFileName=deb.name,
                                 checksums=[{'algorithm': 'SHA256', 'checksumValue': hashlib.sha256(deb.read_bytes()).hexdigest()}])
        relations.append(('SPDXRef-DOCUMENT', 'DESCRIBES', identifier(name)))
        for need in re.split(r'[,|]', control.get('Depends', '')):
            if other := re.match(r'\s*([a-z0-9][a-z0-9+.-]*)', need):
                needed.add((other[1], control['Architecture']))
                relations.append((identifier(name), 'DEPENDS_ON', identifier(other[1])))
    if not packages:
        sys.exit(f'sbom.py: {folder}: holds no .deb')
    for name, architecture in sorted(needed):
        if name not in packages:
            packages[name] = package(name, installed_version(name, architecture), architecture)
    content = {
        'packages': sorted(packages.values(), key=lambda row: row['SPDXID']),
        'relationships': [{'spdxElementId': a, 'relationshipType': kind, 'relatedSpdxElement': b} for a, kind, b in sorted(set(relations))],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return {'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': 'gst-vartml',
            'documentNamespace': f'https://spdx.org/spdxdocs/gst-vartml-{digest}',
            'creationInfo': {'created': datetime.fromtimestamp(created, timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'),
                             'creators': ['Tool: gst-vartml-sbom']}, **content}


def main():
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit('usage: sbom.py FOLDER CREATED')
    print(json.dumps(document(Path(sys.argv[1]), int(sys.argv[2])), indent=1))


main()
