"""A pytest plugin: writes one line of JSON for each test to the file SUITE_REPORT.

A line is written when the test is over, so a process that dies leaves what it
knew. A test that is about to run has a line too: the last one without an end is
the one that took the process with it.
"""

import json
import os
import re

MARKS = ("cosmosEmulator", "cosmosLong", "cosmosQuery", "cosmosSplit")
LONGEST_ERROR = 2000

# Some tests are named after containers that have another name in each run.
RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_marks = {}
_phases = {}


def pytest_collection_modifyitems(items):
    for item in items:
        _marks[item.nodeid] = [mark for mark in MARKS if item.get_closest_marker(mark)]


def pytest_collection_finish(session):
    _write(collected=len(session.items))
    # Counts for those that never start, because the process ends before them.
    for item in session.items:
        marks = _marks.get(item.nodeid, [])
        _write(test=item.nodeid, outcome="collected", error="the file ended before it", marks=marks)


def pytest_collectreport(report):
    if report.failed:
        _write(test=report.nodeid, outcome="failed", error=str(report.longrepr), marks=[])


def pytest_runtest_logstart(nodeid):
    _phases[nodeid] = []
    _write(test=nodeid, outcome="started", marks=_marks.get(nodeid, []))


def pytest_runtest_logreport(report):
    _phases.setdefault(report.nodeid, []).append(report)


def pytest_runtest_logfinish(nodeid):
    phases = _phases.pop(nodeid, [])
    failed = [phase for phase in phases if phase.failed]
    skipped = [phase for phase in phases if phase.skipped]
    told = failed or skipped
    _write(
        test=nodeid,
        outcome="failed" if failed else "skipped" if skipped else "passed",
        seconds=round(sum(phase.duration for phase in phases), 3),
        error=_sentence(told[0]) if told else "",
        marks=_marks.get(nodeid, []),
    )


def _sentence(phase):
    """The last words of a failure, which are the exception and its message."""
    told = phase.longrepr
    crash = getattr(told, "reprcrash", None)
    if crash is not None:
        return f"{phase.when}: {crash.message}"
    return f"{phase.when}: {told[2] if isinstance(told, tuple) else told}"


def _write(**line):
    if "test" in line:
        line["test"] = RANDOM.sub("RANDOM", line["test"])
    if "error" in line:
        line["error"] = line["error"][:LONGEST_ERROR]
    with open(os.environ["SUITE_REPORT"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
