"""celery keeps the results of its tasks here, by pydocumentdb, the client before azure-cosmos."""

from urllib.parse import quote, urlsplit

import pytest
from celery import Celery, chord, group
from celery.contrib.testing.worker import start_worker
from celery.result import AsyncResult
from pydocumentdb.document_client import DocumentClient

HOUR = 3600


@pytest.fixture(scope="module")
def app(dayfly_server):
    """An app with a worker, which makes its database and its container by itself."""
    port = urlsplit(dayfly_server.endpoint).port
    backend = f"cosmosdbsql://:{quote(dayfly_server.key, safe='')}@localhost:{port}"
    app = Celery("programs", broker="memory://", backend=backend)

    @app.task(name="divide")
    def divide(a, b):
        return a / b

    @app.task(name="add")
    def add(numbers):
        return sum(numbers)

    with start_worker(app, pool="solo", perform_ping_check=False):
        yield app


def divide(app, *numbers):
    return app.tasks["divide"].delay(*numbers)


def look_up(app, task):
    """The task as a process sees it that knows no more than the id."""
    app.backend._cache.clear()
    return AsyncResult(task.id, app=app)


def test_a_result_is_kept_and_forgotten(app):
    task = divide(app, 6, 3)
    assert task.get(timeout=30) == 2
    assert look_up(app, task).state == "SUCCESS"
    assert look_up(app, task).result == 2

    look_up(app, task).forget()
    assert look_up(app, task).state == "PENDING"
    look_up(app, task).forget()


def test_a_failure_is_kept(app):
    with pytest.raises(ZeroDivisionError):
        divide(app, 1, 0).get(timeout=30)


def test_a_group_is_kept(app):
    tasks = group(app.tasks["divide"].s(n, 1) for n in range(5))()
    assert tasks.get(timeout=30) == [0, 1, 2, 3, 4]
    tasks.save()
    assert app.GroupResult.restore(tasks.id).get() == [0, 1, 2, 3, 4]


def test_a_task_waits_for_others(app):
    parts = [app.tasks["divide"].s(n, 1) for n in range(5)]
    assert chord(parts)(app.tasks["add"].s()).get(timeout=30) == 10


def test_a_result_expires_by_the_containers_default(dayfly_server, app):
    client = DocumentClient(dayfly_server.endpoint, {"masterKey": dayfly_server.key})
    container = client.ReadCollection("dbs/celerydb/colls/celerycol")
    client.ReplaceCollection(container["_self"], {**container, "defaultTtl": HOUR})

    task = divide(app, 6, 3)
    assert task.get(timeout=30) == 2
    dayfly_server.advance(HOUR - 1)
    assert look_up(app, task).state == "SUCCESS"
    dayfly_server.advance(1)
    assert look_up(app, task).state == "PENDING"
