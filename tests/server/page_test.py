# SPDX-License-Identifier: Apache-2.0
"""The page in a headless Chromium: it shows the server's replies, and loads nothing else."""

import json
import subprocess

import pytest
from browser import CHROMIUM, Browser
from program import WINNOW
from service import Server, wait_for

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed (Debian: chromium)")
TEXT = "some words to read, and then some more of them " * 4
HTML = "<img src=/x onerror=\"document.title='owned'\"><script>document.title='owned'</script><b>bold</b>"
KEEPING = {"kv": "snapkv:window=8", "budget": "40"}
ANSWERED = "document.querySelectorAll('.figures').length"
FOCUSABLE = "a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex='0']"


@pytest.fixture(scope="module")
def server(model):
    with Server(model, "--context", "100000", "--ignore-eos", "--kv", KEEPING["kv"], "--budget", KEEPING["budget"], "-n", "30") as one:
        yield one


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


def is_good(page, server):
    address = address_of(server)
    assert page.errors() == []
    assert all(url.startswith((address, "data:")) for url in page.urls()), page.urls()


def address_of(server):
    return f"http://{server.host}:{server.port}/"


def greeted(browser, server):
    page = browser.page(address_of(server))
    page.wait("document.querySelectorAll('#method option').length")
    return page


@pytest.fixture
def page(browser, server):
    """A new page, which must have logged no errors in the end."""
    with greeted(browser, server) as one:
        yield one
        is_good(one, server)
    server.wait_until_idle()


def show_as_text(page):
    """Shows answers as plain text, not as Markdown."""
    if page.js("document.getElementById('markdown').checked"):
        page.click("#markdown")


def say(page, message, text=""):
    answered = page.js(ANSWERED)
    if text:
        page.js("document.getElementById('text-part').open = true")
        page.type("#text", text)
    page.type("#message", message)
    page.press("Enter", 13, "\r")
    page.wait(f"{ANSWERED} === {answered + 1}")


def kept_of_last(page, server):
    """Opens the inspector for the last answer; returns the server's data of the same request."""
    page.click("article:last-child button")
    page.wait("document.getElementById('kept').getAttribute('aria-busy') === 'false' && !document.getElementById('kept-view').hidden")
    return server.get(f"/winnow/requests/{page.js('document.getElementById(`kept-id`).value')}/kept")[1]


