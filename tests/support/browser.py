# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its DevTools protocol: opens a page, evaluates expressions, takes screenshots."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import gi

gi.require_version('Soup', '3.0')
from gi.repository import GLib, Soup  # noqa: E402


def found():
    return shutil.which('chromium')


class Browser:
    """Raises TimeoutError with the browser's own words where it does not answer."""

    def __init__(self, width=1280, height=800):
        self.folder = tempfile.mkdtemp(prefix='browser-')
        self.log = open(os.path.join(self.folder, 'log'), 'w+')
        self.process = subprocess.Popen(
            [found(), '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
             '--disable-background-networking', '--disable-component-update', '--hide-scrollbars',
             f'--window-size={width},{height}', f'--user-data-dir={self.folder}', '--remote-debugging-port=0', 'about:blank'],
            stdout=self.log, stderr=self.log)
        self.loop = GLib.MainContext.default()
        self.answers, self.number = {}, 0
        self.socket = None
        self._connect()
        self.call('Page.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def _connect(self):
        port_file = pathlib.Path(self.folder, 'DevToolsActivePort')
        self._wait(lambda: port_file.exists() and len(port_file.read_text().split()) == 2, 'the browser to start')
        port = port_file.read_text().split()[0]
        session = Soup.Session()
        pages = json.loads(session.send_and_read(Soup.Message.new('GET', f'http://127.0.0.1:{port}/json/list'), None).get_data())
        url = next(page['webSocketDebuggerUrl'] for page in pages if page['type'] == 'page')
        message = Soup.Message.new('GET', url.replace('ws://', 'http://'))

        def connected(source, result):
            self.socket = source.websocket_connect_finish(result)

        session.websocket_connect_async(message, None, None, GLib.PRIORITY_DEFAULT, None, connected)
        self._wait(lambda: self.socket is not None, 'a connection')
        self.socket.set_max_incoming_payload_size(0)
        self.socket.connect('message', self._message)
        self.session = session

    def _message(self, _socket, _kind, data):
        answer = json.loads(data.get_data())
        if 'id' in answer:
            self.answers[answer['id']] = answer

    def _wait(self, ready, what, seconds=60):
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end or self.process.poll() is not None:
                self.log.seek(0)
                raise TimeoutError(f'waited for {what}: {self.log.read()[-2000:]}')
            if not self.loop.iteration(False):
                time.sleep(0.01)

    def call(self, method, **parameters):
        self.number += 1
        number = self.number
        self.socket.send_text(json.dumps({'id': number, 'method': method, 'params': parameters}))
        self._wait(lambda: number in self.answers, method)
        answer = self.answers.pop(number)
        if 'error' in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer['result']

    def open(self, url):
        self.call('Page.navigate', url=url)
        self.wait_until('location.href !== "about:blank" && document.readyState === "complete"')

    def evaluate(self, expression):
        """The value of a JavaScript expression, or of the promise that it is."""
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result['result'].get('value')

    def wait_until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(f'it never became true: {expression}')
            time.sleep(0.1)

    def screenshot(self, file):
        with open(file, 'wb') as out:
            out.write(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
