"""The samples of the README and of our pytest plugin, run as the pages have them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def first_sample(page):
    return re.search(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[1]


def test_the_sample_of_the_readme_runs(client, server, scheme):
    sample = first_sample("README.md")
    here = sample.replace("http://localhost:8081", server.address(scheme))
    assert here != sample
    printed = subprocess.run([sys.executable, "-W", "ignore", "-c", here], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert "'items': 3" in printed.stdout
    client.delete_database("shop")


def test_the_sample_of_the_plugin_runs(tmp_path):
    (tmp_path / "test_carts.py").write_text(first_sample("helpers/python/README.md"))
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    printed = subprocess.run(pytest, cwd=tmp_path, capture_output=True, text=True)
    assert printed.returncode == 0, printed.stdout
    assert "1 passed" in printed.stdout
