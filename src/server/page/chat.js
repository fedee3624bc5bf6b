// The conversation: messages go to /v1/chat/completions, the answer comes as a stream.

const chat = {
  messages: [], // as the server reads them
  running: null, // AbortController of the answer that comes
  methods: new Map(), // name -> what /props says of it
};

function fillOptions(props) {
  const defaults = props.default_generation_settings;
  const keep = defaults.winnow;
  chat.methods = new Map(props.methods.map((method) => [method.name, method]));
  const [name, ...options] = keep.kv.split(":");
  const names = props.methods.map((method) => method.name);
  if (!chat.methods.has(name)) names.unshift(keep.kv); // a wrapper
  byId("method").replaceChildren(...names.map((each) => make("option", { value: each }, each)));
  byId("method").value = chat.methods.has(name) ? name : keep.kv;
  byId("method-options").value = chat.methods.has(name) ? options.join(":") : "";
  byId("budget").value = keep.budget ?? "512";
  byId("protocol").value = keep.protocol;
  byId("max-tokens").value = defaults.max_tokens;
  byId("temperature").value = Math.round(defaults.temperature * 100) / 100;
  describeMethod();
}

function describeMethod() {
  const method = chat.methods.get(byId("method").value);
  byId("method-summary").textContent = method?.summary ?? "";
  byId("budget").disabled = method !== undefined && !method.needs_budget;
}

function keeping() {
  const options = byId("method-options").value.trim();
  const out = { protocol: byId("protocol").value };
  out.kv = byId("method").value + (options ? `:${options}` : "");
  const budget = byId("budget").value.trim();
  if (budget && !byId("budget").disabled) out.budget = budget;
  return out;
}

function contentOf(text, message) {
  if (!text) return message;
  return [{ type: "text", text: `${text}\n` }, { type: "text", text: message }];
}

function bodyOf() {
  const body = { messages: chat.messages, stream: true, stream_options: { include_usage: true }, winnow: keeping() };
  if (byId("max-tokens").value) body.max_tokens = Number(byId("max-tokens").value);
  if (byId("temperature").value) body.temperature = Number(byId("temperature").value);
  return body;
}

function addArticle(kind, title) {
  const said = make("div", { className: "said" });
  const article = make("article", { className: kind }, make("h3", {}, title), said);
  byId("log-empty").hidden = true;
  byId("log").append(article);
  follow(true);
  return { article, said };
}

/** What the user sends; a long text stands there folded. */
function showMessage(text, message) {
  const { said } = addArticle("user", "You");
  if (text)
    said.append(make("details", {}, make("summary", {}, `Text of ${count(text.length)} characters`), make("p", {}, text)));
  said.append(message);
}

/** Scrolls to the end, unless the reader has scrolled back. */
function follow(wasAtEnd) {
  const log = byId("log");
  if (wasAtEnd) log.scrollTop = log.scrollHeight;
}

function isAtEnd() {
  const log = byId("log");
  return log.scrollHeight - log.scrollTop - log.clientHeight < 40;
}

/** Shows a text as it grows, now and then: a fast model says more than a page can draw. */
class Growing {
  constructor(element) {
    this.node = element.appendChild(document.createTextNode(""));
    this.held = "";
    this.timer = null;
  }
  add(text) {
    this.held += text;
    this.timer ??= setTimeout(() => this.show(), 40);
  }
  show() {
    clearTimeout(this.timer);
    this.timer = null;
    const atEnd = isAtEnd();
    this.node.appendData(this.held);
    this.held = "";
    follow(atEnd);
  }
}

function figure(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value));
}

