"""A server of files as GitHub Pages is one: below a path, without special headers."""

import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE_URL = "https://gradstep.github.io/gradstep/"
BELOW = "/gradstep/"


class _Files(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }
    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self):
        self.server.asked.append(self.path)
        name = self.path.rpartition("/")[2]
        if not self.path.startswith(BELOW):
            self.send_error(404)
        elif name == "sitemap.xml":  # by which instant navigation knows the pages
            published = Path(self.translate_path(self.path)).read_text()
            self._send(published.replace(SITE_URL, self.server.url).encode())
        elif name in self.server.damaged:
            self._send(self.server.damaged[name])
        else:
            super().do_GET()

    def _send(self, content):
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(content)

    def translate_path(self, path):
        return super().translate_path(path.removeprefix(BELOW[:-1]))

    def log_message(self, *message):
        """Tests look at `asked` instead."""


class Server(ThreadingHTTPServer):
    """Serves a folder; `asked` has the path of each request, `damaged` other contents by name."""

    daemon_threads = True

    def __init__(self, folder):
        self.asked = []
        self.damaged = {}
        super().__init__(("127.0.0.1", 0), lambda *request: _Files(*request, directory=str(folder)))

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        """The address of the site."""
        return f"http://127.0.0.1:{self.server_port}{BELOW}"

    def handle_error(self, request, client_address):
        """A browser that closes does not finish its requests."""
