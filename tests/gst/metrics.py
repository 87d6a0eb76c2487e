#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vartmlmetrics: what Prometheus's own parser reads is what the elements' property stats says.

  metrics.py MODEL
"""
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    sys.exit(77)  # python3-prometheus-client is not installed

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from ports import free_port  # noqa: E402

PORT = free_port()
os.environ['GST_TRACERS'] = f'vartmlmetrics(port={PORT})'
import gi  # noqa: E402
gi.require_version('Gst', '1.0')
from gi.repository import Gst  # noqa: E402

ADDRESS = f'http://127.0.0.1:{PORT}'
MODEL = os.path.abspath(sys.argv.pop(1))


def samples():
    """Name and labels of each sample to its value."""
    with urllib.request.urlopen(ADDRESS + '/metrics', timeout=60) as reply:
        assert reply.headers['Content-Type'].startswith('text/plain; version=0.0.4'), reply.headers
        text = reply.read().decode()
    return {(s.name, tuple(sorted(s.labels.items()))): s.value
            for family in text_string_to_metric_families(text) for s in family.samples}


def numbers_of(stats, element):
    """What samples() has to say of a structure."""
    found, labels = {}, {'pipeline': 'pipe"line', 'element': element}
    for i in range(stats.n_fields()):
        field = stats.nth_field_name(i)
        if stats.get_field_type(field).name == 'GstValueArray':
            continue  # which Python does not read
        value = stats.get_value(field)
        if isinstance(value, (bool, int, float)):
            name = f'{stats.get_name().removesuffix("-stats")}-{field}'.replace('-', '_')
            found[name, tuple(sorted(labels.items()))] = float(value)
    return found


def drip(client):
    try:
        while True:
            client.send(b'E')
            time.sleep(0.1)
    except OSError:
        pass


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Gst.init(None)
        cls.cache = tempfile.TemporaryDirectory()

    def test_samples_are_what_stats_says(self):
        pipeline = Gst.parse_launch(
            f'videotestsrc num-buffers=20 ! video/x-raw,width=320,height=240 ! vartmlinfer name=infer model={MODEL} '
            f'cache-dir={self.cache.name} ! vartmldecode name=decode ! vartmltrack name=track ! '
            'vartmlzones name=zones zones="left=0,0 0.5,0 0.5,1 0,1" ! vartmloverlay name=overlay ! '
            'vartmlpublish name=publish method=file location=/dev/null ! fakesink')
        pipeline.set_name('pipe"line')
        pipeline.set_state(Gst.State.PLAYING)
        message = pipeline.get_bus().timed_pop_filtered(300 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        self.assertEqual(message.type, Gst.MessageType.EOS, message.get_structure())
        found = samples()
        expected = {}
        for name in ('infer', 'decode', 'track', 'zones', 'overlay', 'publish'):
            expected |= numbers_of(pipeline.get_by_name(name).get_property('stats'), name)
        self.assertGreater(len(expected), 50)
        self.assertEqual({k: found.get(k) for k in expected}, expected)
        of_infer = (('element', 'infer'), ('pipeline', 'pipe"line'))
        self.assertEqual(found['vartml_infer_frames', of_infer], 20)
        self.assertEqual(found['vartml_decode_frames', (('element', 'decode'), of_infer[1])], 20)
        zone = (('element', 'zones'), ('name', 'left'), of_infer[1])
        self.assertEqual(found['vartml_zone_inside', zone], 0)
        self.assertEqual(set(found) - set(expected), {(n, zone) for n in (
            'vartml_zone_inside', 'vartml_zone_in', 'vartml_zone_out', 'vartml_zone_longest')})
        # What is gone is told no longer.
        pipeline.set_state(Gst.State.NULL)
        del pipeline, message
        self.assertEqual(samples(), {})

    def test_elements_of_one_name_in_several_bins_are_told_apart(self):
        pipeline = Gst.Pipeline.new('twins')
        for name in ('left', 'right'):
            part = Gst.parse_bin_from_description('vartmloverlay name=draw', True)
            part.set_name(name)
            pipeline.add(part)
        found = [dict(labels) for name, labels in samples() if name == 'vartml_overlay_frames']
        self.assertEqual(sorted(labels['element'] for labels in found if labels['pipeline'] == 'twins'),
                         ['left/draw', 'right/draw'])

    def test_a_client_that_speaks_slowly_keeps_nobody_out(self):
        overlay = Gst.ElementFactory.make('vartmloverlay')
        self.assertIsNotNone(overlay)
        with socket.create_connection(('127.0.0.1', PORT)) as slow:
            threading.Thread(target=drip, args=[slow], daemon=True).start()
            slow.send(b'G')
            self.assertTrue(samples())

    def test_silent_clients_do_not_add_up(self):
        overlay = Gst.ElementFactory.make('vartmloverlay')
        self.assertIsNotNone(overlay)
        with contextlib.ExitStack() as idle:
            for _ in range(100):
                idle.enter_context(socket.create_connection(('127.0.0.1', PORT)))
            self.assertTrue(samples())
            # Each has its two seconds from when it came, not from when those before it have ended.
            last = idle.enter_context(socket.create_connection(('127.0.0.1', PORT)))
            last.settimeout(60)
            self.assertEqual(last.recv(1), b'')

    def test_other_requests_are_refused(self):
        for path, data, status in (('/', None, 404), ('/metricsx', None, 404), ('/metrics', b'x', 405)):
            overlay = Gst.ElementFactory.make('vartmloverlay')  # it listens with the first
            self.assertIsNotNone(overlay)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(ADDRESS + path, data=data, timeout=60)
            self.assertEqual(refused.exception.code, status, path)
            refused.exception.close()

    def test_a_mistake_is_one_sentence(self):
        overlay = Gst.ElementFactory.make('vartmloverlay')
        self.assertIsNotNone(overlay)
        for parameters, words in (
                ('prot=1', "parameter 'prot' is unknown; there are address and port"),
                ('port=0', "parameter 'port' is 0, expected from 1 to 65535"),
                ('address=camera,port=1', "address 'camera' is none of this machine"),
                (f'port={PORT}', f'cannot listen on 127.0.0.1 port {PORT}: ')):
            run = subprocess.run(
                ['gst-launch-1.0', '-q', 'videotestsrc', 'num-buffers=2', '!', 'vartmloverlay', '!', 'fakesink'],
                env=os.environ | {'GST_TRACERS': f'vartmlmetrics({parameters})', 'G_DEBUG': ''},
                capture_output=True, text=True)
            self.assertIn('vartmlmetrics is not active: ' + words, run.stderr)
            self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == '__main__':
    unittest.main()
