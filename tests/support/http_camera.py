# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on the loopback: /film is FILM, /camera sends PICTURE (JPEG) ten times a second, without an end.

usage: http_camera.py PORT FILM PICTURE          prints "ready"; "drop" on standard input ends all responses"""
import http.server
import os
import pathlib
import socketserver
import sys
import threading
import time

port, film, picture = int(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes(), pathlib.Path(sys.argv[3]).read_bytes()
drops = 0


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        if self.path == '/film':
            self.send_header('Content-Length', str(len(film)))
            self.end_headers()
            self.wfile.write(film)
            return
        self.send_header('Content-Type', 'multipart/x-mixed-replace;boundary=next')
        self.end_headers()
        before = drops
        while drops == before:
            self.wfile.write(b'--next\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n' % len(picture) + picture + b'\r\n')
            time.sleep(0.1)

    def log_message(self, *_):
        pass


# Not HTTPServer, which asks the name server for its own name.
socketserver.ThreadingTCPServer.allow_reuse_address = True
server = socketserver.ThreadingTCPServer(('127.0.0.1', port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print('ready', flush=True)
for line in sys.stdin:
    drops += 1
os._exit(0)
