"""A dayfly server for tests. Its clock stands still until a test moves it."""

import http.client
import json
import os
import re
import subprocess

import pytest

# Runs the server until standard input ends. The tests hold the other end of that pipe,
# so the server goes with them, however they go. Ctrl-C reaches all; the pipe follows.
LEASH = """
trap '' HUP INT TERM; "$@" & exec >/dev/null; cat; { kill -9 $!; wait; } 2>/dev/null
"""
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Dayfly:
    """A running server, with these flags, or else `--memory`. It ends with its `with` block."""

    def __init__(self, *flags):
        self._binary = os.environ.get("DAYFLY_BIN") or "dayfly"
        command = [self._binary, "--listen", "127.0.0.1:0", "--test-clock", *(flags or ["--memory"])]
        # The server takes every DAYFLY_ variable for a setting. Of those, it is given what to log.
        others = {name: value for name, value in os.environ.items() if not name.startswith("DAYFLY_")}
        others["DAYFLY_LOG"] = os.environ.get("DAYFLY_LOG") or "warn"
        self._process = subprocess.Popen(
            ["sh", "-c", LEASH, "sh", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=others,
        )
        self.connection_string, self.endpoint, self.key = self._read_banner()
        self.freeze()

    def advance(self, span):
        """Moves the clock forward, without waiting: by seconds, or by "90d", "12h", "30m", "2w"."""
        parts = re.fullmatch(r"(\d+)([smhdw]?)", str(span))
        if not parts:
            raise ValueError(f"{span!r} is no span of time such as 90 or '90d'")
        self.admin("clock", {"advanceSeconds": int(parts[1]) * SECONDS[parts[2]]})

    def freeze(self):
        """Stops the clock; it moves by `advance` alone."""
        self.admin("clock", {"frozen": True})

    def run(self):
        """Lets the clock run, from where it is."""
        self.admin("clock", {"frozen": False})

    def now(self):
        """What the clock shows, in seconds since 1970."""
        return self.admin("clock")["now"]

    def reset(self):
        """Removes all databases. The clock stays where it is."""
        self.admin("reset", {})

    def admin(self, call, change=None):
        """Any call of the admin API, such as `admin("containers/shop/carts/ttl")`."""
        port = int(self.endpoint.rstrip("/").rsplit(":")[-1])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request(
                "GET" if change is None else "POST",
                f"/_admin/v1/{call}",
                None if change is None else json.dumps(change),
                {"authorization": f"Bearer {self.key}"},
            )
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(text.decode())
        return json.loads(text)

    def stop(self):
        self._process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.stop()

    def _read_banner(self):
        banner = ""
        for line in self._process.stdout:
            banner += line
            if line == "Started\n":
                return re.search("(AccountEndpoint=(http:[^;]+);AccountKey=([^;]+);)", banner).groups()
        self.stop()
        raise RuntimeError(
            f"'{self._binary}' did not start. Is dayfly on the PATH, or in DAYFLY_BIN?\n{banner}"
        )


@pytest.fixture(scope="session")
def dayfly_server():
    """A server for all tests."""
    with Dayfly() as server:
        yield server


@pytest.fixture
def dayfly(dayfly_server):
    """The server, without what tests before this one left in it, and its clock stopped."""
    dayfly_server.reset()
    dayfly_server.freeze()
    return dayfly_server
