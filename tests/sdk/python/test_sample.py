"""The samples of the README and of docs/sdks.md, run as the pages have them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_sample_of_the_readme_runs(client, server, scheme):
    [sample] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    here = sample.replace("http://localhost:8081", server.endpoint(scheme))
    assert here != sample
    printed = subprocess.run([sys.executable, "-W", "ignore", "-c", here], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert "'items': 3" in printed.stdout
    client.delete_database("shop")
