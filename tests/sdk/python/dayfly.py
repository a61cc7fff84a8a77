"""A dayfly server for the tests to talk to, over http and https."""

import pytest_dayfly


class Server(pytest_dayfly.Dayfly):
    """A running server. At the end of its `with` block it is killed."""

    def address(self, scheme: str) -> str:
        return self.endpoint.replace("http", scheme, 1)
