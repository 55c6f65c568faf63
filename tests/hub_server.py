"""A local server with the routes of the Hugging Face Hub."""

import contextlib
import dataclasses
import hashlib
import http.server
import json
import pathlib
import threading
import urllib.parse
from collections.abc import Iterator

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclasses.dataclass
class Hub:
    """The models of a server, and the files that clients downloaded.

    Attributes:
        address: Address of the server.
        models: Name -> the model's folder.
        gated: Names of models that only some users may read.
        missing: Status of the answer for other models: 401, or 404 for users
            who are logged in.
        downloads: Names of the files, in the order of the GET requests.
    """

    address: str = ""
    models: dict[str, pathlib.Path] = dataclasses.field(default_factory=dict)
    gated: set[str] = dataclasses.field(default_factory=set)
    missing: int = 401
    downloads: list[str] = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def serve(hub: Hub) -> Iterator[None]:
    """Serves the models in this context, at a free local port."""

    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = urllib.parse.unquote(self.path).partition("?")[0].strip("/")
        is_api = path.startswith("api/models/")
        owner, name, *rest = path.removeprefix("api/models/").split("/")
        model = f"{owner}/{name}"
        folder = self.hub.models.get(model)
        kind, revision, *file = rest or ["revision", "main"]
        if folder is None:
            self._refuse(self.hub.missing, "RepoNotFound")
        elif revision not in ("main", COMMIT):
            self._refuse(404, "RevisionNotFound")
        elif is_api:
            is_tree = kind == "tree"
            self._send_json(_tree(folder) if is_tree else _info(model))
        elif model in self.hub.gated:
            self._refuse(403, "GatedRepo")
        else:
            self._send_file(folder, "/".join(file))

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"", {"X-Error-Code": code})

    def _send_json(self, values: object) -> None:
        headers = {"Content-Type": "application/json"}
        self._send(200, json.dumps(values).encode(), headers)

    def _send_file(self, folder: pathlib.Path, name: str) -> None:
        if not (folder / name).is_file():
            self._refuse(404, "EntryNotFound")
            return
        if self.command == "GET":
            self.hub.downloads.append(name)
        data = (folder / name).read_bytes()
        headers = {
            "ETag": f'"{hashlib.sha256(data).hexdigest()}"',
            "X-Repo-Commit": COMMIT,
            "X-Linked-Size": str(len(data)),
        }
        self._send(200, data, headers)

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)


def _info(model: str) -> dict[str, object]:
    return {"_id": "0", "id": model, "sha": COMMIT, "siblings": []}


def _tree(folder: pathlib.Path) -> list[dict[str, object]]:
    return [
        {
            "type": "file",
            "path": path.relative_to(folder).as_posix(),
            "size": path.stat().st_size,
            "oid": hashlib.sha1(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
