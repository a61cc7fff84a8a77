"""The pytest plugin: its clock, its reset, and its end."""

import subprocess
import sys

import pytest
from azure.cosmos import CosmosClient
from pytest_dayfly import Dayfly


@pytest.mark.parametrize(
    ("span", "seconds"),
    [(0, 0), (90, 90), ("45", 45), ("45s", 45), ("30m", 1800), ("12h", 43200), ("90d", 7776000), ("2w", 1209600)],
)
def test_the_clock_stands_still_and_moves_by_spans(dayfly, span, seconds):
    before = dayfly.now()
    dayfly.advance(span)
    assert dayfly.now() == before + seconds


@pytest.mark.parametrize("span", [-1, 1.5, "1y", "", "d"])
def test_what_is_no_span_moves_nothing(dayfly, span):
    before = dayfly.now()
    with pytest.raises(ValueError, match="no span of time"):
        dayfly.advance(span)
    assert dayfly.now() == before


def test_the_clock_runs_and_is_stopped(dayfly):
    for change, frozen in [(dayfly.run, False), (dayfly.freeze, True)]:
        change()
        assert dayfly.admin("clock")["frozen"] == frozen


@pytest.mark.parametrize("nth", [1, 2])
def test_each_test_finds_the_server_empty(dayfly, nth):
    with CosmosClient.from_connection_string(dayfly.connection_string) as client:
        assert list(client.list_databases()) == []
        client.create_database("shop")


def test_a_server_ends_with_the_process_that_is_killed():
    code = "import os, pytest_dayfly; pytest_dayfly.Dayfly(); print('here', flush=True); os.kill(os.getpid(), 9)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # The server has the other end of this pipe, too: it ends when all of them have.
    printed, errors = process.communicate(timeout=60)
    assert (printed, errors, process.returncode) == ("here\n", "", -9)


@pytest.mark.parametrize("binary", ["no-such-dayfly", "false"])
def test_a_server_that_does_not_start_says_so(monkeypatch, binary):
    monkeypatch.setenv("DAYFLY_BIN", binary)
    with pytest.raises(RuntimeError, match=f"'{binary}' did not start"):
        Dayfly()