function figuresOf(answer) {
  const { winnow, timings, usage } = answer;
  const share = winnow.bytes_full ? ` (${percent(winnow.bytes_held / winnow.bytes_full)})` : "";
  const cached = usage.prompt_tokens_details.cached_tokens;
  const read = `${count(usage.prompt_tokens)} tokens${cached ? `, ${count(cached)} of them found` : ""}`;
  return make(
    "dl",
    { className: "figures" },
    figure("Cache", spelled(winnow.spec, winnow.budget)),
    figure("Prompt", `${read}, ${count(timings.prompt_ms)} ms`),
    figure("Answer", `${count(usage.completion_tokens)} tokens, ${count(timings.predicted_per_second, 1)} tokens/s`),
    figure("Entries per head", count(winnow.entries_per_head, 1)),
    figure("Held / full", `${bytes(winnow.bytes_held)} / ${bytes(winnow.bytes_full)}${share}`),
  );
}

function addFigures(article, answer) {
  article.append(figuresOf(answer));
  if (!answer.winnow.budget) return;
  const show = make("button", { type: "button" }, "Show what was kept");
  show.addEventListener("click", () => inspect(answer.id, byId("kept-title")));
  article.append(show);
  rememberId(answer.id);
}

/** Reads the stream; what is said goes to `shown`, and all to `answer`. */
async function readAnswer(reply, shown, answer) {
  for await (const event of eventsOf(reply)) {
    const piece = event.choices[0]?.delta.content ?? "";
    if (piece && !answer.text) byId("progress").textContent = "Answering"; // the reply begins before the prompt is read
    answer.id = event.id;
    answer.text += piece;
    shown.add(piece);
    if (event.usage) answer.usage = event.usage;
    if (event.winnow) Object.assign(answer, { winnow: event.winnow, timings: event.timings });
  }
}

async function answerInto({ article, said }) {
  const answer = { text: "" };
  const shown = new Growing(said);
  try {
    const body = JSON.stringify(bodyOf());
    const headers = { "Content-Type": "application/json" };
    const reply = await ask("/v1/chat/completions", { method: "POST", headers, body, signal: chat.running.signal });
    await readAnswer(reply, shown, answer);
    shown.show();
    byId("progress").textContent = `Answered: ${count(answer.usage.completion_tokens)} tokens`;
    addFigures(article, answer);
  } catch (error) {
    const cancelled = chat.running.signal.aborted;
    shown.show();
    byId("progress").textContent = cancelled ? "Cancelled" : "Failed";
    article.append(make("p", { className: cancelled ? "quiet" : "error" }, cancelled ? "Cancelled." : sentenceOf(error)));
  }
  follow(true);
  return answer.text;
}

function setRunning(controller) {
  chat.running = controller;
  byId("send").disabled = controller !== null;
  byId("clear").disabled = controller !== null;
  byId("cancel").disabled = controller === null;
  byId("log").setAttribute("aria-busy", String(controller !== null));
}

async function send() {
  const message = byId("message").value.trim();
  const text = byId("text").value.trim();
  if (chat.running || !(message || text)) return;
  setRunning(new AbortController());
  showMessage(text, message);
  chat.messages.push({ role: "user", content: text && message ? contentOf(text, message) : text || message });
  byId("message").value = "";
  byId("text").value = "";
  byId("text-part").open = false;
  byId("progress").textContent = "Reading the prompt";
  const said = await answerInto(addArticle("assistant", "winnow"));
  if (said) {
    chat.messages.push({ role: "assistant", content: said });
  } else {
    chat.messages.pop(); // so that roles go on taking turns
    byId("message").value ||= message;
    byId("text").value ||= text;
  }
  const fromCancel = document.activeElement === byId("cancel");
  setRunning(null);
  refresh(); // it does not run any more
  if (fromCancel || document.activeElement === document.body) byId("message").focus();
}

function startChat() {
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("message").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  byId("cancel").addEventListener("click", () => chat.running?.abort());
  byId("clear").addEventListener("click", () => {
    chat.messages = [];
    byId("log").replaceChildren(byId("log-empty"));
    byId("log-empty").hidden = false;
    byId("progress").textContent = "";
    byId("message").focus();
  });
  byId("method").addEventListener("change", () => {
    byId("method-options").value = "";
    describeMethod();
  });
  byId("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) byId("text").value = await file.text();
  });
}
