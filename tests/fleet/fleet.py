# SPDX-License-Identifier: Apache-2.0
"""Workers on a real nats-server: whatever is killed, stopped or restarted, a camera has one owner at most.

usage: fleet.py NATS_SERVER VARTML_WORKER VARTML RTSP_CAMERA [test...]"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

SERVER, WORKER, VARTML, CAMERA = sys.argv[1:5]
TTL = 2
PASSWORD = 'Geheim77'


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


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
        with open(self.log, 'ab') as log:
            self.workers[name] = subprocess.Popen(
                [WORKER, self.request(command='worker', name=name, capacity=capacity, ttl_ms=TTL * 1000, program=program, **more)],
                stdout=log)
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
        self.start('a', program=['sh', '-c', 'exit 3'])
        self.wait(lambda: '"failed"' in self.cameras('list', json=True).stdout)
        self.start('b')
        self.wait_for_shares(b=1)
        self.check_one_owner()
        self.workers['b'].kill()
        self.workers['a'].kill()
        done = self.start('once', program=['sh', '-c', 'read camera; cat > /dev/null; exit 0'], once=True)
        self.wait(lambda: done.poll() is not None)

    def test_pictures_of_a_real_camera_are_published_by_one_worker_after_the_other(self):
        if not CAMERA:
            self.skipTest('gst-rtsp-server is not installed')
        camera = subprocess.Popen([CAMERA, '0', 'h264'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(camera.wait)
        self.addCleanup(camera.kill)
        port = camera.stdout.readline().split()[1]
        nats = ['--nats', f'nats://127.0.0.1:{self.port}']
        subprocess.run([VARTML, 'cameras', 'add', 'door', f'rtsp://127.0.0.1:{port}/camera', *nats], check=True)
        for name in 'ab':
            records = self.folder / name
            publish = f'method=file location={records} add-empty=true'
            with open(self.log, 'ab') as log:
                self.workers[name] = subprocess.Popen([VARTML, 'worker', '--capacity', '4', '--ttl', str(TTL), '--name', name,
                                                       '--publish', publish, *nats], stdout=log)
            self.wait(lambda: records.exists() and len(records.read_text().splitlines()) > 10)
            self.assertEqual(json.loads(records.read_text().splitlines()[0])['stream'], 'door')
            shown = subprocess.run([VARTML, 'cameras', 'list', *nats], capture_output=True, text=True).stdout
            self.assertIn('playing', shown)
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
        self.assertEqual(len(listed.splitlines()), 8, listed)
        self.assertIn(long, listed)
        self.assertIsNone(self.workers['a'].poll())

    def test_a_camera_that_is_no_text_is_refused_in_one_sentence(self):
        program = pathlib.Path(WORKER).parent / 'vartml-camera'
        for camera, said in [({'uri': 5}, '"uri" of the camera is of type number, expected a text'),
                             ({'uri': 'rtsp://x/', 'model': ['m']}, '"model" of the camera is of type array, expected a text')]:
            done = subprocess.run([program], input=json.dumps(camera) + '\n', capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, said + '\n'))

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
        self.assertEqual(other.returncode, 1)
        self.assertIn(f'bucket leases was made with --ttl {TTL}, and this worker has --ttl 60', other.stderr)
        self.assertEqual(len(other.stderr.splitlines()), 1)

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
        self.stop_broker()
        self.assertIn('--nats', self.cameras('list').stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
