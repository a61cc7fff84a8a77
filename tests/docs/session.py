"""A reader's terminal: the samples of one page, one after the other.

All of them share a shell, a folder and the servers that the page starts. What is not as
for a reader, and why:

- A command that would start a server (`dayfly --memory`, `cargo run --release`) starts it
  in the background, and ends when it has said `Started`. One that the page started on the
  same port before is stopped first, as a reader would with Ctrl-C. With port 0 it is as it
  is: that is how a program starts one.
- Ports are free ones of this machine: a number that stands as a port somewhere on the
  page is replaced in all its samples.
- `set -eu`, and `curl` fails when the answer is an error: a sample that does nothing is
  no good sample.
- What the page has the reader install is there already, or the sample fails. A sample
  that begins with a comment such as `// carts.mjs` is saved under that name.
- Commands that would reach past the page's folder and servers fail. Such samples are
  marked.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from page import Block, Page

LIMIT_SECONDS = 120

PORT = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0|--(?:compute-)?listen[ =]):?(\d{2,5})\b")
DEFAULT_PORT = "8081"

TOOLS = Path(__file__).resolve().parent / "tools"

# Whom to trust is for the page to say.
TRUST = {"CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"}

# They act on more than this page's folder and servers, or need what tests do not have.
REFUSED = """apt apt-get brew docker docker-compose gh git helm killall kubectl pip3 pkill podman
service ssh sudo systemctl""".split()

PRELUDE = """
set -euo pipefail
trap 'echo "(the command of line $LINENO ended with $?)"' ERR
"""


class Failure(Exception):
    """A sample did not do what it should; says what it printed."""


class Session:
    """A terminal for one page; at the end of its `with` block all it started is gone."""

    def __init__(self, page: Page, binary: Path, venv: Path, modules: Path):
        self.page = page
        self.folder = Path(tempfile.mkdtemp(prefix="dayfly-samples-"))
        self.work = self.folder / "work"
        self.ports = free_ports(page)
        self._count = 0
        for name in ("work", "refused", "home", "servers"):
            (self.folder / name).mkdir()
        for name in REFUSED:
            (self.folder / "refused" / name).symlink_to(TOOLS / "refused")
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            text=True, cwd=self.work, env=self._environment(binary, venv, modules), start_new_session=True,
        )  # fmt: skip
        self._say(PRELUDE)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        # All that the page started is in the shell's session.
        try:
            os.killpg(self._shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._shell.wait()
        self._shell.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, block: Block) -> None:
        """Runs a sample. Raises a `Failure`."""
        if block.first:
            self._run(block, "sh", block.first)
        self._run(block, block.language, block.text)

    def _run(self, block: Block, language: str, text: str) -> None:
        self._count += 1
        for port, free in self.ports.items():
            text = re.sub(rf"(?<![\d.]){port}(?!\.?\d)", free, text)
        if language in ("sh", "bash"):
            command = f". {self._save(block, '', text)}"
        elif language == "python":
            command = f"python3 {self._save(block, '.py', text)}"
        else:
            command = f"node {self._save(block, '.mjs', text)}"
        self._wait(command)

    def _save(self, block: Block, ending: str, text: str) -> Path:
        """Makes a file of the sample, in or below the folder where Node.js finds modules."""
        if block.file:
            (self.work / block.file).write_text(text)
            return self.work / block.file
        folder = self.work / ".samples" / str(self._count)
        folder.mkdir(parents=True)
        file = folder / (self.page.name.replace("/", ".") + ending)
        # With the lines above it messages tell the page's lines.
        file.write_text("\n" * (block.line - 1) + text)
        return file

    def _wait(self, command: str) -> None:
        printed, done = (self.folder / f"{name}-{self._count}" for name in ("printed", "done"))
        printed.touch()
        self._say(f"{{ {command}\n}} >{printed} 2>&1 </dev/null; echo >{done}")
        limit = time.monotonic() + LIMIT_SECONDS
        while not done.exists():
            if self._shell.poll() is not None:
                # It may have been the last thing that the shell did.
                if done.exists():
                    break
                raise Failure(self._told(printed))
            if time.monotonic() > limit:
                raise Failure(self._told(printed) + f"(not done after {LIMIT_SECONDS} s)\n")
            time.sleep(0.01)

    def _told(self, printed: Path) -> str:
        told = printed.read_text(errors="replace")
        for log in sorted((self.folder / "servers").glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()
            told += f"(the server on port {log.stem} said, at the end)\n"
            told += "".join(f"  {line}\n" for line in lines[-12:])
        return told.replace(str(self.work / ".samples"), "")

    def _say(self, line: str) -> None:
        try:
            self._shell.stdin.write(line + "\n")
            self._shell.stdin.flush()
        except BrokenPipeError:
            pass

    def _environment(self, binary: Path, venv: Path, modules: Path) -> dict[str, str]:
        # The server takes every DAYFLY_ variable for a setting.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("DAYFLY_") and name not in TRUST
        }
        direct = [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "localhost", "127.0.0.1"]
        here = self.ports[DEFAULT_PORT]
        return inherited | {
            "PATH": f"{TOOLS}:{self.folder / 'refused'}:{venv / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.folder / "home" / ".cache"),
            "NO_PROXY": ",".join(filter(None, direct)),
            "no_proxy": ",".join(filter(None, direct)),
            "PYTHONDONTWRITEBYTECODE": "1",
            # A page that says nothing of an address means the usual one.
            "DAYFLY_LISTEN": f"localhost:{here}",
            "DAYFLY_ENDPOINT": f"http://localhost:{here}",
            "SAMPLES_BINARY": str(binary),
            "SAMPLES_PATH": os.environ["PATH"],
            "SAMPLES_SERVERS": str(self.folder / "servers"),
            "SAMPLES_MODULES": str(modules),
        }


def free_ports(page: Page) -> dict[str, str]:
    """A free port for each that stands on the page."""
    wanted = {DEFAULT_PORT}
    for block in page.blocks:
        wanted.update(PORT.findall(block.text + (block.first or "")))
    # All are held until all are found, so that no two are the same.
    held = [socket.create_server(("127.0.0.1", 0)) for _ in wanted]
    ports = [str(listener.getsockname()[1]) for listener in held]
    for listener in held:
        listener.close()
    return dict(zip(sorted(wanted), ports))
