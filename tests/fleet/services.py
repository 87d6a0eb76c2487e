# SPDX-License-Identifier: Apache-2.0
"""What starts workers as a service (packaging/fleet): read by a parser, and each command run beside a real nats-server.

usage: services.py NATS_SERVER VARTML FOLDER"""
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from ports import free_port  # noqa: E402

SERVER, VARTML, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


def of_systemd():
    lines = (FOLDER / 'vartml-worker.env').read_text().splitlines()
    environment = dict(line.split('=', 1) for line in lines if line and not line.startswith('#'))
    unit = (FOLDER / 'vartml-worker.service').read_text()
    [start] = [line.split('=', 1)[1] for line in unit.splitlines() if line.startswith('ExecStart=')]
    # given, systemd.service(5): ${NAME} as a word of its own is one argument, blanks or not
    words = [environment[word[2:-1]] if word.startswith('${') else word for word in shlex.split(start)]
    return words, environment


def of_compose():
    worker = yaml.safe_load((FOLDER / 'compose.yaml').read_text())['services']['worker']
    return worker['command'], worker['environment']


def of_kubernetes():
    deployment = yaml.safe_load((FOLDER / 'kubernetes.yaml').read_text())
    template = deployment['spec']['template']
    assert deployment['spec']['selector']['matchLabels'].items() <= template['metadata']['labels'].items()
    [container] = template['spec']['containers']
    assert {mount['name'] for mount in container['volumeMounts']} == {volume['name'] for volume in template['spec']['volumes']}
    return container['args'], {entry['name']: entry['value'] for entry in container['env']}


def of_nomad():
    [group] = json.loads((FOLDER / 'nomad.json').read_text())['Job']['TaskGroups']
    [task] = group['Tasks']
    assert {mount['Volume'] for mount in task['VolumeMounts']} == group['Volumes'].keys()
    return [task['Config']['command'], *task['Config']['args']], task['Env']


class Services(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.port, self.health = free_port(), free_port()
        self.broker = subprocess.Popen([SERVER, '-js', '-sd', self.dir.name, '-a', '127.0.0.1', '-p', str(self.port)],
                                       stderr=subprocess.DEVNULL)

    def tearDown(self):
        self.broker.kill()
        self.broker.wait()
        self.dir.cleanup()

    def wait_until_ready(self):
        for _ in range(1200):  # a machine may be busy
            try:
                with urllib.request.urlopen(f'http://127.0.0.1:{self.health}/readyz') as answer:
                    return answer.status
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        return None

    def works(self, words, environment):
        """The command as it stands, but for this machine's addresses."""
        self.assertEqual(pathlib.Path(words[0]).name, 'vartml')
        words = [VARTML, *words[1:]]
        words[words.index('--health') + 1] = f'127.0.0.1:{self.health}'
        environment = {**os.environ, **environment, 'NATS_URL': f'nats://127.0.0.1:{self.port}'}
        environment.pop('NATS_CREDS', None)  # a file of a cluster
        worker = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
        try:
            self.assertEqual(self.wait_until_ready(), 200)
            worker.send_signal(signal.SIGTERM)
            self.assertEqual(worker.wait(30), 0)
        finally:
            worker.kill()
            worker.wait()

    def test_the_unit_of_systemd_starts_a_worker(self):
        self.works(*of_systemd())

    def test_the_compose_file_starts_a_worker(self):
        self.works(*of_compose())

    def test_the_deployment_of_kubernetes_starts_a_worker(self):
        self.works(*of_kubernetes())

    def test_the_job_of_nomad_starts_a_worker(self):
        self.works(*of_nomad())

    def test_a_server_that_is_not_there_is_named_as_the_environment_has_it(self):
        nobody = f'127.0.0.1:{free_port()}'
        environment = {**os.environ, 'NATS_URL': f'nats://{nobody}'}
        ended = subprocess.run([VARTML, 'cameras', 'list'], env=environment, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(nobody, ended.stderr)

    def test_a_program_that_is_not_there_is_named_with_what_builds_it(self):
        alone = pathlib.Path(self.dir.name) / 'vartml'
        shutil.copy(VARTML, alone)
        libraries = pathlib.Path(VARTML).parent.parent
        ended = subprocess.run([alone, 'cameras', 'list'], capture_output=True, text=True,
                               env={**os.environ, 'LD_LIBRARY_PATH': str(libraries)})
        self.assertEqual(ended.returncode, 1)
        self.assertIn('vartml-worker is not beside', ended.stderr)
        self.assertIn('-Dnats=enabled', ended.stderr)
        self.assertIn('plugins', ended.stderr)

    @unittest.skipUnless(shutil.which('systemd-analyze'), 'systemd-analyze is not installed')
    def test_systemd_takes_the_unit(self):
        unit = pathlib.Path(self.dir.name) / 'vartml-worker.service'
        unit.write_text((FOLDER / 'vartml-worker.service').read_text().replace('/usr/bin/vartml', VARTML))
        ended = subprocess.run(['systemd-analyze', 'verify', '--man=no', unit], capture_output=True, text=True)
        own = [line for line in ended.stderr.splitlines() if 'vartml-worker' in line]
        self.assertEqual(own, [])


unittest.main(argv=[sys.argv[0], '-v'])
