"""An HTTP server that misbehaves as its path says."""

import http.server
import threading
import time


class Mischief:
    def __init__(self, photo):
        with open(photo, "rb") as file:
            Answer.photo = file.read()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.server.daemon_threads = True
        self.address = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()


class Answer(http.server.BaseHTTPRequestHandler):
    photo = b""

    def do_GET(self):
        photo, path = Answer.photo, self.path.strip("/")
        if path == "photo":
            self.answer(200, photo)
        elif path == "slow":
            self.answer(200, photo[:1000], len(photo))
            for start in range(1000, len(photo), 6000):
                time.sleep(0.1)
                self.wfile.write(photo[start:start + 6000])
        elif path == "redirect":
            self.answer(302, b"", location="/photo")
        elif path == "break":
            self.answer(200, photo[: len(photo) // 2], len(photo))
        elif path == "rubbish":
            self.wfile.write(b"\x01\x02 nonsense\r\n\r\n")
        elif path == "text":
            self.answer(200, b"<html>no picture</html>")
        else:
            self.answer(404, b"")

    def answer(self, status, body, length=None, location=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Connection", "close")
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass
