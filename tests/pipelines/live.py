# SPDX-License-Identifier: Apache-2.0
"""vartml-live as its user meets it: over HTTP, and in a headless Chromium where there is one.

usage: live.py PROGRAM CLIP_SCRIPT MODEL"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from urllib.parse import urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

import browser  # noqa: E402

PROGRAM, CLIP_SCRIPT, MODEL = sys.argv[1:4]
FOLDER = tempfile.TemporaryDirectory()
CLIP = os.path.join(FOLDER.name, 'clip.avi')


def setUpModule():
    subprocess.run(['sh', CLIP_SCRIPT, CLIP], check=True)


def make_odd_models():
    """Classifiers of three and ten classes, a model whose outputs no decoder reads, and a file that is none."""
    from onnx import TensorProto, helper, numpy_helper, save
    import numpy
    for name, channels, flatten in [('three', 3, True), ('ten', 10, True), ('no_decoder', 5, False)]:
        weights = numpy_helper.from_array(numpy.ones((channels, 3, 3, 3), numpy.float32), 'w')
        nodes = [helper.make_node('Conv', ['images', 'w'], ['c'], pads=[1, 1, 1, 1]),
                 helper.make_node('GlobalAveragePool', ['c'], ['p']), helper.make_node('Flatten', ['p'], ['scores'])]
        shape = [1, channels]
        if not flatten:
            nodes = [helper.make_node('Conv', ['images', 'w'], ['scores'], pads=[1, 1, 1, 1], strides=[3, 5])]
            shape = [1, channels, 11, 7]
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info('images', TensorProto.FLOAT, [1, 3, 32, 32])],
                                  [helper.make_tensor_value_info('scores', TensorProto.FLOAT, shape)], [weights])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
             os.path.join(FOLDER.name, name + '.onnx'))
    with open(os.path.join(FOLDER.name, 'broken.onnx'), 'wb') as file:
        file.write(b'PK\x03\x04')
    with open(os.path.join(FOLDER.name, 'three.txt'), 'w') as file:
        file.write('a\nb\nc\n')


class Live:
    """The program; `url` is what it prints."""

    def __init__(self, *arguments, model=MODEL):
        self.process = subprocess.Popen([PROGRAM, '--port', '0', '--video', CLIP, '--model', model, *arguments],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith('open http://'), line
        self.url = line.split()[1]
        self.port = urlsplit(self.url).port
        self.connections = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            connection.close()
        self.process.terminate()
        self.status = self.process.wait(30)
        self.process.stdout.close()

    def ask(self, method, path, **headers):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        self.connections.append(connection)
        connection.request(method, path, headers={'Host': f'127.0.0.1:{self.port}', **headers})
        return connection.getresponse()

    def status_now(self):
        return json.loads(self.ask('GET', '/status').read())

    def wait_for(self, what):
        while True:
            status = self.status_now()
            if what(status):
                return status
            time.sleep(0.05)


class LiveOverHttp(unittest.TestCase):
    def test_pictures_come_one_after_another_as_jpeg(self):
        with Live() as live:
            answer = live.ask('GET', '/video')
            self.assertEqual(answer.status, 200)
            kind = answer.getheader('Content-Type')
            self.assertTrue(kind.startswith('multipart/x-mixed-replace; boundary='), kind)
            boundary = kind.split('=')[1].encode()
            seen = set()
            while len(seen) < 10:  # the clip begins again meanwhile
                self.assertEqual(answer.readline().strip(), b'--' + boundary)
                self.assertEqual(answer.readline().strip(), b'Content-Type: image/jpeg')
                size = int(answer.readline().split(b':')[1])
                answer.readline()
                picture = answer.read(size)
                answer.readline()
                self.assertEqual((picture[:2], picture[-2:]), (b'\xff\xd8', b'\xff\xd9'))
                seen.add(picture)
            answer.close()
        self.assertEqual(live.status, 0, 'SIGTERM ends it well')

    def test_the_clip_is_played_again_and_again(self):
        with Live() as live:
            live.wait_for(lambda s: s['frames'] > 70)  # it has 30

    def test_events_tell_what_status_tells(self):
        with Live() as live:
            live.wait_for(lambda s: 'own_threshold' in s)
            answer = live.ask('GET', '/events')
            self.assertEqual(answer.getheader('Content-Type'), 'text/event-stream')
            events = []
            while len(events) < 3:
                line = answer.readline()
                if line.startswith(b'data: '):
                    events.append(json.loads(line[6:]))
            self.assertEqual(set(events[0]) - {'compiling_percent'}, set(live.status_now()) - {'compiling_percent'})
            self.assertGreaterEqual(events[-1]['frames'], events[0]['frames'])
            answer.close()

    def test_threshold_and_model_can_be_changed(self):
        with Live('--model', MODEL) as live:
            live.wait_for(lambda s: s['frames'] > 0)
            own = live.wait_for(lambda s: 'own_threshold' in s)
            self.assertEqual(own['threshold'], own['own_threshold'], 'the model says where the slider stands')
            self.assertEqual(live.ask('POST', '/threshold?score=0.4').status, 204)
            self.assertEqual(live.status_now()['threshold'], 0.4)
            self.assertEqual(live.ask('POST', '/threshold?score=model').status, 204)
            self.assertEqual(live.status_now()['threshold'], own['own_threshold'])
            self.assertEqual(live.ask('POST', '/model?index=1').status, 204)
            status = live.wait_for(lambda s: s['notice'].startswith('now '))
            self.assertEqual(status['model'], 1)

    def test_figures_count_from_the_last_change(self):
        with Live() as live:
            before = live.wait_for(lambda s: s['frames'] > 20 and s['history'])
            self.assertEqual(before['since']['what'], 'the start')
            self.assertEqual(before['since']['frames'], before['frames'])
            self.assertEqual(live.ask('POST', '/threshold?score=0.4').status, 204)
            after = live.status_now()
            self.assertEqual(after['since']['what'], 'the least score was changed')
            self.assertLess(after['since']['frames'], after['frames'])
            seconds = live.wait_for(lambda s: len(s['history']) > 1)['history']
            self.assertTrue(any(frames > 0 and milliseconds > 0 for frames, milliseconds in seconds), seconds)

    def test_classes_are_counted_now_and_over_time(self):
        make_odd_models()
        with Live('--labels', os.path.join(FOLDER.name, 'three.txt'), model=os.path.join(FOLDER.name, 'three.onnx')) as live:
            status = live.wait_for(lambda s: s['classes'] and s['classes'][0]['frames'] > 3)
            self.assertIn(status['classes'][0]['label'], 'abc')
            self.assertEqual(status['classes'][0]['tracks'], 0, 'a class of the whole picture is no object')
            self.assertNotIn('box', status['objects'][0])

    def test_each_model_has_its_labels(self):
        make_odd_models()
        three, ten, names = (os.path.join(FOLDER.name, name) for name in ('three.onnx', 'ten.onnx', 'ten.txt'))
        with open(names, 'w') as file:
            file.write('\n'.join('klmnopqrst') + '\n')
        with Live('--model', ten, '--labels', os.path.join(FOLDER.name, 'three.txt'), '--labels', names, model=three) as live:
            live.wait_for(lambda s: s['objects'] and s['objects'][0]['label'] in 'abc')
            self.assertEqual(live.ask('POST', '/model?index=1').status, 204)
            status = live.wait_for(lambda s: s['objects'] and s['objects'][0]['label'] in 'klmnopqrst')
            self.assertEqual(status['model'], 1)
            self.assertIn('label-file=' + names, status['launch'])

    def test_the_launch_line_runs(self):
        with Live() as live:
            live.ask('POST', '/threshold?score=0.4').read()
            line = live.status_now()['launch']
        self.assertIn('score-threshold=0.40', line)
        line = line.replace('autovideosink', 'fakesink')
        done = subprocess.run(['sh', '-c', line], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_model_that_cannot_take_over_leaves_the_one_before(self):
        refused = [('no_decoder.onnx', [], 'fit no decoder'), ('ten.onnx', ['--labels', 'three.txt'], '3 labels'),
                   ('broken.onnx', [], 'broken.onnx')]
        make_odd_models()
        for name, options, words in refused:
            options = [os.path.join(FOLDER.name, o) if o.endswith('.txt') else o for o in options]
            first = MODEL if not options else os.path.join(FOLDER.name, 'three.onnx')
            with Live('--model', os.path.join(FOLDER.name, name), *options, model=first) as live:
                live.wait_for(lambda s: s['frames'] > 0)
                self.assertEqual(live.ask('POST', '/model?index=1').status, 204)
                status = live.wait_for(lambda s: s['notice'].startswith('the model was not changed'))
                self.assertIn(words, status['notice'])
                self.assertEqual(status['model'], 0)
                frames = status['frames']
                live.wait_for(lambda s: s['frames'] > frames + 20)

    def test_what_makes_no_sense_is_one_sentence(self):
        with Live() as live:
            for path, word in [('/threshold?score=2', '0 to 1'), ('/threshold', 'score='), ('/threshold?score=x', 'score='),
                               ('/model?index=7', 'there are 1'), ('/model?index=-1', 'index='),
                               ('/model?index=0.7', 'index='), ('/threshold?score=nan', '0 to 1'), ('/model?index=1e300', 'index=')]:
                answer = live.ask('POST', path)
                text = answer.read().decode()
                self.assertEqual(answer.status, 400, path)
                self.assertIn(word, text)
                self.assertEqual(text.count('\n'), 1, text)
            self.assertEqual(live.ask('GET', '/etc/passwd').status, 404)
            self.assertEqual(live.ask('GET', '/model?index=0').status, 404)

    def test_pages_from_elsewhere_have_no_hand_in_it(self):
        with Live() as live:
            self.assertEqual(live.ask('GET', '/', Host=f'localhost:{live.port}').status, 200)
            self.assertEqual(live.ask('GET', '/', Host=f'attacker.example:{live.port}').status, 403)
            self.assertEqual(live.ask('POST', '/threshold?score=0.1', Origin='http://attacker.example').status, 403)
            self.assertEqual(live.ask('POST', '/threshold?score=0.1', Origin=f'http://127.0.0.1:{live.port}').status, 204)

    def test_pages_from_elsewhere_show_nothing_of_it(self):
        with Live() as live:
            for site, path, status in [('cross-site', '/video', 403), ('same-site', '/video', 403), ('cross-site', '/status', 403),
                                       ('same-origin', '/status', 200), ('none', '/status', 200), ('cross-site', '/', 200)]:
                answer = live.ask('GET', path, **{'Sec-Fetch-Site': site})
                self.assertEqual(answer.status, status, (site, path))
                self.assertEqual(answer.getheader('Cross-Origin-Resource-Policy'), 'same-origin')

    def test_beyond_loopback_a_token_is_asked_for(self):
        with Live('--bind', '0.0.0.0') as live:
            token = urlsplit(live.url).query
            self.assertEqual(urlsplit(live.url).hostname, '127.0.0.1', 'what a browser of this machine opens')
            self.assertGreaterEqual(len(token), len('token=') + 32)
            for path in ['/', '/video', '/events', '/status', '/?token=wrong', '/?token=']:
                self.assertEqual(live.ask('GET', path).status, 403, path)
            answer = live.ask('GET', '/?' + token)
            self.assertEqual(answer.status, 200)
            cookie = answer.getheader('Set-Cookie')
            self.assertIn('HttpOnly', cookie)
            cookie = cookie.split(';')[0]
            self.assertEqual(live.ask('GET', '/status', Cookie='other=1; ' + cookie).status, 200)
            address = live.ask('GET', '/address', Cookie=cookie).read().decode()
            if address:  # a machine without network has none
                self.assertEqual((urlsplit(address).port, urlsplit(address).query), (live.port, token))
                self.assertNotIn(urlsplit(address).hostname, ('127.0.0.1', '0.0.0.0'))
                self.assertIn(b'<svg', live.ask('GET', '/address.svg', Cookie=cookie).read())
            self.assertEqual(live.ask('GET', '/status', Cookie=cookie + '0').status, 403)

    def test_a_wrong_command_line_is_one_sentence(self):
        for arguments, words in [(['--bind', 'here'], 'a numeric address'), (['--video', 'none.mp4'], 'none.mp4'),
                                 (['--decoder', 'none'], "no decoder 'none'"), (['--frames', '3'], '--frames'), (['--camera', '/dev/no-camera'], 'there is no camera /dev/no-camera; plug one in'),
                                 (['--port', '99999'], 'not in range [0 - 65535]'), (['--labels', CLIP_SCRIPT, '--labels', CLIP_SCRIPT], 'once for each --model'), (['--video', CLIP_SCRIPT], CLIP_SCRIPT), (['--token', 'a b'], 'a token has')]:
            base = [] if {'--video', '--camera'} & set(arguments) else ['--video', CLIP]
            port = [] if '--port' in arguments else ['--port', '0']
            done = subprocess.run([PROGRAM, *port, '--model', MODEL, *base, *arguments], capture_output=True, text=True,
                                  timeout=60)
            self.assertIn(done.returncode, (1, 2), arguments)
            self.assertIn(words, done.stderr)
            self.assertNotIn('CRITICAL', done.stderr)
            if '--camera' in arguments:
                self.assertEqual(done.stdout, '', 'no address where there is nothing to look at')


@unittest.skipUnless(browser.found(), 'there is no chromium')
class LiveInABrowser(unittest.TestCase):
    def test_the_page_shows_pictures_and_figures_and_changes_settings(self):
        with Live('--model', MODEL) as live, browser.Browser() as page:
            page.open(live.url)
            page.wait_until('Number(document.body.dataset.frames) > 10')
            page.wait_until('document.getElementById("video").naturalWidth > 0')
            self.assertEqual(page.evaluate('document.getElementById("model").options.length'), 2)
            page.wait_until('Number(document.getElementById("fps").textContent) > 0')
            page.evaluate('(() => { const t = document.getElementById("threshold"); t.value = 0.7;'
                          ' t.dispatchEvent(new Event("change")); })()')
            live.wait_for(lambda s: s.get('threshold') == 0.7)
            page.wait_until('document.getElementById("score").textContent === "0.70"')
            page.evaluate('(() => { const m = document.getElementById("model"); m.value = 1;'
                          ' m.dispatchEvent(new Event("change")); })()')
            live.wait_for(lambda s: s['model'] == 1)
            # The picture in the page is that of the stream: its middle changes.
            drawn = ('(() => { const v = document.getElementById("video"), c = document.createElement("canvas");'
                     ' c.width = v.naturalWidth; c.height = v.naturalHeight; const g = c.getContext("2d"); g.drawImage(v, 0, 0);'
                     ' return g.getImageData(0, 0, c.width, c.height).data.reduce((a, b) => a + b, 0); })()')
            sums = set()
            while len(sums) < 3:
                sums.add(page.evaluate(drawn))
            # The slider acts while it moves, and the keyboard does the same.
            page.evaluate('(() => { const t = document.getElementById("threshold"); t.value = 0.35;'
                          ' t.dispatchEvent(new Event("input")); })()')
            live.wait_for(lambda s: s.get('threshold') == 0.35)
            page.evaluate('document.getElementById("threshold").dispatchEvent(new Event("change"))')
            press = 'document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "%s", bubbles: true}))'
            page.evaluate(press % '+')
            live.wait_for(lambda s: s.get('threshold') == 0.4)
            page.evaluate(press % '0')
            live.wait_for(lambda s: s['threshold'] == s['own_threshold'])
            page.evaluate(press % '1')
            live.wait_for(lambda s: s['model'] == 0)
            page.wait_until('document.getElementById("notice").classList.contains("shown")')
            page.wait_until('!document.getElementById("notice").classList.contains("shown")')
            page.wait_until('document.querySelectorAll("#fps-plot path").length === 1')
            for width, height in [(1280, 800), (390, 844)]:
                page.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
                self.assertEqual(page.evaluate('document.documentElement.scrollWidth'), width, 'nothing is cut off')
                if folder := os.environ.get('VARTML_SCREENSHOTS'):
                    page.screenshot(os.path.join(folder, f'live-{width}.png'))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
