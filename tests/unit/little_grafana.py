"""A little Grafana: what its documentation says of health, folders, search and dashboards, and nothing else.

What the documentation does not have is noted in `undocumented`, which a test's fixture finds empty.
"""

import asyncio
import copy
import json
import re
from urllib.parse import unquote

from aiohttp import web

from tests.unit.little_servers import serving
from tidegauge import cli

TOKEN = "glsa_T0psecretOfATest_1234abcd"
QUERIES = {
    "GET folders": {"limit", "page", "parentUid"},
    "GET search": {"query", "tag", "type", "dashboardUIDs", "folderUIDs", "starred", "limit", "page"},
}
BODIES = {
    "POST folders": {"uid", "title", "parentUid"},
    "POST dashboards/db": {"dashboard", "folderId", "folderUid", "overwrite", "message"},
}
EVERYTHING = frozenset({"dashboards:read", "dashboards:write", "dashboards:create", "folders:read", "folders:create"})
SECONDS = {"s": 1, "m": 60, "h": 3600}


class Refusal(Exception):  # noqa: N818 - an answer
    def __init__(self, status, message, code=None):
        super().__init__(message)
        self.status, self.body = status, {"message": message} | ({"status": code} if code else {})


class LittleGrafana:
    """`boards` by uid and `folders` (title by uid) are all it holds; titles are unique in a folder up to 11.2."""

    def __init__(self, *, unique_titles=False, permissions=EVERYTHING, shortest_refresh="5s", path=""):
        self.boards = {}
        self.folders = {}
        self.unique_titles = unique_titles
        self.permissions = set(permissions)
        self.shortest_refresh = shortest_refresh
        self.path = path
        self.asked = []
        self.undocumented = []
        self.before_save = lambda: None

    def put(self, content, *, folder="", provisioned=False):
        """Have a board from before, whoever made it."""
        uid = content["uid"]
        self.boards[uid] = {
            "content": content | {"id": len(self.boards) + 1, "version": 1},
            "folder": folder,
            "provisioned": provisioned,
            "messages": ["by hand"],
        }
        return self.boards[uid]

    def snapshot(self):
        """All that it holds, to be compared later."""
        return copy.deepcopy((self.boards, self.folders))

    @property
    def writes(self):
        return [line for line in self.asked if not line.startswith("GET ")]

    async def answer(self, request):
        """What a server does with any request: the handler for `serving`."""
        path = request.path
        if not path.startswith(f"{self.path}/api/"):
            return web.Response(text="<html>404</html>", status=404, content_type="text/html")
        call = f"{request.method} {path.removeprefix(f'{self.path}/api/')}"
        self.asked.append(call)
        try:
            return web.json_response(self._answered(call, request, await request.text()))
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status)

    def _answered(self, call, request, text):
        if call == "GET health":
            if "Authorization" in request.headers:
                self.undocumented.append("a token where none is needed")
            return {"commit": "abc", "database": "ok", "version": "11.6.0"}
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "Invalid API key")
        body = self._body(call, request, text)
        if call == "GET folders":
            return self._listed(request.query)
        if call == "GET search":
            return self._found(request.query)
        if call == "POST folders":
            return self._new_folder(body)
        if call == "POST dashboards/db":
            return self._saved(body)
        if match := re.fullmatch("GET dashboards/uid/([^/]+)", call):
            return self._shown(unquote(match[1]))
        self.undocumented.append(call)
        raise Refusal(404, "Not found")

    def _body(self, call, request, text):
        unknown = set(request.query) - QUERIES.get(call, set())
        body = json.loads(text) if call in BODIES else None
        unknown |= set(body or {}) - BODIES.get(call, set())
        if unknown or (text and body is None) or (body is not None and request.content_type != "application/json"):
            self.undocumented.append(f"{call} with {unknown or text or request.content_type}")
            raise Refusal(400, "bad request data")
        return body

    def _need(self, action):
        if action not in self.permissions:
            raise Refusal(
                403, f"You'll need additional permissions to perform this action. Permissions needed: {action}"
            )

    def _listed(self, query):
        self._need("folders:read")
        limit, page = int(query.get("limit", 1000)), int(query.get("page", 1))
        entries = [{"id": at, "uid": uid, "title": title} for at, (uid, title) in enumerate(self.folders.items())]
        return entries[limit * (page - 1) : limit * page]

    def _found(self, query):
        wanted = query.get("query", "").casefold()
        return [
            {"uid": uid, "title": one["content"]["title"], "type": "dash-db"}
            | ({"folderUid": one["folder"]} if one["folder"] else {})
            for uid, one in self.boards.items()
            if wanted in one["content"]["title"].casefold()
        ]

    def _new_folder(self, body):
        self._need("folders:create")
        if not body.get("title"):
            raise Refusal(400, "folder title cannot be empty")
        if body["title"] in self.folders.values():
            raise Refusal(409, "a folder with the same name already exists in the current location")
        uid = body.get("uid") or f"folder{len(self.folders)}"
        self.folders[uid] = body["title"]
        return {"id": len(self.folders), "uid": uid, "title": body["title"], "version": 1}

    def _shown(self, uid):
        self._need("dashboards:read")
        if uid not in self.boards:
            raise Refusal(404, "Dashboard not found")
        one = self.boards[uid]
        meta = {"folderUid": one["folder"], "folderTitle": self.folders.get(one["folder"], "General")}
        return {
            "dashboard": one["content"],
            "meta": meta | {"provisioned": one["provisioned"], "version": one["content"]["version"]},
        }

    def _saved(self, body):
        self.before_save()
        board, folder = dict(body["dashboard"]), body.get("folderUid") or ""
        if folder and folder not in self.folders:
            raise Refusal(400, "folder not found")
        if not board.get("title", "").strip():
            raise Refusal(400, "Dashboard title cannot be empty", "empty-name")
        if len(body.get("message", "")) > 500:
            raise Refusal(400, "message too long, max 500 characters")
        uid = self._target(board, folder, overwrite=body.get("overwrite", False))
        there = self.boards.get(uid)
        self._need("dashboards:write" if there else "dashboards:create")
        if there and there["provisioned"]:
            raise Refusal(400, "Cannot save provisioned dashboard")
        board |= {"uid": uid, "id": there["content"]["id"] if there else len(self.boards) + 1}
        board |= {"version": there["content"]["version"] + 1 if there else 1}
        if _seconds(board.get("refresh")) < _seconds(self.shortest_refresh):
            board["refresh"] = self.shortest_refresh
        messages = [*(there["messages"] if there else []), body.get("message", "")]
        self.boards[uid] = {"content": board, "folder": folder, "provisioned": False, "messages": messages}
        return {"id": board["id"], "uid": uid, "status": "success", "version": board["version"], "url": f"/d/{uid}/x"}

    def _target(self, board, folder, *, overwrite):
        """The uid that is written: the board's own, or with *overwrite* a namesake's, as Grafana had it up to 11.2."""
        uid = board.get("uid") or f"made{len(self.boards)}"
        if not re.fullmatch("[a-zA-Z0-9_-]{1,40}", uid):
            raise Refusal(400, "uid contains illegal characters")
        there = self.boards.get(uid)
        if there and there["content"]["version"] != board.get("version") and not overwrite:
            raise Refusal(412, "The dashboard has been changed by someone else", "version-mismatch")
        for other, one in self.boards.items():
            namesake = (one["content"]["title"], one["folder"]) == (board["title"], folder) and other != uid
            if self.unique_titles and namesake and not overwrite:
                raise Refusal(412, "A dashboard with the same name in the folder already exists", "name-exists")
            if self.unique_titles and namesake:
                return other
        return uid


def _seconds(interval):
    return int(interval[:-1]) * SECONDS[interval[-1]] if interval else 10**9


def command(handler, *argv, path="", tls=None):
    """Exit code of `tidegauge dashboards push` against a server whose every request *handler* answers."""

    async def go():
        async with serving(handler, tls=tls) as url:
            given = ["dashboards", "push", "--grafana", url + path, *map(str, argv)]
            return await asyncio.to_thread(cli.main, given)

    return asyncio.run(go())
