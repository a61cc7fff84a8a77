"""The settings of a service, as docs/operations.md has them, start a server that is safe.

    DAYFLY_BIN=target/debug/dayfly python3 -m unittest discover --start-directory tests/docs
"""

import os
import re
import shutil
import ssl
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

from page import Page

ROOT = Path(__file__).resolve().parents[2]
BINARY = str(Path(os.environ["DAYFLY_BIN"]).resolve())


def dayfly(*arguments: str, **settings: str) -> subprocess.Popen:
    return subprocess.Popen(
        [BINARY, *arguments],
        env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def told(server: subprocess.Popen) -> str:
    """What a server prints until it has started."""
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line == "Started\n":
            break
    return "".join(lines)


def new_key() -> str:
    return dayfly("key").communicate()[0].strip()


class Settings(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="dayfly-operations-"))
        self.addCleanup(shutil.rmtree, self.folder)
        # A certificate with its key: for a file of each, the same will do.
        maker = dayfly("--memory", "--listen", "127.0.0.1:0", "--tls-dir", str(self.folder))
        self.assertIn("Started", told(maker))
        self.end(maker)
        shutil.copy(self.folder / "tls.pem", self.folder / "tls.key")
        self.key, self.read_only_key = new_key(), new_key()
        (self.folder / "key").write_text(self.key + "\n")
        self.settings = self.settings_of_the_page()

    def settings_of_the_page(self) -> dict[str, str]:
        """As systemd reads them, but for a folder, a port and a key that are there."""
        [block] = [block for block in Page(ROOT, "docs/operations.md").blocks if block.language == "ini"]
        lines = [line for line in block.text.splitlines() if line and not line.startswith("#")]
        settings = dict(line.split("=", 1) for line in lines)
        self.assertEqual((settings["DAYFLY_LISTEN"], settings["DAYFLY_READ_ONLY_KEY"]), (":8081", "…"))
        settings = {name: value.replace("/etc/dayfly", str(self.folder)) for name, value in settings.items()}
        return settings | {
            "DAYFLY_LISTEN": ":0",
            "DAYFLY_READ_ONLY_KEY": self.read_only_key,
            "DAYFLY_DATA": str(self.folder / "data"),
        }

    def end(self, server: subprocess.Popen) -> None:
        server.terminate()
        server.communicate(timeout=60)

    def test_they_start_a_server_on_the_network_with_either_key_over_https(self):
        server = dayfly(**self.settings)
        self.addCleanup(self.end, server)
        banner = told(server)
        self.assertNotIn(self.key, banner)
        [port] = re.findall(r"AccountEndpoint=https://.*:(\d+)/", banner)
        self.assertNotIn("AccountEndpoint=http:", banner)
        trust = ssl.create_default_context(cafile=self.folder / "tls.pem")
        ask = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
        )
        for key in (self.key, self.read_only_key):
            request = urllib.request.Request(
                f"https://localhost:{port}/_admin/v1/requests", headers={"authorization": f"Bearer {key}"}
            )
            self.assertEqual(ask.open(request).status, 200)

    def test_without_a_key_of_its_own_it_ends_with_2_and_a_sentence(self):
        del self.settings["DAYFLY_KEY_FILE"]
        server = dayfly(**self.settings)
        printed, log = server.communicate(timeout=60)
        self.assertEqual((server.returncode, printed), (2, ""))
        self.assertIn("known to everybody", log)


if __name__ == "__main__":
    unittest.main()
