# SPDX-License-Identifier: Apache-2.0
"""A small hub on loopback: the replies of Hugging Face that llama.cpp uses, and files from a second address like its
CDN."""

import contextlib
import hashlib
import http.server
import json
import re
import threading


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        hub = self.server.hub
        with hub.lock:
            hub.requests.append((self.command, self.path, dict(self.headers)))
        if self.server is hub.cdn:
            return self.file(self.path.rpartition("/")[2])
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(refs|tree/(\w+)\?recursive=true)|/([^/]+/[^/]+)/resolve/(\w+)/(.+)", self.path)
        if not found:
            return self.send(404, {"error": "no such route"})
        name = found[1] or found[4]
        if self.refused(name):
            return None
        if found[1] and found[2] == "refs":
            return self.send(200, {"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": hub.commit(name)}], "tags": []})
        if found[1]:
            return self.send(200, hub.tree(name))
        if found[6] in hub.statuses:
            return self.send(hub.statuses[found[6]], {"error": "refused"})
        data = hub.repositories[name][found[6]]
        return self.send(302, {}, Location=f"http://127.0.0.1:{hub.cdn.server_port}/{sha256(data)}")

    def refused(self, name):
        hub = self.server.hub
        status = hub.statuses.get(name)
        if status is None and name in hub.private and self.headers["Authorization"] != f"Bearer {hub.private[name]}":
            status = 401
        if status is None and name not in hub.repositories:
            status = 404 if self.headers["Authorization"] else 401
        if status is not None:
            self.send(status, {"error": "refused"})
        return status is not None

    def send(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def file(self, checksum):
        hub = self.server.hub
        data = hub.sent[checksum]
        first = int(re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{checksum}"')
        self.send_header("Content-Length", str(hub.said_sizes.get(checksum, len(data)) - first))
        self.end_headers()
        if self.command == "HEAD":
            return
        end = hub.cuts.pop(0) if hub.cuts else len(data)
        with contextlib.suppress(ConnectionError):
            self.wfile.write(data[first:end])
            self.wfile.flush()
        if end < len(data):
            hub.reached.set()
            hub.go_on.wait()
            self.close_connection = True


class Hub:
    """A hub whose content and behaviour can be changed while it runs."""

    def __init__(self):
        self.lock = threading.Lock()
        self.repositories = {}  # name -> {path: bytes}
        self.private = {}  # name -> token
        self.statuses = {}  # repository or path -> status of a refusal
        self.sent = {}  # checksum -> bytes
        self.said_sizes = {}  # checksum -> wrong size
        self.changed_tree = lambda tree: tree
        self.cuts = []  # bytes after which each of the next downloads stops
        self.reached = threading.Event()  # a download has stopped
        self.go_on = threading.Event()  # the stopped download may end
        self.go_on.set()
        self.requests = []  # method, path, headers
        self.api, self.cdn = self.start(), self.start()
        self.address = f"http://127.0.0.1:{self.api.server_port}"

    def start(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.hub = self
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    def stop(self):
        self.go_on.set()
        for server in (self.api, self.cdn):
            server.shutdown()
            server.server_close()

    def put(self, name, files):
        self.repositories[name] = files
        self.sent.update({sha256(data): data for data in files.values()})

    def commit(self, name):
        return hashlib.sha1(repr(sorted((path, sha256(data)) for path, data in self.repositories[name].items())).encode()).hexdigest()

    def tree(self, name):
        tree = [{"type": "directory", "path": "folder", "oid": "0" * 40, "size": 0}]
        for path, data in sorted(self.repositories[name].items()):
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_blob(data)}
            if path.endswith(".gguf"):
                entry |= {"oid": "1" * 40, "lfs": {"oid": sha256(data), "size": len(data), "pointerSize": 135}}
            tree.append(entry)
        return self.changed_tree(tree)

    def downloads(self):
        """The path and the first byte of each download."""
        with self.lock:
            return [(path, int(headers.get("Range", "bytes=0-")[6:-1])) for method, path, headers in self.requests
                    if method == "GET" and path.count("/") == 1]  # fmt: skip
