"""A dayfly server for the tests to talk to, and its clock."""

import json
import os
import re
import subprocess
import urllib.request
from pathlib import Path

SERVE = Path(__file__).parent.parent / "serve"


class Server:
    """A running server. Its clock stands still until a test moves it.

    At the end of its `with` block it is killed.
    """

    def __init__(self, *storage: str):
        self._process = subprocess.Popen(
            [SERVE, *storage], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port, self.key = self._read_banner()
        self._clock({"frozen": True})

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self._process.communicate()

    def endpoint(self, scheme: str) -> str:
        return f"{scheme}://localhost:{self.port}/"

    def advance(self, seconds: int) -> None:
        """Moves the clock forward, without waiting."""
        self._clock({"advanceSeconds": seconds})

    def now(self) -> int:
        return self._clock()["now"]

    def _read_banner(self):
        banner = ""
        for line in self._process.stdout:
            banner += line
            if line.strip() == "Started":
                break
        else:
            self._process.communicate()
            raise RuntimeError(f"{os.environ['DAYFLY_BIN']} ended before it had started:\n{banner}")
        found = re.search(r"AccountEndpoint=https://localhost:(\d+)/;AccountKey=([^;]+);", banner)
        return int(found[1]), found[2]

    def _clock(self, change=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/_admin/v1/clock",
            data=change and json.dumps(change).encode(),
            headers={"authorization": f"Bearer {self.key}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
