"""The page to try a model, in a real browser by its own protocol."""

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from tests import exports
from tests.server import served

import pytest

_DRIVER = shutil.which("chromedriver")
_BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
# What an element is called in the protocol's JSON.
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
    """A browser, steered by W3C WebDriver."""

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
        for _ in range(200):
            with contextlib.suppress(urllib.error.HTTPError):
                found = self._call("POST", "/element", query)
                return f"/element/{found[_ELEMENT]}"
            time.sleep(0.05)
        raise TimeoutError(selector)

    def type(self, selector, text):
        self._call("POST", f"{self.find(selector)}/value", {"text": text})

    def click(self, selector):
        self._call("POST", f"{self.find(selector)}/click", {})

    def text(self, selector):
        return self._call("GET", f"{self.find(selector)}/text")

    def wait_for_text(self, selector, part):
        """Waits until an element's text has a part, and returns the text."""
        for _ in range(200):
            text = self.text(selector)
            if part in text:
                return text
            time.sleep(0.05)
        raise TimeoutError(text)

    def quit(self):
        self._call("DELETE", "")


@pytest.fixture
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
    driver.wait()


@pytest.mark.slow
def test_models_are_tried(browser, pairs, tmp_path):
    chooser = exports.exported("multiple_choice")
    models = f"--model=pairs={pairs},chooser={chooser}"
    with served.start(tmp_path, models) as server:
        browser.open(f"http://{server.address}/")
        # An input that is missing is not sent.
        browser.click("button")
        assert browser.wait_for_text("#answer", "text_a") == "text_a is empty."
        assert browser.text("#title") == "Error"
        assert not browser.text("#command")
        # An optional input stays empty.
        browser.type("#input-text_a", "a <b>good</b> film")
        browser.click("button")
        shown = browser.wait_for_text("#answer", "probabilities")
        asked = {"instances": [{"text_a": "a <b>good</b> film"}]}
        _, expected = server.post("/v1/models/pairs:predict", asked)
        assert json.loads(shown) == expected["predictions"][0]
        assert "v1/models/pairs:predict" in browser.text("#command")

        browser.click("#signature option[value=serve_ids]")
        for name in ("input_ids", "input_mask", "segment_ids"):
            browser.type(f"#input-{name}", "[1, 1000000]")
        browser.click("button")
        assert "1000000" in browser.wait_for_text("#answer", "1000000")
        assert browser.run("return at('answer').className") == "wrong"
        assert "serve_ids" in browser.text("#command")
        # The first mistake on the page, without the request before it.
        for name in ("input_ids", "segment_ids"):
            browser.type(f"#input-{name}", "]")
        browser.click("button")
        shown = browser.wait_for_text("#answer", "is not JSON")
        assert shown == "input_ids is not JSON: [1, 1000000]]"
        assert not browser.text("#command")

        browser.click("#model option[value=chooser]")
        browser.type("#input-prompt", "He rang.")
        browser.type("#input-choices", '["It rained.", "A dog"]')
        browser.click("button")
        shown = json.loads(browser.wait_for_text("#answer", "choice"))
        assert shown["choice"] in (0, 1)
        assert len(shown["probabilities"]) == 2

        # All that was loaded came from the server.
        loaded = browser.run(
            "return performance.getEntriesByType('resource').map(x => x.name)"
        )
        assert loaded
        for url in loaded:
            assert url.startswith(f"http://{server.address}/v1/")
