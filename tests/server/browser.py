# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, controlled through the Chrome DevTools Protocol over a pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from program import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
OPTIONS = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # tests may run as root, and open only pages of this machine
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
]


class Browser:
    """Chromium reads from descriptor 3 and writes to 4: JSON messages, each terminated by a zero byte."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="winnow-browser-", ignore_cleanup_errors=True)
        theirs_in, self.to = os.pipe()
        self.out, theirs_out = os.pipe()
        # bash moves the pipes' ends to the descriptors that Chromium expects.
        command = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", CHROMIUM, *OPTIONS, f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self.held = b""
        self.last = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)  # ends Chromium
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        self.folder.cleanup()

    def receive(self, seconds):
        """The next message; None if there is none in time."""
        end = time.monotonic() + seconds
        while b"\0" not in self.held:
            ready, _, _ = select.select([self.out], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            more = os.read(self.out, 1 << 16)
            assert more, "the browser has ended"
            self.held += more
        message, self.held = self.held.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, parameters=None, session=None):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive(PATIENCE)
            assert reply is not None, f"no answer to {method}"
            if reply.get("id") == self.last:
                assert "error" not in reply, (method, reply)
                return reply["result"]
            self.events.append(reply)

    def page(self, url):
        return Page(self, url)


class Page:
    """A tab. errors() and urls() list its complaints and its requests."""

    def __init__(self, browser, url):
        self.browser = browser
        target = browser.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Target.closeTarget", {"targetId": self.target})

    def call(self, method, **parameters):
        return self.browser.call(method, parameters, self.session)

    def js(self, expression):
        """The value of an expression, which may be a promise."""
        reply = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reply, (expression, reply["exceptionDetails"])
        return reply["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + PATIENCE
        while not self.js(f"Boolean({expression})"):
            assert time.monotonic() < end, (expression, self.errors())
            time.sleep(0.02)

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)}).innerText")

    def type(self, selector, text):
        """Types like a user: focuses the element, then replaces its text."""
        self.js(f"(e => {{ e.focus(); e.select() }})(document.querySelector({json.dumps(selector)}))")
        self.call("Input.insertText", text=text)

    def choose(self, selector, value):
        self.js(f"(e => {{ e.value = {json.dumps(value)}; for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, {{ bubbles: true }})) }})(document.querySelector({json.dumps(selector)}))")

    def press(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def click(self, selector, down=0.5):
        """Clicks an element at `down` of its height, by default in the middle."""
        box = self.js(f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height * {down}] }})(document.querySelector({json.dumps(selector)}))")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def resize(self, width, height=844):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def set_scheme(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def stand_in(self, pattern, body, kind):
        """Holds the next request for a matching address until answer_now(), which answers it with `body` in place of
        the server."""
        self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])
        self.reply = {"body": base64.b64encode(body.encode()).decode(), "responseHeaders": [{"name": "Content-Type", "value": kind}]}

    def answer_now(self):
        end = time.monotonic() + PATIENCE
        while not (asked := self.events("Fetch.requestPaused")):
            assert time.monotonic() < end
            self.js("0")  # reads the events that have arrived
        self.call("Fetch.fulfillRequest", requestId=asked[0]["requestId"], responseCode=200, **self.reply)
        self.call("Fetch.disable")
        self.browser.events[:] = [event for event in self.browser.events if event["method"] != "Fetch.requestPaused"]

    def events(self, name):
        return [event["params"] for event in self.browser.events if event.get("sessionId") == self.session and event["method"] == name]

    def errors(self):
        """Errors and warnings of the console, and uncaught exceptions."""
        said = [event["args"] for event in self.events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning", "assert")]
        logged = [event["entry"]["text"] for event in self.events("Log.entryAdded") if event["entry"]["level"] in ("error", "warning")]
        return said + logged + self.events("Runtime.exceptionThrown")

    def urls(self):
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def reload(self):
        """Reloads the page, and returns when the new one is there."""
        self.js("window.isOld = true")
        self.call("Page.reload")
        self.wait("!window.isOld")

    def screenshot(self, path):
        """Saves an image of the whole page. The window is made as high as the page, because an image beyond the window
        would be drawn without the scroll bar and be too wide."""
        size = self.js("(e => [innerWidth, e.scrollHeight])(document.documentElement)")
        self.resize(*size)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
