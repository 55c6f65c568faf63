"""The page for trying a model, in a real browser by the WebDriver protocol."""

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.request

from bert_tf.exporting import version_labels
from bert_tf.server import application, batching, served_models, server_metrics
from tests import exports, processes
from tests.server import served

import pytest
from aiohttp import web

_DRIVER = shutil.which("chromedriver")
_BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
# Key of an element in the protocol's JSON.
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_OPTIONS = {
    "binary": _BROWSER,
    "args": ["--headless=new", "--no-sandbox", "--disable-gpu"],
}

pytestmark = pytest.mark.skipif(
    not (_DRIVER and _BROWSER),
    reason="needs a browser: apt install chromium chromium-driver",
)


class _Browser:
    """A browser controlled by W3C WebDriver."""

    def __init__(self, address):
        self._address = address
        options = {"goog:chromeOptions": _OPTIONS}
        made = self._call(
            "POST", "/session", {"capabilities": {"alwaysMatch": options}}
        )
        self._address += f"/session/{made['sessionId']}"

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._address + path, data, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script):
        return self._call(
            "POST", "/execute/sync", {"script": script, "args": []}
        )

    def find(self, selector):
        """Waits for an element, and returns it."""
        query = {"using": "css selector", "value": selector}

        def find():
            with contextlib.suppress(urllib.error.HTTPError):
                return self._call("POST", "/element", query)[_ELEMENT]
            return None

        return f"/element/{processes.wait_for(find)}"

    def fill(self, selector, text):
        """Replaces the text of a field."""
        field = self.find(selector)
        self._call("POST", f"{field}/clear", {})
        self._call("POST", f"{field}/value", {"text": text})

    def answer(self):
        """Returns the JSON of the prediction."""
        return json.loads(self.run("return at('answer').textContent"))

    def resize(self, width):
        """Sets the page's width in pixels, also below a window's minimum."""
        size = {"width": width, "height": 900}
        parameters = {**size, "deviceScaleFactor": 1, "mobile": False}
        command = "Emulation.setDeviceMetricsOverride"
        body = {"cmd": command, "params": parameters}
        self._call("POST", "/goog/cdp/execute", body)

    def click(self, selector):
        self._call("POST", f"{self.find(selector)}/click", {})

    def text(self, selector):
        return self._call("GET", f"{self.find(selector)}/text")

    def wait_for_text(self, selector, part):
        """Waits until an element's text contains a part; returns the text."""
        found = processes.wait_for(
            lambda: [x for x in [self.text(selector)] if part in x]
        )
        return found[0]

    def quit(self):
        self._call("DELETE", "")


@pytest.fixture(scope="module")
def browser():
    driver = subprocess.Popen(
        [str(_DRIVER), "--port=0"], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    port = next(
        line.split()[-1].rstrip(".")
        for line in driver.stdout
        if "started successfully on port" in line
    )
    browser = _Browser(f"http://127.0.0.1:{port}")
    yield browser
    browser.quit()
    driver.terminate()
    driver.wait(60)


@pytest.mark.slow
def test_models_are_tried(browser, server):
    browser.open(f"http://{server.address}/")
    # It shows the model's facts, and an example that works.
    assert browser.wait_for_text("#facts", "version 1")
    assert f"{exports.LENGTH} tokens" in browser.text("#facts")
    assert exports.LABELS[1] in browser.text("#facts")
    assert "pair of texts" in browser.text("#does")
    browser.click("#predict")
    assert browser.wait_for_text("#time", "ms")
    # A missing input is not sent.
    browser.fill("#input-text_a", "")
    browser.click("#predict")
    shown = browser.wait_for_text("#shown", "text_a")
    assert shown == "text_a is empty."
    assert browser.text("#title") == "Error"
    assert not browser.text("#again")
    # An optional input stays empty.
    browser.fill("#input-text_a", "a <b>good</b> film")
    browser.fill("#input-text_b", "")
    browser.click("#predict")
    shown = browser.wait_for_text("#shown", "%")
    asked = {"instances": [{"text_a": "a <b>good</b> film"}]}
    _, expected = server.post("/v1/models/pairs:predict", asked)
    (row,) = expected["predictions"]
    assert browser.answer() == row
    bars = dict(zip(exports.LABELS, row["probabilities"], strict=True))
    best_first = sorted(bars, key=lambda x: -bars[x])
    lines = [f"{name}\n{100 * bars[name]:.1f}%" for name in best_first]
    shown = re.sub(r"\n+", "\n", shown)
    assert shown == "\n".join([row["label"], *lines])
    command = browser.run("return at('command').textContent")
    assert "v1/models/pairs:predict" in command

    browser.click("#signature option[value=serve_ids]")
    for name in ("input_ids", "input_mask", "segment_ids"):
        browser.fill(f"#input-{name}", "[1, 1000000]")
    browser.click("#predict")
    browser.wait_for_text("#shown", "1000000")
    assert browser.run("return document.querySelector('#shown .wrong')")
    # The first error is shown on the page, without sending a request.
    browser.fill("#input-input_ids", "]")
    browser.fill("#input-segment_ids", "]")
    browser.click("#predict")
    shown = browser.wait_for_text("#shown", "is not JSON")
    assert shown == "input_ids is not JSON: ]"
    assert not browser.text("#again")

    browser.click("#model option[value=chooser]")
    browser.fill("#input-prompt", "He rang.")
    browser.fill("#input-choices", '["It rained.", "A dog"]')
    browser.click("#predict")
    shown = browser.wait_for_text("#shown", "It rained.")
    chosen = browser.answer()["choice"]
    assert shown.startswith(["It rained.", "A dog"][chosen])
    check_loaded(browser, server.address)

    # The page of the API has a command for each example.
    browser.open(f"http://{server.address}/docs")
    command = browser.wait_for_text("details[open] pre", "curl")
    assert f"http://{server.address}/v1/models/pairs:predict" in command
    browser.click("details[open] .copy")
    browser.wait_for_text("details[open] .copy", "Copied")
    assert browser.run("return getSelection().toString()") == command
    check_loaded(browser, server.address)


def check_loaded(browser, address):
    """Checks that a page loads from its server only, and fits on a phone."""
    loaded = browser.run(
        "return performance.getEntriesByType('resource').map(x => x.name)"
    )
    assert loaded
    for url in loaded:
        assert url.startswith(f"http://{address}/")
    for width in (1200, 360):
        browser.resize(width)
        assert browser.run("return document.body.scrollWidth") <= width
        assert browser.run("return innerWidth") == width


@pytest.mark.slow
def test_a_model_that_is_being_loaded(browser, tmp_path):
    served.write_model(tmp_path / "1", lambda text_a: {"label": text_a})
    place = version_labels.Served("labels", str(tmp_path))
    model = served_models.Model(place, batching.Limits())
    app = application.Application(
        {"labels": model}, server_metrics.Metrics(), 1 << 20, "127.0.0.1"
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait_for(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(120)

    runner = web.AppRunner(app.web)
    try:
        wait_for(runner.setup())
        wait_for(web.TCPSite(runner, "127.0.0.1", 0).start())
        host, port = runner.addresses[0]
        browser.open(f"http://{host}:{port}/")
        assert browser.wait_for_text("#facts", "loading")
        assert browser.run("return at('predict').disabled")
        wait_for(model.update())
        app.is_loading = False
        assert browser.wait_for_text("#facts", "version 1")
        assert not browser.run("return at('predict').disabled")
    finally:
        wait_for(runner.cleanup())
        wait_for(model.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
