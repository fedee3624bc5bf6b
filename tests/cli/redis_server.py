# SPDX-License-Identifier: Apache-2.0
"""A Redis server for one test."""

import shutil
import socket
import subprocess
import tempfile

import pytest
from program import wait_for

needs_redis = pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed")


class Redis:
    """Ends with its block. With the option --appendonly yes it comes back as it was when it is started again.

    It is killed, so every write must be in its file before it is answered: by default Redis may lose those of the last
    two seconds.
    """

    def __init__(self, *options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory(prefix="winnow-redis-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()

    def start(self):
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendfsync", "always", "--dir", self.folder.name, *self.options],
                                        stdout=subprocess.DEVNULL)  # fmt: skip
        wait_for(self.answers)

    def answers(self):
        """Whether the server accepts commands. A restarted server refuses them until it has loaded its data."""
        assert self.process.poll() is None, "redis-server has ended"
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as client:
                client.sendall(b"PING\r\n")
                return client.recv(8) not in (b"", b"-LOADING")
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()

    def url(self, database):
        return f"redis://127.0.0.1:{self.port}/{database}"
