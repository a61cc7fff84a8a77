"""LangGraph keeps its checkpoints here: its own conformance tests, and a graph that goes on."""

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from langgraph_checkpoint_cosmosdb import CosmosDBSaver

WEEK = 7 * 24 * 60 * 60


@pytest.fixture
def make_saver(dayfly, monkeypatch):
    monkeypatch.setenv("COSMOSDB_ENDPOINT", dayfly.endpoint)
    monkeypatch.setenv("COSMOSDB_KEY", dayfly.key)
    return lambda: CosmosDBSaver("agents", "checkpoints")


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def make_graph(saver):
    """A graph that greets, asks for a name, and says it."""
    graph = StateGraph(State)
    graph.add_node("greet", lambda state: {"said": ["hello"]})
    graph.add_node("ask", lambda state: {"said": [interrupt("who are you?")]})
    graph.add_edge(START, "greet")
    graph.add_edge("greet", "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=saver)


def thread(name):
    return {"configurable": {"thread_id": name}}


def test_langgraphs_own_conformance_tests_pass(dayfly, make_saver):
    @checkpointer_test(name="CosmosDBSaver")
    async def savers():
        dayfly.reset()
        yield make_saver()

    report = asyncio.run(validate(savers))
    failures = [failure for result in report.results.values() for failure in result.failures]
    assert failures == []
    assert [name for name, result in report.results.items() if not result.passed] == []


def test_a_graph_goes_on_where_another_process_left_off(make_saver):
    first = make_graph(make_saver()).invoke({"said": []}, thread("1"))
    assert first["__interrupt__"][0].value == "who are you?"

    last = make_graph(make_saver()).invoke(Command(resume="Ann"), thread("1"))
    assert last["said"] == ["hello", "Ann"]
    history = make_graph(make_saver()).get_state_history(thread("1"))
    assert [len(state.values["said"]) for state in history] == [2, 1, 0, 0]


def test_a_thread_expires_by_the_containers_default(dayfly, make_saver):
    saver = make_saver()
    definition = saver.container.read()
    saver.database.replace_container(
        saver.container, definition["partitionKey"], default_ttl=WEEK
    )

    graph = make_graph(saver)
    graph.invoke({"said": []}, thread("1"))
    dayfly.advance(WEEK - 1)
    assert graph.get_state(thread("1")).values == {"said": ["hello"]}
    dayfly.advance(1)
    assert graph.get_state(thread("1")).values == {}
    assert list(saver.list(thread("1"))) == []