def test_only_the_page_itself_may_be_loaded(server):
    status, headers, body = server.ask("GET", "/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'" and policy["script-src"] == policy["style-src"]
    nonce = policy["script-src"].removeprefix("'nonce-").removesuffix("'")
    assert len(nonce) == 32 and body.decode().count(f'nonce="{nonce}"') == 2
    assert server.ask("GET", "/")[1]["Content-Security-Policy"] != headers["Content-Security-Policy"]
    assert server.ask("HEAD", "/")[::2] == (200, b"") and server.ask("POST", "/", "{}")[0] == 405


def test_it_shows_the_server(page, server):
    props = server.get("/props")[1]
    assert props["model"] in page.text("#server")
    names = page.js("[...document.querySelectorAll('#method option')].map(o => o.value)")
    assert names == [method["name"] for method in props["methods"]] and {"full", "snapkv", "h2o"} <= set(names)
    assert [page.js(f"document.getElementById('{id}').value") for id in ("method", "method-options", "budget", "max-tokens")] == ["snapkv", "window=8", "40", "30"]
    page.choose("#method", "full")
    assert page.js("document.getElementById('budget').disabled")


def test_an_answer_is_that_of_the_server(page, server):
    show_as_text(page)
    say(page, "and?", TEXT)
    content = [{"type": "text", "text": TEXT.strip() + "\n"}, {"type": "text", "text": "and?"}]
    reply = server.good("/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
    said = reply["choices"][0]["message"]["content"]
    assert page.js("document.querySelector('article.assistant .said').textContent") == said
    figures = page.text(".figures")
    told = reply["winnow"]
    for part in ("snapkv:window=8 @ 40", f"{reply['usage']['prompt_tokens']} tokens", "30 tokens", f"{told['entries_per_head']:.1f}", f"{100 * told['bytes_held'] / told['bytes_full']:.1f} %"):
        assert part in figures, (part, figures)
    say(page, "more?")
    history = [{"role": "user", "content": content}, {"role": "assistant", "content": said}, {"role": "user", "content": "more?"}]
    second = server.good("/v1/chat/completions", {"messages": history})["choices"][0]["message"]["content"]
    assert page.js("document.querySelectorAll('article.assistant .said')[1].textContent") == second


def test_the_choice_of_method_and_budget_is_asked_for(page):
    page.choose("#method", "h2o")
    page.type("#budget", "50%")
    page.choose("#protocol", "question-agnostic")
    page.type("#max-tokens", "7")
    say(page, "and?", TEXT)
    assert "h2o @ 50%" in page.text(".figures") and "7 tokens" in page.text(".figures")


def test_a_temperature_is_sent_where_one_was_chosen(page, server):
    page.js("(fetched => { window.sent = []; window.fetch = (url, how) => { if (how?.body) window.sent.push(JSON.parse(how.body)); return fetched(url, how); }; })(window.fetch)")
    default = server.get("/props")[1]["default_generation_settings"]["temperature"]
    assert float(page.js("document.getElementById('temperature').placeholder")) == default
    say(page, "and?")
    page.type("#temperature", "0.65")
    say(page, "and?")
    assert page.js("window.sent.map(body => body.temperature ?? null)") == [None, 0.65]


@pytest.mark.parametrize("name", ["auto", "auto:fast"])
def test_a_recommended_method_has_its_spec_told_below(page, server, name):
    """The page has its name in the menu and wherever it names the method of a request."""
    told = json.loads(subprocess.run([WINNOW, "methods", name, "--json"], capture_output=True, check=True).stdout)[0]
    offered = {method["name"]: method for method in server.get("/props")[1]["methods"]}
    assert list(offered)[:2] == ["auto", "auto:fast"]
    assert offered[name] == {"name": name, "summary": told["summary"], "needs_budget": True, "specs": told["parts"]}
    page.choose("#method", "snapkv")
    page.type("#method-options", "window=8")
    page.choose("#method", name)
    for protocol, spec in told["parts"].items():
        page.choose("#protocol", protocol)
        assert page.text("#method-summary") == f"{told['summary']}: {spec}"
        assert page.js("document.getElementById('method-options').disabled") and not page.js("document.getElementById('budget').disabled")
        say(page, "and?", TEXT)
        assert f"{name} @ 40" in page.text("article:last-child .figures")
        assert kept_of_last(page, server)["spec"] == spec and page.text("#kept-head").startswith(f"{name} @ 40: ")
        assert page.js("document.getElementById('kept-head').title") == spec
        with server.begin_post("/v1/completions", {"prompt": TEXT, "max_tokens": 90_000, "stream": True, "winnow": {"kv": name, "budget": 50, "protocol": protocol}}):
            page.wait(f"document.querySelector('#requests-list p')?.textContent === '{name} @ 50'")
            assert page.js("document.querySelector('#requests-list p').title") == spec
        server.wait_until_idle()
        page.wait("!document.getElementById('requests-empty').hidden")
    page.choose("#method", "snapkv")
    assert page.js("document.getElementById('method-options').disabled") is False and page.text("#method-summary") == offered["snapkv"]["summary"]


def test_a_refusal_is_a_sentence(page, server):
    page.type("#budget", "many")
    page.type("#message", "and?")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelector('article .error')")
    body = {"messages": [{"role": "user", "content": "and?"}], "winnow": {"budget": "many"}}
    assert page.text("article .error") == server.post("/v1/chat/completions", body)[1]["error"]["message"]
    assert page.js("document.getElementById('message').value") == "and?", "it can be mended and sent again"
    page.browser.events.clear()  # the browser itself logs a reply of 400


def test_it_streams_and_can_be_cancelled(page, server):
    page.type("#max-tokens", "90000")
    page.type("#message", "hello")
    page.press("Enter", 13, "\r")
    said = "document.querySelector('article.assistant .said').textContent.length"
    page.wait(f"{said} > 100")
    assert page.js("document.getElementById('log').getAttribute('aria-busy')") == "true"
    length = page.js(said)
    page.wait(f"{said} > {length}")
    page.wait("document.querySelector('#requests-list .id')")
    page.click("#cancel")
    page.wait("document.querySelector('article.assistant .quiet')")
    assert page.text("#progress") == "Cancelled"
    server.wait_until_idle()
    page.wait("!document.getElementById('requests-empty').hidden")
    page.type("#max-tokens", "3")
    say(page, "hello")


def test_it_says_that_a_prompt_is_being_read_until_an_answer_comes(browser, model):
    """The reply begins at once, even if the request waits for another."""
    long = {"prompt": TEXT, "max_tokens": 90_000, "ignore_eos": True, "stream": True}
    with Server(model, "--context", "100000", "--parallel", "1", "--ignore-eos", "-n", "3000") as one, greeted(browser, one) as page:
        page.js("window.replies = 0; const real = fetch; window.fetch = async (...a) => { const r = await real(...a); replies += String(a[0]).includes('completions'); return r }")
        with one.begin_post("/v1/completions", long):
            wait_for(lambda: one.get("/slots")[1])
            page.type("#message", "hello")
            page.press("Enter", 13, "\r")
            page.wait("replies === 1")
            assert page.text("#progress") == "Reading the prompt"
        page.wait("document.getElementById('progress').textContent === 'Answering'")
        page.click("#cancel")
        page.wait("document.getElementById('progress').textContent === 'Cancelled'")


def test_html_is_text(page, server):
    """In the prompt, in the inspector, and in an answer (a made-up one)."""
    say(page, HTML)
    assert page.text("article.user .said") == HTML
    kept = kept_of_last(page, server)
    assert page.js("document.getElementById('kept-text').textContent") == "".join(kept["pieces"]) and "onerror" in "".join(kept["pieces"])
    chunks = [{"id": "x", "choices": [{"delta": {"content": HTML}}]}, {"id": "x", "choices": [], "usage": {"completion_tokens": 1, "prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}}]
    chunks[0]["winnow"] = {"spec": HTML, "budget": HTML, "entries_per_head": 1, "bytes_held": 1, "bytes_full": 1}
    chunks[0]["timings"] = {"prompt_ms": 1, "predicted_per_second": 1}
    page.stand_in("*/v1/chat/completions", "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "text/event-stream")
    page.type("#message", "hello")
    page.press("Enter", 13, "\r")
    page.answer_now()
    page.wait(f"{ANSWERED} === 2")
    for _ in range(2):
        assert page.js("[...document.querySelectorAll('article.assistant .said')].at(-1).textContent") == HTML
        show_as_text(page)
    assert HTML in page.text("article:last-child .figures")
    assert page.js("document.querySelectorAll('main img, main script, main b').length") == 0 and page.js("document.title") == "winnow"


MARKDOWN = """# A title #

Some *emphasis*, **strong _and both_**, `code <b>`, ~~gone~~, snake_case_name and 2 * 3 * 4.
A link to [a page](https://example.org/x), one to [nowhere](javascript:alert(1)) and https://example.org/y.

- one
- two
  1. inner
  2. more

  of two
- three

7. seven

> quoted
> > twice

| a | b |
|---|---|
| 1 | **2** |

```python
def f():

    return "*"
```
"""
RENDERED = (
    '<h4>A title</h4>'
    '<p>Some <em>emphasis</em>, <strong>strong <em>and both</em></strong>, <code>code &lt;b&gt;</code>, <del>gone</del>, snake_case_name and 2 * 3 * 4.\n'
    'A link to <a href="https://example.org/x" rel="noopener noreferrer" target="_blank">a page</a>, one to [nowhere](javascript:alert(1)) and '
    '<a href="https://example.org/y" rel="noopener noreferrer" target="_blank">https://example.org/y</a>.</p>'
    '<ul><li>one</li><li>two<ol start="1"><li>inner</li><li>more</li></ol><p>of two</p></li><li>three</li></ul>'
    '<ol start="7"><li>seven</li></ol>'
    '<blockquote><p>quoted</p><blockquote><p>twice</p></blockquote></blockquote>'
    '<div class="wide-table" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><strong>2</strong></td></tr></tbody></table></div>'
    '<pre tabindex="0"><code title="python">def f():\n\n    return "*"</code></pre>'
)  # fmt: skip


def stream_of(text, step, thoughts=""):
    """A stream of an answer in pieces of `step` characters."""
    parts = [(name, part[i : i + step]) for name, part in (("reasoning_content", thoughts), ("content", text)) for i in range(0, len(part), step)]
    pieces = [{"id": "x", "choices": [{"delta": {name: piece}}]} for name, piece in parts]
    end = {"id": "x", "choices": [], "usage": {"completion_tokens": 1, "prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}}
    end["winnow"] = {"spec": "full", "budget": None, "entries_per_head": 1, "bytes_held": 1, "bytes_full": 1}
    end["timings"] = {"prompt_ms": 1, "predicted_per_second": 1}
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*pieces, end])


def answer_with(page, stream):
    answered = page.js(ANSWERED)
    page.stand_in("*/v1/chat/completions", stream, "text/event-stream")
    page.type("#message", "hello")
    page.press("Enter", 13, "\r")
    page.answer_now()
    page.wait(f"{ANSWERED} === {answered + 1}")


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_markdown_is_shown(page, step):
    answer_with(page, stream_of(MARKDOWN, step))
    said = "document.querySelector('article.assistant .said')"
    assert page.js(f"{said}.innerHTML") == RENDERED
    show_as_text(page)
    assert page.js(f"{said}.textContent") == MARKDOWN


def test_thoughts_are_folded_and_stay(page):
    answer_with(page, stream_of("the prince", 3, "Who *else*? <b>"))
    article = "document.querySelector('article.assistant')"
    for _ in range(2):
        assert page.js(f"{article}.querySelector('details .thought').innerHTML") == "<p>Who <em>else</em>? &lt;b&gt;</p>"
        assert not page.js(f"{article}.querySelector('details').open")
        assert page.js(f"{article}.querySelector(':scope > .said').textContent") == "the prince"
        page.reload()
        page.wait("document.querySelectorAll('#method option').length")
    page.js("const real = fetch; window.fetch = (...a) => { if (String(a[0]).includes('completions')) window.asked = a[1].body; return real(...a) }")
    answer_with(page, stream_of("why", 3))
    assert json.loads(page.js("asked"))["messages"][1] == {"role": "assistant", "content": "the prince", "reasoning_content": "Who *else*? <b>"}


def test_thoughts_are_shown_as_they_come(browser, model, thinks):
    with Server(model, "--context", "100000", "--ignore-eos", "--chat-template", thinks) as one, greeted(browser, one) as page:
        page.type("#max-tokens", "90000")
        page.type("#message", "hello")
        page.press("Enter", 13, "\r")
        page.wait("document.querySelector('article.assistant details[open] .thought')?.textContent.length > 100")
        assert page.text("#progress") == "Thinking"
        page.click("#cancel")
        page.wait("document.getElementById('progress').textContent === 'Cancelled'")
        assert page.js("document.getElementById('message').value") == "hello", "nothing was said"


def test_markdown_of_any_length_and_depth_is_shown(page):
    """Rendering takes linear time and no recursion for any answer."""
    text = "> " * 5000 + "x\n" + "- " * 5000 + "\n# " + " " * 50_000 + "x\n```" + " " * 50_000 + "`\n" + "**a *b " * 20_000 + "`" * 20_001 + "[" * 20_000 + "| - |" * 5000 + "\n"
    answer_with(page, stream_of(text * 2, 10_000))
    assert page.js("document.querySelectorAll('article.assistant .said *').length") > 10


def test_a_conversation_stays_over_a_reload(page, server):
    page.js("document.getElementById('system-part').open = true")
    page.type("#system", "You are brief.")
    page.type("#max-tokens", "5")
    page.choose("#method", "h2o")
    say(page, "and?", TEXT)
    shown = page.js("document.getElementById('log').innerText")
    page.reload()
    page.wait("document.querySelectorAll('#method option').length")
    assert page.js("document.getElementById('log').innerText") == shown
    assert [page.js(f"document.getElementById('{id}').value") for id in ("system", "method", "max-tokens")] == ["You are brief.", "h2o", "5"]
    show_as_text(page)
    say(page, "more?")
    content = [{"type": "text", "text": TEXT.strip() + "\n"}, {"type": "text", "text": "and?"}]
    messages = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": content}]
    keeping = {"kv": "h2o", "budget": "40"}
    body = {"messages": messages, "max_tokens": 5, "winnow": keeping}
    for question in ("more?", None):
        messages.append({"role": "assistant", "content": server.good("/v1/chat/completions", body)["choices"][0]["message"]["content"]})
        if question:
            messages.append({"role": "user", "content": question})
    said = page.js("[...document.querySelectorAll('article.assistant .said')].map(e => e.textContent)")
    assert said == [m["content"] for m in messages if m["role"] == "assistant"]
    page.click("#clear")
    page.reload()
    page.wait("document.querySelectorAll('#method option').length")
    assert page.js("document.querySelectorAll('article').length") == 0
    assert page.js("document.getElementById('system').value") == "You are brief.", "a choice of the form, not a part of the conversation"


def test_a_running_request_is_listed(page, server):
    body = {"prompt": TEXT, "max_tokens": 90_000, "stream": True, "winnow": {"kv": "h2o", "budget": 50}}
    with server.begin_post("/v1/completions", body):
        wait_for(lambda: server.get("/slots")[1])
        slot = server.get("/slots")[1][0]
        page.wait("document.querySelector('#requests-list .id')")
        item = page.text("#requests-list li")
        assert slot["id"] in item and "h2o @ 50" in item and f"{slot['prompt_tokens']} prompt tokens" in item
        assert "1 running, 0 waiting" == page.text("#requests-count")
        assert TEXT[:10] not in item
    page.wait("!document.getElementById('requests-empty').hidden")


def test_the_requests_are_shown_anew_when_an_answer_ends(page, server):
    """Without the page's timer, which this test turns off; only the end of an answer can refresh the list."""
    page.js("const real = setTimeout; window.setTimeout = (action, ms) => ms === 1000 ? 0 : real(action, ms)")
    page.js("new Promise(done => setTimeout(done, 1100))")  # the last timer has fired
    with server.begin_post("/v1/completions", {"prompt": TEXT, "max_tokens": 90_000, "stream": True}):
        wait_for(lambda: len(server.get("/slots")[1]) == 1)
        assert page.text("#requests-count") == ""
        say(page, "hello")
        page.wait("document.getElementById('requests-count').textContent === '1 running, 0 waiting'")
    server.wait_until_idle()
    say(page, "hello")
    page.wait("!document.getElementById('requests-empty').hidden")


def size(runs):
    return sum(last - first + 1 for first, last in runs)


@pytest.mark.parametrize("kv, protocol", [("ada-snapkv", "question-aware"), ("streaming-llm", "question-agnostic")])
def test_the_inspector_shows_what_the_server_says(page, server, kv, protocol):
    page.choose("#method", kv)
    page.choose("#protocol", protocol)
    say(page, "and?", TEXT)
    kept = kept_of_last(page, server)
    compressed = kept["compressed_tokens"]
    assert kept["spec"] == kv and f"{kept['entries_per_head']:.1f} of {compressed} positions per head" in page.text("#kept-head")
    assert f"Mean of 4 heads: {kept['entries_per_head']:.1f} of" in page.text("#kept-count")
    for layer, heads in enumerate(kept["layers"]):
        for head, runs in enumerate(heads):
            page.choose("#kept-layer", str(layer))
            page.choose("#kept-of-head", str(head))
            assert page.text("#kept-count") == f"This head keeps {size(runs)} of {compressed} positions"
            marked = "".join("".join(kept["pieces"][first : last + 1]) for first, last in runs)
            shown = page.js("[...document.querySelectorAll('#kept-text .k8')].map(e => e.textContent).join('')")
            assert shown == marked, "the text of what this head keeps"
    question = page.js("[...document.querySelectorAll('#kept-text .question')].map(e => e.textContent).join('')")
    assert question == "".join(kept["pieces"][compressed:]) and bool(question) == (protocol == "question-agnostic")
    assert page.js("document.getElementById('kept-text').textContent") == "".join(kept["pieces"])


def test_passages_that_most_heads_keep(page, server):
    say(page, "and?", TEXT)
    kept = kept_of_last(page, server)
    keepers = [sum(any(first <= i <= last for first, last in runs) for layer in kept["layers"] for runs in layer) for i in range(kept["compressed_tokens"])]
    best = max(sum(keepers[i : i + 16]) for i in range(len(keepers) - 15))
    shown = page.js("[...document.querySelectorAll('#passages .share')].map(e => e.textContent)")
    share, place = shown[0].split(" % at ")
    assert float(share) == pytest.approx(100 * best / 64, abs=0.05) and sum(keepers[int(place) : int(place) + 16]) == best
    shares = [float(text.split(" %")[0]) for text in shown]
    assert shares == sorted(shares, reverse=True) and 1 < len(shares) <= 10
    page.js("document.querySelectorAll('#passages button')[1].click()")
    first = int(shown[1].split(" at ")[1])
    assert page.js("[...document.querySelectorAll('#kept-text .chosen')].map(e => e.textContent).join('')") == "".join(kept["pieces"][first : first + 16])


def test_a_click_into_the_map_chooses_a_head(page, server):
    say(page, "and?", TEXT)
    kept_of_last(page, server)
    page.click("#map", down=0.6)  # into the third of four rows
    assert [page.js(f"document.getElementById('{id}').value") for id in ("kept-layer", "kept-of-head")] == ["1", "0"]


def test_what_is_not_remembered_is_a_sentence(page):
    page.type("#kept-id", "chatcmpl-0")
    page.press("Enter", 13, "\r")
    page.wait("document.getElementById('kept-empty').textContent.includes('chatcmpl-0')")
    page.browser.events.clear()  # the browser itself logs a reply of 404


def test_a_phone_needs_no_sideways_scrolling(page, server):
    page.resize(390)
    page.choose("#method", "auto")  # its spec is wider than the page
    assert page.js("document.documentElement.scrollWidth") == 390
    widths = "[...document.querySelectorAll('#composer select')].map(e => { const is = e.offsetWidth; e.style.width = 'max-content'; const needs = e.offsetWidth; e.style.width = ''; return [is, needs] })"
    assert all(width >= needed for width, needed in page.js(widths)), "no choice is cut"
    say(page, "W" * 300, TEXT)
    kept_of_last(page, server)
    page.js("for (const e of document.querySelectorAll('details')) e.open = true")
    assert page.js("document.documentElement.scrollWidth") == 390
    outside = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 390.5 && e.tagName !== 'OPTION').map(e => e.outerHTML)"
    assert page.js(outside) == []


CONTRAST = """(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * (top[3] ?? 1) + below[i] * (1 - (top[3] ?? 1)));
  const background = (e) => e ? over(numbers(getComputedStyle(e).backgroundColor), background(e.parentElement)) : numbers(getComputedStyle(document.body).backgroundColor);
  const light = (c) => c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const texts = [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.disabled && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
  return texts.map((e) => {
    const [a, b] = [light(over(numbers(getComputedStyle(e).color), background(e))), light(background(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 100)];
  }).sort((x, y) => x[0] - y[0]);
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page, server, scheme):
    """All texts have WCAG's contrast of 4.5."""
    page.set_scheme(scheme)
    say(page, "and?", TEXT)
    kept_of_last(page, server)
    ratios = page.js(CONTRAST)
    assert len(ratios) > 40 and ratios[0][0] >= 4.5, ratios[:3]
    ground = [int(part) for part in page.js("getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")]
    assert max(ground) < 64 if scheme == "dark" else min(ground) > 200


def test_all_is_reached_by_the_keyboard_in_order(page, server):
    say(page, "and?", TEXT)
    kept_of_last(page, server)
    page.js("document.getElementById('text-part').open = true")
    page.js(f"[...document.querySelectorAll(`{FOCUSABLE}`)].filter(e => e.checkVisibility()).forEach((e, i) => e.dataset.order = i)")
    wanted = page.js("document.querySelectorAll('[data-order]').length")
    page.js("document.querySelector('.skip').focus()")
    seen = [0]
    while len(seen) < wanted:
        page.press("Tab", 9)
        seen.append(int(page.js("document.activeElement.dataset.order ?? -1")))
        assert page.js("getComputedStyle(document.activeElement).outlineStyle") != "none", seen
    assert seen == list(range(wanted)) and wanted > 25


def test_all_controls_have_names(page, server):
    say(page, "and?", TEXT)
    kept_of_last(page, server)
    page.js("document.getElementById('text-part').open = true")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "combobox", "spinbutton", "link", "meter", "log", "region", "image", "list", "DisclosureTriangle", "status", "navigation"}
    controls = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored") and "role" in node]
    controls = [(role, name) for role, name in controls if role in roles]
    named = {"status", "list"}  # whose contents are read out
    assert len(controls) > 25 and not [role for role, name in controls if not name and role not in named], controls


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(browser, model):
    with Server(model, "--context", "2000", "--api-key", "secret", "-n", "3") as server, browser.page(address_of(server)) as page:
        page.wait("!document.getElementById('trouble').hidden")
        assert "key" in page.text("#trouble")
        page.type("#key", "secret")
        page.press("Enter", 13, "\r")
        page.wait("document.querySelectorAll('#method option').length")
        page.wait("document.getElementById('trouble').hidden")
        page.choose("#method", "snapkv")
        page.type("#budget", "40")
        say(page, "and?", TEXT)
        page.click("article:last-child button")
        page.wait("!document.getElementById('kept-view').hidden")
        holders = "Object.entries(sessionStorage).filter(([, value]) => value.includes('secret'))"
        assert page.js(f"[{holders}, localStorage.length, document.cookie, location.href]") == [[["winnow-key", "secret"]], 0, "", address_of(server)]
        assert all("secret" not in url for url in page.urls())


def test_it_goes_on_when_the_server_is_back(browser, server):
    with greeted(browser, server) as page:
        network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        page.call("Network.emulateNetworkConditions", offline=True, **network)
        page.wait("!document.getElementById('trouble').hidden")
        assert "cannot be reached" in page.text("#trouble")
        page.call("Network.emulateNetworkConditions", offline=False, **network)
        page.wait("document.getElementById('trouble').hidden")
