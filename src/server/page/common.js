// Functions for all parts of the page. Texts of users and models become nodes by textContent only.

const byId = (id) => document.getElementById(id);

/** An element with properties; strings among its children are text. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const count = (value, digits = 0) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const percent = (share) => `${count(100 * share, 1)} %`;

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${count(value, unit === 0 ? 0 : 1)} ${units[unit]}`;
}

const spelled = (spec, budget) => (budget ? `${spec} @ ${budget}` : spec);

/** An error of the server, in one sentence. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const KEY = "winnow-key"; // in sessionStorage: it is gone with the tab

async function refusalOf(reply) {
  const body = await reply.json().catch(() => null);
  return new Refusal(reply.status, body?.error?.message ?? `the server answers ${reply.status}`);
}

/** Sends a request to the server, and throws a Refusal if it fails. */
async function ask(path, options = {}) {
  const headers = { ...options.headers };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  const reply = await fetch(path, { ...options, headers, cache: "no-store" });
  if (!reply.ok) throw await refusalOf(reply);
  return reply;
}

const askJson = async (path) => (await ask(path)).json();

/** The server's events, as JSON values. */
async function* eventsOf(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (held + value).split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      if (!part.startsWith("data: ") || part === "data: [DONE]") continue;
      const event = JSON.parse(part.slice("data: ".length));
      if (event.error) throw new Refusal(200, event.error.message);
      yield event;
    }
  }
}

function sentenceOf(error) {
  if (error instanceof Refusal && error.status === 401) return "This server needs an API key: enter it above.";
  if (error instanceof Refusal) return error.message;
  return "The server cannot be reached, or closed the connection.";
}

function showTrouble(error) {
  const place = byId("trouble");
  const sentence = error ? sentenceOf(error) : "";
  if (place.textContent !== sentence) place.textContent = sentence;
  place.hidden = !error;
}
