// The conversation: messages go to /v1/chat/completions, answers are streams.

const chat = {
  turns: [], // { text, message, answer }, as they are kept
  running: null, // AbortController of the answer that comes
  methods: new Map(), // name -> what /props says of it
};

function fillOptions(props) {
  const defaults = props.default_generation_settings;
  const keep = defaults.winnow;
  chat.methods = new Map(props.methods.map((method) => [method.name, method]));
  const [, method, options] = keep.kv.match(/^([^:]*):?(.*)$/s);
  const [name, given] = !chat.methods.has(keep.kv) && chat.methods.has(method) ? [method, options] : [keep.kv, ""];
  const names = props.methods.map((each) => each.name);
  if (!chat.methods.has(name)) names.unshift(name); // a wrapper
  byId("method").replaceChildren(...names.map((each) => make("option", { value: each }, each)));
  byId("method").value = name;
  byId("method-options").value = given;
  byId("budget").value = keep.budget ?? "512";
  byId("protocol").value = keep.protocol;
  byId("max-tokens").value = defaults.max_tokens;
  byId("temperature").placeholder = Math.round(defaults.temperature * 1000) / 1000; // empty: the server's own
  restoreChoices();
  describeMethod();
}

/** A spec as the page shows it: a name such as `auto` for the long specs that it stands for. */
function labelOf(spec) {
  const found = [...chat.methods.values()].find((method) => Object.values(method.specs ?? {}).includes(spec));
  return found?.name ?? spec;
}

/** A note about a method: for `auto` and the like, the spec that it stands for with the chosen protocol. */
function describeMethod() {
  const method = chat.methods.get(byId("method").value);
  const spec = method?.specs?.[byId("protocol").value];
  byId("method-summary").textContent = spec ? `${method.summary}: ${spec}` : (method?.summary ?? "");
  byId("budget").disabled = method !== undefined && !method.needs_budget;
  byId("method-options").disabled = spec !== undefined;
}

function keeping() {
  const options = byId("method-options").disabled ? "" : byId("method-options").value.trim();
  const out = { protocol: byId("protocol").value };
  out.kv = byId("method").value + (options ? `:${options}` : "");
  const budget = byId("budget").value.trim();
  if (budget && !byId("budget").disabled) out.budget = budget;
  return out;
}

function contentOf(text, message) {
  if (!text || !message) return text || message;
  return [{ type: "text", text: `${text}\n` }, { type: "text", text: message }];
}

/** An answer as a message of the conversation; its reasoning is included if the model's template uses it. */
function messageOf({ thoughts, text }) {
  return { role: "assistant", content: text, ...(thoughts && { reasoning_content: thoughts }) };
}

/** The conversation in the API's format, up to a new message. */
function messagesWith(turn) {
  const system = byId("system").value.trim();
  const messages = system ? [{ role: "system", content: system }] : [];
  for (const { text, message, answer } of chat.turns)
    messages.push({ role: "user", content: contentOf(text, message) }, messageOf(answer));
  return [...messages, { role: "user", content: contentOf(turn.text, turn.message) }];
}

function bodyOf(turn) {
  const body = { messages: messagesWith(turn), stream: true, stream_options: { include_usage: true }, winnow: keeping() };
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

/** The user's message; a long text is folded. */
function showMessage(text, message) {
  const { said } = addArticle("user", "You");
  if (text)
    said.append(make("details", {}, make("summary", {}, `Text of ${count(text.length)} characters`), make("p", {}, text)));
  said.append(message);
}

function figure(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value));
}

/** The requested method; if it is recommended, such as `auto`, its title has the spec. */
function cacheFigure({ winnow, kv }) {
  const recommended = chat.methods.get(kv)?.specs !== undefined;
  const figures = figure("Cache", spelled(recommended ? kv : winnow.spec, winnow.budget));
  if (recommended) figures.title = winnow.spec;
  return figures;
}

function figuresOf(answer) {
  const { winnow, timings, usage } = answer;
  const share = winnow.bytes_full ? ` (${percent(winnow.bytes_held / winnow.bytes_full)})` : "";
  const cached = usage.prompt_tokens_details.cached_tokens;
  const read = `${count(usage.prompt_tokens)} tokens${cached ? `, ${count(cached)} of them found` : ""}`;
  return make(
    "dl",
    { className: "figures" },
    cacheFigure(answer),
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

/** Reads the stream: reasoning goes to `thoughts`, text to `shown`, and both to `answer`. */
async function readAnswer(reply, thoughts, shown, answer) {
  for await (const event of eventsOf(reply)) {
    const delta = event.choices[0]?.delta;
    const thought = delta?.reasoning_content ?? "";
    const piece = delta?.content ?? "";
    // The reply begins before the prompt is read.
    if (thought && !answer.thoughts) byId("progress").textContent = "Thinking";
    if (piece && !answer.text) {
      byId("progress").textContent = "Answering";
      thoughts.fold();
    }
    answer.id = event.id;
    answer.thoughts += thought;
    answer.text += piece;
    thoughts.add(thought);
    shown.add(piece);
    if (event.usage) answer.usage = event.usage;
    if (event.winnow) Object.assign(answer, { winnow: event.winnow, timings: event.timings });
  }
}

async function answerInto({ article, said }, turn) {
  const answer = { thoughts: "", text: "", kv: keeping().kv };
  const thoughts = new Thoughts(said);
  const shown = showAnswer(said, "");
  try {
    const body = JSON.stringify(bodyOf(turn));
    const headers = { "Content-Type": "application/json" };
    const reply = await ask("/v1/chat/completions", { method: "POST", headers, body, signal: chat.running.signal });
    await readAnswer(reply, thoughts, shown, answer);
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
  return answer;
}

function setRunning(controller) {
  chat.running = controller;
  byId("send").disabled = controller !== null;
  byId("clear").disabled = controller !== null;
  byId("cancel").disabled = controller === null;
  byId("log").setAttribute("aria-busy", String(controller !== null));
}

async function send() {
  const turn = { message: byId("message").value.trim(), text: byId("text").value.trim() };
  if (chat.running || !(turn.message || turn.text)) return;
  setRunning(new AbortController());
  showMessage(turn.text, turn.message);
  byId("message").value = "";
  byId("text").value = "";
  byId("text-part").open = false;
  byId("progress").textContent = "Reading the prompt";
  const answer = await answerInto(addArticle("assistant", "winnow"), turn);
  if (answer.text) {
    chat.turns.push({ ...turn, answer });
    keepConversation();
  } else {
    byId("message").value ||= turn.message;
    byId("text").value ||= turn.text;
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
    chat.turns = [];
    keepConversation();
    byId("log").replaceChildren(byId("log-empty"));
    byId("log-empty").hidden = false;
    byId("progress").textContent = "";
    byId("message").focus();
  });
  byId("method").addEventListener("change", () => {
    byId("method-options").value = "";
    describeMethod();
  });
  byId("protocol").addEventListener("change", describeMethod);
  byId("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) byId("text").value = await file.text();
  });
  byId("composer").addEventListener("input", keepChoices);
  restoreConversation();
}
