#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The list of what packages need, of a package made here.

usage: sbom.py PROJECT
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(sys.argv[1], 'packaging', 'sbom.py')
CONTROL = """Package: libvartml1
Version: 1.0+2-1
Architecture: ARCHITECTURE
Maintainer: nobody <nobody@example.org>
Description: a test
Depends: libc6 (>= 2.36),
 no-such-package | vartml
"""


@unittest.skipUnless(shutil.which('dpkg-deb'), 'there is no dpkg')
class Sbom(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name

    def made(self):
        return subprocess.run([sys.executable, SCRIPT, self.folder, '0'], capture_output=True, text=True, check=False)

    def build(self, architecture):
        """A package; its path."""
        os.makedirs(os.path.join(self.folder, 'tree', 'DEBIAN'), exist_ok=True)
        with open(os.path.join(self.folder, 'tree', 'DEBIAN', 'control'), 'w', encoding='utf-8') as f:
            f.write(CONTROL.replace('ARCHITECTURE', architecture))
        deb = os.path.join(self.folder, 'a.deb')
        subprocess.run(['dpkg-deb', '--root-owner-group', '--build', os.path.join(self.folder, 'tree'), deb], check=True,
                       stdout=subprocess.DEVNULL)
        return deb

    def test_packages_what_they_need_and_their_checksums(self):
        host = subprocess.run(['dpkg', '--print-architecture'], capture_output=True, text=True, check=True).stdout.strip()
        deb = self.build(host)
        text = self.made().stdout
        self.assertEqual(text, self.made().stdout, 'equal packages give equal bytes')
        found = json.loads(text)
        packages = {row['name']: row for row in found['packages']}
        self.assertEqual(set(packages), {'libvartml1', 'libc6', 'no-such-package', 'vartml'})
        with open(deb, 'rb') as f:
            self.assertEqual(packages['libvartml1']['checksums'][0]['checksumValue'], hashlib.sha256(f.read()).hexdigest())
        self.assertEqual(packages['libvartml1']['externalRefs'][0]['referenceLocator'], f'pkg:deb/debian/libvartml1@1.0%2B2-1?arch={host}')
        self.assertIn('versionInfo', packages['libc6'])
        self.assertNotIn('versionInfo', packages['no-such-package'])
        known = {row['SPDXID'] for row in found['packages']} | {'SPDXRef-DOCUMENT'}
        for row in found['relationships']:
            self.assertLessEqual({row['spdxElementId'], row['relatedSpdxElement']}, known)
        self.assertEqual(found['creationInfo']['created'], '1970-01-01T00:00:00Z')

    def test_versions_of_this_machine_are_not_those_of_another(self):
        self.build('another')
        packages = {row['name']: row for row in json.loads(self.made().stdout)['packages']}
        self.assertNotIn('versionInfo', packages['libc6'])

    def test_a_folder_without_packages_is_refused(self):
        done = self.made()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('holds no .deb', done.stderr)


unittest.main(argv=[sys.argv[0]])
