"""A local HTTP server that stands for the internet, and can misbehave in chosen ways."""

from __future__ import annotations

import hashlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


class Handler(BaseHTTPRequestHandler):
    """Serves ``files``; what ``faults`` holds for a path goes wrong, one fault a request.

    A fault is ``"500"``, ``"412"``, ``"half"`` (announces all, sends half), ``"stall"`` (sends
    half, then nothing), ``"wrong-range"`` (answers a range with another) or ``"no-range"`` (ignores
    it).
    """

    files: ClassVar[dict[str, bytes]] = {}
    faults: ClassVar[dict[str, list[str]]] = {}
    seen: ClassVar[list[tuple[str, str | None, int]]] = []
    tells_version: ClassVar[bool] = True
    heeds_if_range: ClassVar[bool] = True
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path
        asked = self.headers.get("Range")
        queue = self.faults.get(path, [])
        fault = queue.pop(0) if queue else ""
        content = self.files.get(path)
        if fault in ("500", "412"):
            return self._answer(int(fault), b"", asked)
        if content is None:
            return self._answer(404, b"")
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"' if self.tells_version else ""
        if asked and self.heeds_if_range and self.headers.get("If-Range", etag) != etag:
            asked = None
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if fault == "no-range":
            start, asked = 0, None
        if asked and start >= len(content):
            return self._answer(416, b"", asked)
        if fault == "wrong-range":
            start += 1
        body = content[start:]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = body[: len(body) // 2] if fault in ("half", "stall") else body
        # Noted before it is sent: once the client has it, the test may look.
        self.seen.append((path, asked, len(sent)))
        self.wfile.write(sent)
        self.wfile.flush()
        if fault == "stall":
            time.sleep(3)
        self.close_connection = True
        return None

    def _answer(self, status, body, asked=None):
        self.seen.append((self.path, asked, -status))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()

    def log_message(self, *args):
        pass


class Server:
    """The server, its address, and what it was asked."""

    def __init__(self):
        # A class of its own, so that two tests share nothing.
        self.handler = type("Own", (Handler,), {"files": {}, "faults": {}, "seen": []})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def files(self):
        return self.handler.files

    @property
    def faults(self):
        return self.handler.faults

    @property
    def seen(self):
        return self.handler.seen

    def close(self):
        self.http.shutdown()
        self.http.server_close()
