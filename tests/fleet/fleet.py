# SPDX-License-Identifier: Apache-2.0
"""Workers on a real nats-server: whatever is killed, stopped or restarted, a camera has one owner at most.

usage: fleet.py NATS_SERVER VARTML_WORKER VARTML RTSP_CAMERA MODEL.onnx [test...]"""
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

import browser  # noqa: E402
from ports import free_port  # noqa: E402

SERVER, WORKER, VARTML, CAMERA, MODEL = sys.argv[1:6]
TTL = 2
PASSWORD = 'Geheim77'


class Line:
    """Between a worker and the broker. Cut, it carries nothing more, and nobody is told: a network that broke."""

    def __init__(self, port):
        self.to, self.cut = port, False
        self.listen = socket.create_server(('127.0.0.1', 0))
        self.port = self.listen.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listen.accept()[0]
            try:
                server = socket.create_connection(('127.0.0.1', self.to))
            except OSError:
                client.close()
                continue
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, target):
        try:
            while data := source.recv(65536):
                while self.cut:
                    time.sleep(0.05)
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Reader:
    """Looks at what a stream keeps, by NATS's own protocol."""

    def __init__(self, port, stream):
        self.stream = stream
        self.connection = socket.create_connection(('127.0.0.1', port))
        self.lines = self.connection.makefile('rb')
        self.connection.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB answers answers\r\nSUB records records\r\n')
        self.came = {'answers': [], 'records': []}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.connection.close()

    def message(self, which):
        while not self.came[which]:
            words = self.lines.readline().split()
            if words[0] == b'PING':
                self.connection.sendall(b'PONG\r\n')
            elif words[0] in (b'MSG', b'HMSG'):
                head = int(words[-2]) if words[0] == b'HMSG' else 0
                self.came[words[2].decode()].append(json.loads(self.lines.read(int(words[-1]) + 2)[head:-2]))
        return self.came[which].pop(0)

    def ask(self, what, **request):
        text = json.dumps(request)
        self.connection.sendall(f'PUB $JS.API.{what}.{self.stream} answers {len(text)}\r\n{text}\r\n'.encode())
        return self.message('answers')

    def counts(self):
        """Subject: messages. Empty where there is no such stream yet."""
        return self.ask('STREAM.INFO', subjects_filter='>').get('state', {}).get('subjects') or {}

    def all(self):
        count = self.ask('STREAM.INFO')['state']['messages']
        self.ask('CONSUMER.CREATE', stream_name=self.stream,
                 config={'deliver_subject': 'records', 'ack_policy': 'none', 'deliver_policy': 'all'})
        return [self.message('records') for _ in range(count)]


class Fleet(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.dir.name)
        self.log = self.folder / 'log'
        self.log.touch()
        self.port = free_port()
        self.workers = {}
        self.broker = None
        self.start_broker()

    def tearDown(self):
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        self.stop_broker(signal.SIGKILL)
        self.dir.cleanup()

    def start_broker(self):
        self.broker = subprocess.Popen([SERVER, '-js', '-sd', self.folder / 'nats', '-a', '127.0.0.1', '-p', str(self.port)],
                                       stderr=subprocess.DEVNULL)
        while True:
            try:
                with socket.create_connection(('127.0.0.1', self.port)) as s:
                    if s.recv(4).startswith(b'INFO'):
                        return
            except OSError:
                pass

    def stop_broker(self, number=signal.SIGTERM):
        self.broker.send_signal(number)
        self.broker.wait()

    def request(self, **more):
        return json.dumps({'nats': f'nats://127.0.0.1:{self.port}', **more})

    def start(self, name, capacity=100, **more):
        program = more.pop('program', ['sh', '-c', 'read camera; exec sleep 1000'])
        stderr = more.pop('stderr', None)
        with open(self.log, 'ab') as log:
            self.workers[name] = subprocess.Popen(
                [WORKER, self.request(command='worker', name=name, capacity=capacity, ttl_ms=TTL * 1000, program=program, **more)],
                stdout=log, stderr=stderr)
        return self.workers[name]

    def cameras(self, action, name='', **more):
        return subprocess.run([WORKER, self.request(command='cameras', action=action, name=name, **more)],
                              capture_output=True, text=True)

    def add(self, count, uri='rtsp://viewer:' + PASSWORD + '@10.0.0.1/{}'):
        lines = [json.dumps({'camera': f'c{i}', 'uri': uri.format(i)}) for i in range(count)]
        (self.folder / 'list').write_text('\n'.join(lines))
        done = self.cameras('import', str(self.folder / 'list'))
        self.assertEqual(done.returncode, 0, done.stderr)

    def put(self, bucket, key, value):
        """What any client of the broker may write."""
        subject, text = f'$KV.{bucket}.{key}', json.dumps(value)
        with socket.create_connection(('127.0.0.1', self.port)) as s:
            s.sendall(f'CONNECT {{"verbose":false}}\r\nPUB {subject} {len(text)}\r\n{text}\r\nPING\r\n'.encode())
            answers = b''
            while b'PONG' not in answers:
                answers += s.recv(4096)

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def owners(self):
        """Camera: the workers whose program runs for it, as the guards saw it."""
        now = {}
        for e in self.events():
            if e['event'] == 'start':
                now.setdefault(e['camera'], []).append((e['worker'], e['epoch']))
            if e['event'] == 'stop':
                now[e['camera']].remove((e['worker'], e['epoch']))
        return {camera: [w for w, _ in owners] for camera, owners in now.items()}

    def wait(self, what):
        while not what():
            time.sleep(0.05)

    def wait_for_shares(self, **shares):
        def reached():
            owners = [w for o in self.owners().values() for w in o]
            return {w: owners.count(w) for w in set(owners)} == shares
        self.wait(reached)

    def stops(self):
        return [e for e in self.events() if e['event'] == 'stop']

    def check_one_owner(self):
        """At each instant of the log; epochs of a camera only grow."""
        running, epochs = {}, {}
        for e in sorted(self.events(), key=lambda e: (e['boot_ms'], e['epoch'], e['event'] == 'stop')):
            camera = e['camera']
            if e['event'] == 'start':
                self.assertIsNone(running.get(camera), e)
                self.assertGreater(e['epoch'], epochs.get(camera, 0))
                running[camera] = e
                epochs[camera] = e['epoch']
            if e['event'] == 'stop':
                self.assertEqual(running.pop(camera)['worker'], e['worker'])

    def three(self, cameras=12):
        self.add(cameras)
        for name in 'abc':
            self.start(name)
        self.wait_for_shares(a=cameras // 3, b=cameras // 3, c=cameras // 3)

    def test_cameras_of_a_killed_worker_move(self):
        self.three()
        self.workers['a'].kill()
        self.wait_for_shares(b=6, c=6)
        self.check_one_owner()

    def test_a_stopped_worker_has_no_camera_when_another_takes_it(self):
        self.three()
        self.workers['a'].send_signal(signal.SIGSTOP)
        self.wait_for_shares(b=6, c=6)
        self.workers['a'].send_signal(signal.SIGCONT)
        self.wait_for_shares(a=4, b=4, c=4)
        self.check_one_owner()

    def test_a_worker_that_joins_gets_its_share_and_gives_it_back_when_drained(self):
        self.three()
        self.start('d')
        self.wait_for_shares(a=3, b=3, c=3, d=3)
        self.workers['d'].terminate()
        self.assertEqual(self.workers['d'].wait(), 0)
        self.wait_for_shares(a=4, b=4, c=4)
        self.check_one_owner()

    def test_programs_that_do_not_stop_at_once_keep_no_other_lease_waiting(self):
        deaf = ['sh', '-c', 'trap "" TERM; read camera; while :; do sleep 0.1; done']
        self.add(12)
        self.start('a', program=deaf)
        self.wait_for_shares(a=12)
        self.start('b', program=deaf)  # each camera that moves takes as long as a lease
        self.wait_for_shares(a=6, b=6)
        self.workers['b'].terminate()
        self.wait_for_shares(a=12)
        self.assertEqual({e['reason'] for e in self.stops()}, {'the worker gave it back'})
        self.check_one_owner()

    def test_a_renewal_whose_answer_was_lost_loses_no_camera(self):
        self.add(1)
        self.start('a')
        self.wait_for_shares(a=1)
        with socket.create_connection(('127.0.0.1', self.port)) as connection:
            connection.sendall(b'CONNECT {"verbose":false}\r\nPUB $KV.leases.c0 1\r\na\r\nPING\r\n')
            while b'PONG' not in connection.recv(4096):
                pass
        time.sleep(2 * TTL)  # longer than the lease
        self.assertEqual([e['event'] for e in self.events() if e['camera']], ['start'])

    def test_a_broker_that_is_away_stops_nothing_and_keeps_the_list(self):
        self.three()
        before = self.stops()
        self.stop_broker(signal.SIGKILL)
        time.sleep(2 * TTL)  # longer than any lease
        self.assertEqual(self.stops(), before)
        self.start_broker()
        self.add(13)
        self.wait(lambda: sum(map(len, self.owners().values())) == 13)
        self.assertEqual(len(self.cameras('list', json=True).stdout.splitlines()), 13)
        self.check_one_owner()

    def test_a_broker_that_does_not_answer_ends_programs_with_their_leases(self):
        self.three()
        self.broker.send_signal(signal.SIGSTOP)
        self.wait(lambda: not any(self.owners().values()))
        self.broker.send_signal(signal.SIGCONT)
        self.wait(lambda: sum(map(len, self.owners().values())) == 12)
        self.check_one_owner()

    def test_a_program_that_reads_nothing_ends_with_its_lease(self):
        self.add(1)
        self.start('a', program=['sleep', '1000'])
        self.put('cameras', 'large', {'uri': 'rtsp://10.0.0.1/', 'note': 'n' * 200000})  # more than a pipe holds
        self.wait_for_shares(a=2)
        self.broker.send_signal(signal.SIGSTOP)
        self.wait(lambda: not any(self.owners().values()))
        self.broker.send_signal(signal.SIGCONT)
        self.wait_for_shares(a=2)
        self.workers['a'].terminate()
        self.assertEqual(self.workers['a'].wait(), 0)
        self.check_one_owner()

    def test_a_program_gets_all_of_a_large_camera(self):
        got = self.folder / 'got'
        self.start('a', program=['sh', '-c', f'sleep 1; cat > {got}.part; mv {got}.part {got}; exec sleep 1000'])
        self.wait(lambda: self.events())
        self.put('cameras', 'large', {'uri': 'rtsp://10.0.0.1/', 'note': 'n' * 200000})
        self.wait(got.exists)
        self.assertEqual(len(json.loads(got.read_text())['note']), 200000)

    def test_a_program_that_never_stops_printing_costs_no_lease_and_no_memory(self):
        self.add(3)
        self.start('a', program=['sh', '-c', 'read camera; case $camera in *c0*) exec yes;; *c1*) exec cat /dev/zero;; esac; '
                                             'exec sleep 1000'])
        self.wait_for_shares(a=3)
        end = time.monotonic() + 3 * TTL
        while time.monotonic() < end:
            time.sleep(0.2)
        self.assertEqual(self.stops(), [])
        status = pathlib.Path(f'/proc/{self.workers["a"].pid}/status').read_text()
        self.assertLess(int(status.split('VmRSS:')[1].split()[0]), 100_000)
        self.assertIn(' y\n', self.cameras('list').stdout)
        self.workers['a'].terminate()
        self.assertEqual(self.workers['a'].wait(), 0)

    def test_programs_that_print_while_the_broker_is_away_go_on(self):
        self.add(12)
        self.start('a', program=['sh', '-c', 'read camera; while sleep 0.3; do echo still here; done'])
        self.wait_for_shares(a=12)
        self.stop_broker(signal.SIGKILL)
        time.sleep(2 * TTL)
        self.assertEqual(self.stops(), [])
        self.start_broker()

    def test_too_little_capacity_leaves_cameras_visibly_free(self):
        self.add(5)
        self.start('a', capacity=3)
        self.wait_for_shares(a=3)
        listed = [json.loads(line) for line in self.cameras('list', json=True).stdout.splitlines()]
        self.assertEqual(sorted(camera['state'] for camera in listed).count('free'), 2)
        self.start('b', capacity=3)
        self.wait(lambda: sum(map(len, self.owners().values())) == 5)
        self.check_one_owner()

    def test_a_camera_that_is_removed_or_changed_is_stopped_or_started_anew(self):
        self.add(2)
        self.start('a')
        self.wait_for_shares(a=2)
        self.assertEqual(self.cameras('remove', 'c0').returncode, 0)
        self.wait_for_shares(a=1)
        self.assertEqual(self.cameras('add', 'c1', value={'uri': 'rtsp://10.0.0.2/'}).returncode, 0)
        self.wait(lambda: len([e for e in self.events() if e['event'] == 'start']) == 3)
        self.wait_for_shares(a=1)
        self.assertEqual(self.cameras('remove', 'c0').returncode, 1)
        self.check_one_owner()

    def test_a_program_that_fails_is_tried_elsewhere_and_one_that_is_done_is_done(self):
        self.add(1)
        self.start('a', program=['sh', '-c', 'echo cannot see; exit 3'])
        self.wait(lambda: '"failed"' in self.cameras('list', json=True).stdout)
        self.assertIn("its program ended with status 3; it said 'cannot see'", self.cameras('list', json=True).stdout)
        self.start('b')
        self.wait_for_shares(b=1)
        self.check_one_owner()
        self.workers['b'].kill()
        self.workers['a'].kill()
        done = self.start('once', program=['sh', '-c', 'read camera; cat > /dev/null; exit 0'], once=True)
        self.wait(lambda: done.poll() is not None)

    def real_camera(self):
        if not CAMERA:
            self.skipTest('gst-rtsp-server is not installed')
        camera = subprocess.Popen([CAMERA, '0', 'h264'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(camera.wait)
        self.addCleanup(camera.kill)
        return f'rtsp://viewer:{PASSWORD}@127.0.0.1:{camera.stdout.readline().split()[1]}/camera'

    def vartml(self, *arguments, **more):
        env = {**os.environ, 'XDG_CACHE_HOME': str(self.folder / 'cache')}
        return subprocess.run([VARTML, *arguments, '--nats', f'nats://127.0.0.1:{self.port}'], env=env, text=True, capture_output=True, **more)

    def start_real(self, name, *arguments, port=None):
        env = {**os.environ, 'XDG_CACHE_HOME': str(self.folder / 'cache')}
        with open(self.log, 'ab') as log:
            self.workers[name] = subprocess.Popen(
                [VARTML, 'worker', '--ttl', str(TTL), '--name', name, '--nats', f'nats://127.0.0.1:{port or self.port}', *arguments],
                stdout=log, env=env)
        return self.workers[name]

    def listed(self):
        return {c['camera']: c for c in map(json.loads, self.vartml('cameras', 'list', '--json').stdout.splitlines())}

    def compiled(self, name):
        """A compiled model of its own bytes."""
        model = self.folder / name
        subprocess.run([VARTML, 'compile', MODEL, '-o', model], check=True, capture_output=True)
        return model

    def test_a_model_that_changes_is_swapped_while_the_camera_runs(self):
        models = [self.compiled('first.rai'), self.compiled('second.rai')]
        uri = self.real_camera()
        self.vartml('cameras', 'add', 'door', uri, '--model', str(models[0]), check=True)
        records = self.folder / 'records'
        self.start_real('a', '--capacity', '1', '--publish', f'method=file location={records} add-empty=true')

        def seen():
            lines = records.read_text().splitlines()[:-1] if records.exists() else []
            return [r['model'] for r in map(json.loads, lines) if 'model' in r]

        self.wait(lambda: seen() and seen()[-1]['epoch'] == 0)
        self.vartml('cameras', 'add', 'door', uri, '--model', str(models[1]), check=True)
        self.wait(lambda: seen()[-1]['epoch'] == 1)
        self.assertEqual([e['event'] for e in self.events() if e['camera']], ['start', 'swap'])
        # One that cannot be had: the list says so.
        for model, says in [('/none.rai', '/none.rai'), ('object:' + '0' * 64 + '.rai', 'is not in the store')]:
            self.vartml('cameras', 'add', 'door', uri, '--model', model, check=True)
            self.wait(lambda: self.listed()['door']['reason'].startswith('the model before runs: '))
            self.wait(lambda: says in self.listed()['door']['reason'])
        # What is more than the model is a start.
        self.vartml('cameras', 'add', 'door', uri, check=True)
        self.wait(lambda: [e['event'] for e in self.events() if e['camera']] == ['start', 'swap', 'swap', 'stop', 'start'])
        self.check_one_owner()

    def test_a_model_in_the_store_is_what_it_is_named_after(self):
        model = self.compiled('people.rai')
        name = hashlib.sha256(model.read_bytes()).hexdigest() + '.rai'
        uri = self.real_camera()
        for _ in range(2):  # the second time it is there
            self.vartml('cameras', 'add', 'door', uri, '--upload', str(model), check=True)
        model.unlink()
        records = self.folder / 'records'
        self.start_real('a', '--capacity', '1', '--publish', f'method=file location={records} add-empty=true')
        self.wait(lambda: records.exists() and '"hash"' in records.read_text())
        kept = self.folder / 'cache' / 'vartml' / 'fleet' / name
        self.assertEqual(hashlib.sha256(kept.read_bytes()).hexdigest() + '.rai', name)
        self.workers['a'].terminate()
        self.workers['a'].wait()
        once = self.start_real('once', '--capacity', '1', '--once')
        self.wait(lambda: self.listed()['door']['worker'] == 'once')
        once.terminate()
        self.assertEqual(once.wait(), 0)
        # One that is not there, and a name that is a path.
        for wrong, says in [('0' * 64 + '.rai', 'is not in the store'), ('../../x.rai', 'is not object:SHA256')]:
            self.vartml('cameras', 'add', 'door', uri, '--model', 'object:' + wrong, check=True)
            worker = self.start_real('b', '--capacity', '1')
            self.wait(lambda: says in self.listed()['door']['reason'])
            worker.kill()
            worker.wait()
        refused = self.vartml('cameras', 'add', 'door', uri, '--upload', __file__)
        self.assertEqual(refused.returncode, 2)
        self.assertIn('--upload: ', refused.stderr)

    def test_capacity_by_density_wants_a_figure_of_this_kind(self):
        density = self.folder / 'density.json'
        doctor = json.loads(subprocess.run([VARTML, 'doctor', '--json', '-'], capture_output=True, text=True).stdout)
        threads = int(doctor['facts']['threads'])
        figure = {'density': 3, 'p95_limit_ms': 100, 'apart': True, 'machine': {'threads': threads}}
        for arguments, content, says in [
                (['auto'], None, 'needs --density'),
                (['auto', '--density', str(density)], {'rows': []}, 'is not what vartml density --json writes'),
                (['auto', '--density', str(density)], {**figure, 'density': '8'}, 'is not what vartml density --json writes'),
                (['auto', '--density', str(density)], {**figure, 'machine': 4}, 'is not what vartml density --json writes'),
                (['auto', '--density', str(density)], {**figure, 'apart': False}, 'measure with --apart'),
                (['auto', '--density', str(density)], {**figure, 'density': 0}, 'carries no stream'),
                (['auto', '--density', str(density)], {**figure, 'machine': {'threads': threads + 1}},
                 f'of {threads + 1} processors, and this process may use {threads}; measure'),
                (['3', '--density', str(density)], figure, 'is for --capacity auto'),
                (['0'], None, "--capacity: is '0'")]:
            density.write_text(json.dumps(content))
            done = self.vartml('worker', '--capacity', *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)
        density.write_text(json.dumps(figure))
        self.add(5)
        worker = self.start_real('a', '--capacity', 'auto', '--density', str(density))
        self.wait(lambda: sum(map(len, self.owners().values())) == 3)
        worker.terminate()
        self.assertEqual(worker.wait(), 0)

    def test_a_worker_whose_cameras_skip_frames_has_fewer(self):
        self.add(2)
        said = json.dumps({'p95_ms': 5, 'skips': True})
        self.start('a', capacity=2, p95_ms=100, talks=True,
                   program=['sh', '-c', f"read camera; while :; do echo '{said}' || exit; sleep 0.5; done"])
        self.wait_for_shares(a=2)
        self.wait(lambda: [e['reason'] for e in self.events() if e['event'] == 'capacity'] == ['1'])
        self.wait_for_shares(a=1)

    def test_who_looks_makes_nothing_and_sees_what_comes(self):
        with open(self.folder / 'seen', 'wb') as seen:
            watch = subprocess.Popen([VARTML, 'cameras', 'watch', '--json', '--nats', f'nats://127.0.0.1:{self.port}'], stdout=seen)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        self.assertEqual((self.cameras('list').returncode, self.cameras('remove', 'c0').returncode), (0, 1))
        for stream in ('KV_cameras', 'KV_status', 'KV_leases', 'KV_workers'):
            with Reader(self.port, stream) as reader:
                self.assertIn('error', reader.ask('STREAM.INFO'))
        self.add(1)
        self.start('a')
        self.wait(lambda: '"running"' in (self.folder / 'seen').read_text())
        self.assertIsNone(watch.poll())

    def test_a_list_that_fewer_servers_keep_than_are_asked_for_is_told(self):
        self.add(1)
        done = self.cameras('add', 'c1', value={'uri': 'rtsp://10.0.0.1/'}, replicas=3)
        self.assertEqual(done.returncode, 0)
        self.assertIn('bucket cameras is kept by 1 of the 3 servers that --replicas asks for', done.stderr)
        self.assertIn('nats stream edit KV_cameras --replicas 3', done.stderr)

    def page(self):
        port = free_port()
        server = subprocess.Popen([VARTML, 'cameras', 'page', f'127.0.0.1:{port}', '--nats', f'nats://127.0.0.1:{self.port}'],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertEqual(server.stdout.readline(), f'http://127.0.0.1:{port}/\n')
        return f'http://127.0.0.1:{port}/'

    def get(self, url, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
                return answer.status, answer.headers['Content-Type'], answer.read()
        except urllib.error.HTTPError as error:
            return error.code, '', error.read()

    def test_the_page_has_every_camera_and_worker_and_a_picture_on_demand(self):
        self.vartml('cameras', 'add', 'gate/1', self.real_camera(), check=True)
        self.vartml('cameras', 'add', 'away', 'rtsp://127.0.0.1:1/', check=True)
        self.start_real('a', '--capacity', '2', '--publish', 'method=file location=/dev/null')
        page = self.page()

        def fleet():
            return json.loads(self.get(page + 'fleet.json')[2])

        self.wait(lambda: sum(c['frames_per_s'] > 0 for c in fleet()['cameras']) == 1)
        cameras = {c['camera']: c for c in fleet()['cameras']}
        self.assertEqual((cameras['gate/1']['worker'], cameras['gate/1']['state']), ('a', 'running'))
        self.assertEqual([(w['worker'], w['cameras'], w['capacity']) for w in fleet()['workers']], [('a', 2, 2)])
        self.assertNotIn(PASSWORD, json.dumps(fleet()))
        status, kind, picture = self.get(page + 'picture?gate%2F1')
        self.assertEqual((status, kind, picture[:2]), (200, 'image/jpeg', b'\xff\xd8'))
        for path, says in [('picture?away', b'no picture has come yet'), ('picture?none', b'no worker has'),
                           ('picture?a%20b', b'no such camera'), ('x', b'known: ')]:
            status, _, text = self.get(page + path)
            self.assertEqual(status, 404)
            self.assertIn(says, text)
        # A name of somebody else's that leads here.
        self.assertEqual(self.get(page + 'fleet.json', Host='evil.example')[0], 403)
        if not browser.found():
            self.skipTest('there is no chromium; all but the page itself was tested')
        with browser.Browser() as shown:
            shown.open(page)
            shown.wait_until('document.querySelectorAll("#cameras tbody tr").length === 2')
            self.assertEqual(shown.evaluate('document.getElementById("summary").textContent'), '2 cameras, 1 worker')
            shown.evaluate('[...document.querySelectorAll("#cameras button")].find(b => b.textContent === "gate/1").click()')
            shown.wait_until('document.getElementById("picture").naturalWidth > 0')
            shown.evaluate('(() => { const f = document.getElementById("filter"); f.value = "away";'
                           ' f.dispatchEvent(new Event("input")); })()')
            self.assertEqual(shown.evaluate('document.querySelectorAll("#cameras tbody tr").length'), 1)
            for width in (1280, 390):
                shown.call('Emulation.setDeviceMetricsOverride', width=width, height=800, deviceScaleFactor=1, mobile=False)
                self.assertEqual(shown.evaluate('document.documentElement.scrollWidth'), width, 'nothing is cut off')
            if folder := os.environ.get('VARTML_SCREENSHOTS'):
                shown.screenshot(os.path.join(folder, 'fleet.png'))

    def start_publishing(self, name, port=None):
        arguments = ['--capacity', '24', '--publish', f'method=nats address=127.0.0.1:{port or self.port} topic=found/{{stream}} '
                     f'add-empty=true drain-timeout=3000 spool-dir={self.folder}/spool']
        return self.start_real(name, *arguments, port=port)

    def check_records(self):
        """Each run's numbers are there from 0 on, each once; no owner's record comes after one of a later owner."""
        with Reader(self.port, 'found') as reader:
            records = reader.all()
        runs, epochs = {}, {}
        for r in records:
            first, last = (r['first'], r['last']) if r['schema'] == 'vartml.gap/1' else (r['seq'], r['seq'])
            self.assertEqual(first, runs.get(r['run'], 0), r)
            runs[r['run']] = last + 1
            self.assertGreaterEqual(r['epoch'], epochs.get(r['stream'], 0))
            epochs[r['stream']] = r['epoch']
        self.assertEqual([r for r in records if r['schema'] == 'vartml.gap/1'], [])
        return records

    def test_whatever_happens_each_camera_has_one_owner_and_no_record_is_lost(self):
        count = int(os.environ.get('VARTML_TEST_CAMERAS', 24))  # a multiple of 6
        third, half = count // 3, count // 2
        if not CAMERA:
            self.skipTest('gst-rtsp-server is not installed')

        def camera_server(port):
            server = subprocess.Popen([CAMERA, str(port), 'jpeg', f'mounts={count}'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            return server, int(server.stdout.readline().split()[1])

        server, port = camera_server(0)
        self.add(count, f'rtsp://127.0.0.1:{port}/camera{{}}')
        line = Line(self.port)
        for name in 'ab':
            self.start_publishing(name)
        self.start_publishing('c', line.port)

        def settle(what, **shares):
            """Until the workers have these shares and each camera has sent something more."""
            begin = time.monotonic()
            self.wait_for_shares(**shares)
            owned = time.monotonic()
            with Reader(self.port, 'found') as reader:
                before = reader.counts()
                self.wait(lambda: sum(n > before.get(subject, 0) for subject, n in reader.counts().items()) == count)
            print(f'{what}: shares after {owned - begin:.1f} s, records of all after {time.monotonic() - begin:.1f} s', flush=True)

        settle('begin', a=third, b=third, c=third)
        self.workers['a'].kill()
        settle('a worker is killed', b=half, c=half)
        self.start_publishing('d')
        settle('one joins', b=third, c=third, d=third)
        self.workers['b'].send_signal(signal.SIGSTOP)
        settle('one is stopped', c=half, d=half)
        self.workers['b'].send_signal(signal.SIGCONT)
        settle('it goes on', b=third, c=third, d=third)
        self.workers['d'].terminate()
        settle('one is drained', b=half, c=half)
        self.stop_broker(signal.SIGKILL)
        self.start_broker()
        settle('the broker is killed and restarted', b=half, c=half)
        server.kill()
        server.wait()
        camera_server(port)
        settle('the cameras restart', b=half, c=half)
        line.cut = True
        settle('the network of one is cut', b=count)
        line.cut = False
        settle('it is back', b=half, c=half)
        self.check_one_owner()
        records = self.check_records()
        print(f'{len(records)} records, each once and in order', flush=True)
        self.assertEqual(len(self.listed()), count)

    def test_pictures_of_a_real_camera_are_published_by_one_worker_after_the_other(self):
        uri = self.real_camera()
        nats = ['--nats', f'nats://127.0.0.1:{self.port}']
        subprocess.run([VARTML, 'cameras', 'add', 'door', uri, *nats], check=True)
        for name in 'ab':
            records = self.folder / name
            publish = f'method=file location={records} add-empty=true'
            with open(self.log, 'ab') as log:
                self.workers[name] = subprocess.Popen([VARTML, 'worker', '--capacity', '4', '--ttl', str(TTL), '--name', name,
                                                       '--publish', publish, *nats], stdout=log)
            self.wait(lambda: records.exists() and len(records.read_text().splitlines()) > 10)
            self.assertEqual(json.loads(records.read_text().splitlines()[0])['stream'], 'door')
            self.wait(lambda: 'playing' in subprocess.run([VARTML, 'cameras', 'list', *nats], capture_output=True, text=True).stdout)
            self.workers[name].kill()
            self.workers[name].wait()
            self.wait(lambda: not self.owners()['door'])
        self.check_one_owner()

    def test_nothing_in_a_bucket_ends_a_worker_or_writes_to_a_terminal(self):
        self.add(1)
        self.start('a')
        self.wait_for_shares(a=1)
        for value in ({'capacity': 'many'}, {'capacity': -1}, {'capacity': 1e300}, ['capacity'], None):
            self.put('workers', 'other', value)
        for i, value in enumerate(({'state': 5}, {'state': 'ended', 'reason': 7}, [], 'ended')):
            self.put('status', f's{i}', value)
            self.put('cameras', f's{i}', {'uri': f'rtsp://10.0.0.2/{i}'})
        self.put('cameras', 'number', {'uri': 5})
        self.put('workers', 'other', {'capacity': 0})
        self.wait_for_shares(a=6)
        long = 'y' * 600
        self.put('status', 'free', {'state': 'free\x1b[2J', 'reason': 'a\u009b31m\nb'})
        self.put('cameras', 'free', {'uri': f'rtsp://\x1b[31m/{long}'})
        listed = self.cameras('list').stdout
        self.assertFalse([c for c in listed if ord(c) < 32 and c != '\n' or 127 <= ord(c) < 160], listed)
        self.assertEqual(len(listed.split('\n\n')[0].splitlines()), 8, listed)
        self.assertIn(long, listed)
        self.assertIsNone(self.workers['a'].poll())

    def test_a_camera_that_is_no_text_is_refused_in_one_sentence(self):
        program = pathlib.Path(WORKER).parent / 'vartml-camera'
        for camera, said in [({'uri': 5}, '"uri" of the camera is of type number, expected a text'),
                             ({'uri': 'rtsp://x/', 'model': ['m']}, '"model" of the camera is of type array, expected a text')]:
            done = subprocess.run([program], input=json.dumps(camera) + '\n', capture_output=True, text=True)
            self.assertEqual((done.returncode, json.loads(done.stdout)), (2, {'state': 'failed', 'reason': said}))

    def test_health_and_metrics_are_answered(self):
        self.add(1)
        port = free_port()
        self.start('a', health=f'127.0.0.1:{port}')

        def get(path):
            try:
                with urllib.request.urlopen(f'http://127.0.0.1:{port}{path}') as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, ''
            except OSError:
                return 0, ''

        self.wait(lambda: 'vartml_worker_cameras 1' in get('/metrics')[1])
        self.assertEqual(get('/healthz')[0], 200)
        self.assertEqual(get('/readyz')[0], 200)
        self.assertEqual(get('/none')[0], 404)
        self.stop_broker()
        self.wait(lambda: get('/readyz')[0] == 503)
        self.assertEqual(get('/healthz')[0], 200)

    def test_the_rest_of_the_line_are_the_arguments_of_a_program(self):
        self.add(1)
        got = self.folder / 'got'
        worker = self.start_real('a', '--capacity', '1', '--once', '--run', 'sh', '-c', 'read camera; echo "$0" "$@" > ' + str(got),
                                 '--capacity', '--help')
        self.assertEqual(worker.wait(), 0)
        self.assertEqual(got.read_text(), '--capacity --help\n')

    def test_the_processor_time_of_each_camera_is_counted(self):
        self.add(2)
        port = free_port()
        worker = self.start('a', health=f'127.0.0.1:{port}',
                            program=['sh', '-c', 'read camera; case $camera in *c0*) while :; do :; done;; esac; exec sleep 1000'])
        self.wait_for_shares(a=2)
        self.wait(lambda: any(c['cpu'] > 0.1 for c in map(json.loads, self.cameras('list', json=True).stdout.splitlines())))
        busy = 0
        while busy < 2:
            time.sleep(0.2)
            with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics') as answer:
                metrics = dict(line.rsplit(' ', 1) for line in answer.read().decode().splitlines() if line[0] != '#')
            busy, idle = (float(metrics[f'vartml_worker_camera_cpu_seconds_total{{camera="c{i}"}}']) for i in range(2))
        self.assertGreater(busy, 10 * idle)
        self.assertGreaterEqual(float(metrics['vartml_worker_cpu_seconds_total']), busy + idle)
        self.assertIn('vartml_worker_cpu_quota', metrics)
        worker.terminate()
        _, worker.returncode, used = os.wait4(worker.pid, 0)
        cpu_s = {(e['event'], e['camera']): e['cpu_s'] for e in self.events() if 'cpu_s' in e}
        self.assertEqual(set(cpu_s), {('stop', 'c0'), ('stop', 'c1'), ('end', '')})
        self.assertGreaterEqual(cpu_s['stop', 'c0'], busy)
        # The kernel's account, of the worker and all that it waited for.
        self.assertAlmostEqual(cpu_s['end', ''] / (used.ru_utime + used.ru_stime), 1, delta=0.01)

    def test_a_client_that_speaks_slowly_keeps_nobody_from_the_health_of_a_worker(self):
        port = free_port()
        self.start('a', health=f'127.0.0.1:{port}')
        self.wait(lambda: self.events())
        slow = subprocess.Popen([sys.executable, '-c', f"""
import socket, time
while True:
    with socket.create_connection(('127.0.0.1', {port})) as s:
        print('connected', flush=True)
        try:
            while True:
                s.send(b'x')
                time.sleep(0.1)
        except OSError:
            pass"""], stdout=subprocess.PIPE, text=True)
        self.addCleanup(slow.stdout.close)
        self.addCleanup(slow.wait)
        self.addCleanup(slow.kill)
        slow.stdout.readline()
        for _ in range(3):
            with urllib.request.urlopen(f'http://127.0.0.1:{port}/healthz', timeout=60) as answer:
                self.assertEqual(answer.status, 200)
        self.workers['a'].terminate()
        self.assertEqual(self.workers['a'].wait(60), 0)

    def test_a_worker_with_another_ttl_is_refused(self):
        self.start('a')
        self.wait(lambda: self.events())
        other = subprocess.run([WORKER, self.request(command='worker', name='b', capacity=1, ttl_ms=60000, program=['true'])],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(other.returncode, 2)
        self.assertIn(f'bucket workers was made with --ttl {TTL}, and this worker has --ttl 60', other.stderr)
        self.assertEqual(len(other.stderr.splitlines()), 1)

    def test_leases_that_the_broker_would_forget_are_refused(self):
        with Reader(self.port, 'KV_leases') as reader:
            made = reader.ask('STREAM.CREATE', name='KV_leases', subjects=['$KV.leases.>'], max_age=10_000_000_000,
                              max_msgs_per_subject=1, storage='file', allow_rollup_hdrs=True, deny_delete=True)
        self.assertNotIn('error', made)
        other = self.start('a', stderr=subprocess.PIPE)
        self.assertEqual(other.wait(60), 2)
        said = other.stderr.read().decode()
        other.stderr.close()
        self.assertIn('bucket leases was made to forget its entries after 10 s, and they must stay; stop all workers and remove it '
                      '(nats kv del leases)', said)

    def test_a_lease_is_over_when_it_was_the_same_for_its_whole_life(self):
        self.start('a')
        self.wait(self.events)  # the buckets are there
        self.put('leases', 'c0', 'ghost')
        self.add(2)
        self.wait_for_shares(a=1)
        end = time.monotonic() + 2 * TTL
        while time.monotonic() < end:  # it is renewed, by a worker of which nothing else is known
            self.put('leases', 'c0', 'ghost')
            time.sleep(TTL / 3)
        self.assertEqual([e['camera'] for e in self.events() if e['event'] == 'start'], ['c1'])
        self.assertNotIn('ghost', self.cameras('list').stdout)
        self.put('leases', 'c0', 'ghost')
        renewed_ms = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000 - 50
        self.wait_for_shares(a=2)
        [taken] = [e for e in self.events() if e['event'] == 'start' and e['camera'] == 'c0']
        self.assertGreater(taken['boot_ms'], renewed_ms + TTL * 1000)

    def test_passwords_are_shown_nowhere(self):
        self.add(1)
        self.start('a')
        self.wait_for_shares(a=1)
        listed = self.cameras('list').stdout
        self.assertIn('rtsp://10.0.0.1/0', listed)
        bad = self.cameras('add', 'x', value={'uri': f'rtsp://viewer:{PASSWORD}@/'})
        self.assertEqual(bad.returncode, 2)
        lines = [pathlib.Path(f'/proc/{pid}/cmdline').read_text() for pid in os.listdir('/proc') if pid.isdigit()
                 and int(pid) == self.workers['a'].pid]
        self.assertNotIn(PASSWORD, listed + bad.stderr + self.log.read_text() + ''.join(lines))

    def test_the_password_of_the_broker_is_on_no_command_line(self):
        # given: NATS's own variable; other users see command lines, and not the environment
        url = f'nats://viewer:{PASSWORD}@127.0.0.1:{self.port}'
        with open(self.log, 'ab') as log:
            worker = subprocess.Popen([VARTML, 'worker', '--capacity', '1', '--name', 'a', '--run', 'sleep', '1000'],
                                      stdout=log, env=os.environ | {'NATS_URL': url})
        self.workers['a'] = worker
        self.wait(lambda: self.events())
        self.add(1)
        self.wait_for_shares(a=1)
        self.assertIn('vartml-worker', pathlib.Path(f'/proc/{worker.pid}/cmdline').read_text())
        self.assertNotIn(PASSWORD, pathlib.Path(f'/proc/{worker.pid}/cmdline').read_text())

    def test_bad_requests_are_refused_in_one_sentence(self):
        for action, name, value, said in [('add', 'a b', {'uri': 'rtsp://x/'}, "'a b' is not made of"),
                                          ('add', 'a', {}, 'has no "uri"'),
                                          ('import', '/none', {}, '/none: cannot be read')]:
            done = self.cameras(action, name, value=value)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        for arguments, status, said in [
                (['cameras', 'import', 'list', '--model', 'm.rai'], 2, '--model is for cameras add'),
                (['cameras', 'remove', 'c0', '--device', 'softnpu'], 2, '--device is for cameras add'),
                (['cameras', 'import', 'list', '--json'], 2, '--json is for cameras list and watch'),
                (['cameras', 'page', f'127.0.0.1:{self.port}'], 1, 'Address already in use; give another port'),
                (['worker', '--capacity', '1', '--health', '9090'], 2, 'has no host or no port; write HOST:PORT'),
                (['worker', '--capacity', '1', '--once'], 1, '--once: found no camera that is free')]:
            done = self.vartml(*arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)
        self.stop_broker()
        self.assertIn('--nats', self.cameras('list').stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[6:], verbosity=2)
