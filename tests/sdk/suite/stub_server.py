"""A server behind which there is no database: what passes against it proves nothing.

    stub_server.py CERTIFICATE

It has an account. Creates answer 201 with the body and system properties, lists
and queries are empty, and everything else is 404. Listens on localhost:8081 for
https, with the certificate and key in the file.
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = ("127.0.0.1", 8081)
ENDPOINT = "https://localhost:8081/"
LISTS = {
    "dbs": "Databases",
    "colls": "DocumentCollections",
    "docs": "Documents",
    "pkranges": "PartitionKeyRanges",
    "offers": "Offers",
    "users": "Users",
    "permissions": "Permissions",
    "sprocs": "StoredProcedures",
    "triggers": "Triggers",
    "udfs": "UserDefinedFunctions",
    "conflicts": "Conflicts",
}
REGION = {"name": "South Central US", "databaseAccountEndpoint": ENDPOINT}
ACCOUNT = {
    "_self": "",
    "id": "localhost",
    "_rid": "localhost",
    "media": "//media/",
    "addresses": "//addresses/",
    "_dbs": "//dbs/",
    "writableLocations": [REGION],
    "readableLocations": [REGION],
    "enableMultipleWriteLocations": False,
    "userReplicationPolicy": {"asyncReplication": False, "minReplicaSetSize": 1, "maxReplicasetSize": 4},
    "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
    "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 4},
    "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
    "queryEngineConfiguration": "{}",
}
SYSTEM_PROPERTIES = {
    "_rid": "AAAAAA==",
    "_self": "dbs/AAAAAA==/",
    "_etag": '"00000000-0000-0000-0000-000000000000"',
    "_ts": 1700000000,
    "_attachments": "attachments/",
}


class Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind = self._kind()
        if kind == "":
            self._answer(200, ACCOUNT)
        elif kind in LISTS:
            self._empty(kind)
        else:
            self._missing()

    def do_POST(self):
        kind = self._kind()
        body = self._body()
        if kind not in LISTS:
            self._missing()
        elif self._is_query():
            self._empty(kind)
        elif isinstance(body, dict):
            self._answer(201, {**body, **SYSTEM_PROPERTIES})
        else:
            self._missing()

    def do_other(self):
        self._body()
        self._missing()

    do_PUT = do_PATCH = do_DELETE = do_HEAD = do_other

    def _kind(self):
        """The last part of the path if it names a list, else None; empty for the account."""
        parts = self.path.split("?")[0].strip("/").split("/")
        return parts[-1] if len(parts) % 2 else None

    def _is_query(self):
        asked = self.headers.get("x-ms-documentdb-isquery") or self.headers.get(
            "x-ms-cosmos-is-query-plan-request"
        )
        return str(asked).lower() == "true" or "query+json" in self.headers.get("content-type", "")

    def _body(self):
        text = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            return json.loads(text)
        except ValueError:
            return None

    def _empty(self, kind):
        self._answer(200, {"_rid": "", LISTS[kind]: [], "_count": 0})

    def _missing(self):
        self._answer(404, {"code": "NotFound", "message": "There is nothing here."})

    def _answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.send_header("x-ms-request-charge", "1")
        self.send_header("x-ms-activity-id", "00000000-0000-0000-0000-000000000000")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *_):
        """Nobody reads it."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def get_request(self):
        connection, address = super().get_request()
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_):
        """A client that leaves is its own affair."""


def main():
    server = Server(ADDRESS, Stub)
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(sys.argv[1])
    print("Started", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
