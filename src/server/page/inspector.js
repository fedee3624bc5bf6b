// The inspector: the positions of a prompt that KV heads have kept, shown in its text.

const PASSAGE = 16; // tokens
const PASSAGES = 10;
const MAP_HEIGHT = 380; // CSS pixels, at most
const ALL = "all";

const inspector = { kept: null, asked: 0 };

/** The chosen heads: [{layer, head, runs}]. */
function chosenHeads(kept) {
  const wanted = (id, index) => byId(id).value === ALL || Number(byId(id).value) === index;
  return kept.layers.flatMap((heads, layer) =>
    heads
      .map((runs, head) => ({ layer, head, runs }))
      .filter(({ head }) => wanted("kept-layer", layer) && wanted("kept-of-head", head)),
  );
}

const entriesOf = (runs) => runs.reduce((sum, [first, last]) => sum + last - first + 1, 0);

/** The number of heads that keep each position. */
function keepersOf(heads, length) {
  const steps = new Int32Array(length + 1);
  for (const { runs } of heads) {
    for (const [first, last] of runs) {
      ++steps[first];
      --steps[last + 1];
    }
  }
  for (let i = 1; i < length; ++i) steps[i] += steps[i - 1];
  return steps.subarray(0, length);
}

/** The passages that most heads keep, in descending order, without overlaps. */
function bestPassages(keepers, heads) {
  const length = Math.min(PASSAGE, keepers.length);
  const sums = [0];
  for (const keeping of keepers) sums.push(sums.at(-1) + keeping);
  const of = (first) => sums[first + length] - sums[first];
  const order = Array.from({ length: keepers.length - length + 1 }, (_, first) => first);
  order.sort((a, b) => of(b) - of(a) || a - b);
  const out = [];
  for (const first of order) {
    if (out.length === PASSAGES || of(first) === 0) break;
    if (out.every((other) => Math.abs(other.first - first) >= length))
      out.push({ first, length, share: of(first) / (length * heads) });
  }
  return out;
}

/** Shows the prompt and its kept positions. Neighbouring tokens that look the same share an element. */
function writeText(kept, keepers, heads, passages) {
  const passageAt = new Map();
  passages.forEach((passage, index) => {
    for (let i = 0; i < passage.length; ++i) passageAt.set(passage.first + i, index);
  });
  const look = (position) => {
    if (position >= kept.compressed_tokens) return "question";
    const share = keepers[position] / heads;
    const level = share === 0 ? 0 : Math.max(1, Math.round(8 * share));
    return `k${level}${passageAt.has(position) ? ` passage p${passageAt.get(position)}` : ""}`;
  };
  const out = document.createDocumentFragment();
  for (let i = 0; i < kept.pieces.length; ) {
    const className = look(i);
    let text = "";
    for (; i < kept.pieces.length && look(i) === className; ++i) text += kept.pieces[i];
    out.append(make("span", { className }, text));
  }
  byId("kept-text").replaceChildren(out);
}

function showPassage(index) {
  for (const span of document.querySelectorAll("#kept-text .chosen")) span.classList.remove("chosen");
  const spans = byId("kept-text").querySelectorAll(`.p${index}`);
  for (const span of spans) span.classList.add("chosen");
  const text = byId("kept-text");
  text.scrollTop += spans[0].getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 3;
}

function listPassages(kept, passages) {
  byId("passages").replaceChildren(
    ...passages.map((passage, index) => {
      const words = kept.pieces.slice(passage.first, passage.first + passage.length).join("").replace(/\s+/g, " ");
      const place = `${percent(passage.share)} at ${count(passage.first)}`;
      const button = make("button", { type: "button" }, make("span", { className: "share" }, place), words);
      button.addEventListener("click", () => showPassage(index));
      return make("li", {}, button);
    }),
  );
}

/** A row for each head; those not chosen are pale. */
function drawMap() {
  const { kept } = inspector;
  const canvas = byId("map");
  if (!kept || !canvas.clientWidth) return;
  const rows = kept.layers.flat();
  const chosen = new Set(chosenHeads(kept).map(({ runs }) => runs));
  const height = Math.max(1, Math.min(14, Math.floor(MAP_HEIGHT / rows.length)));
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height * rows.length + 2}px`; // with its border
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(height * rows.length * scale);
  const pen = canvas.getContext("2d");
  const tint = getComputedStyle(document.documentElement).getPropertyValue("--tint");
  rows.forEach((runs, row) => {
    densities(runs, kept.compressed_tokens, canvas.width).forEach((density, x) => {
      if (density === 0) return;
      pen.fillStyle = `rgb(${tint} / ${(0.15 + 0.85 * density) * (chosen.has(runs) ? 1 : 0.25)})`;
      pen.fillRect(x, row * height * scale, 1, height * scale - (height > 3 ? 1 : 0));
    });
  });
}

/** The share of each pixel's positions that a head keeps. */
function densities(runs, length, width) {
  const out = new Float32Array(width);
  const perPixel = length / width;
  for (const [first, last] of runs) {
    for (let x = Math.floor(first / perPixel); x < width && x * perPixel < last + 1; ++x) {
      const covered = Math.min(last + 1, (x + 1) * perPixel) - Math.max(first, x * perPixel);
      out[x] = Math.min(1, out[x] + Math.max(0, covered) / perPixel);
    }
  }
  return out;
}

function showChoice() {
  const { kept } = inspector;
  const heads = chosenHeads(kept);
  const keepers = keepersOf(heads, kept.compressed_tokens);
  const passages = bestPassages(keepers, heads.length);
  const mean = heads.reduce((sum, { runs }) => sum + entriesOf(runs), 0) / heads.length;
  const whose = heads.length === 1 ? "This head keeps" : `Mean of ${count(heads.length)} heads:`;
  byId("kept-count").textContent =
    `${whose} ${count(mean, heads.length === 1 ? 0 : 1)} of ${count(kept.compressed_tokens)} positions`;
  listPassages(kept, passages);
  writeText(kept, keepers, heads.length, passages);
  drawMap();
}

function fillChoice(id, length, name) {
  const options = Array.from({ length }, (_, i) => make("option", { value: String(i) }, String(i)));
  byId(id).replaceChildren(make("option", { value: ALL }, name), ...options);
}

function showKept(kept) {
  inspector.kept = kept;
  const share = percent(kept.entries_per_head / kept.compressed_tokens);
  byId("kept-head").textContent =
    `${spelled(labelOf(kept.spec), kept.budget)}: ${count(kept.entries_per_head, 1)} of ${count(kept.compressed_tokens)} ` +
    `positions per head (${share}) in ${kept.layers.length} layers of ${kept.layers[0].length} KV heads`;
  byId("kept-head").title = kept.spec;
  fillChoice("kept-layer", kept.layers.length, "all");
  fillChoice("kept-of-head", kept.layers[0].length, "all");
  byId("map").setAttribute("aria-label", byId("kept-head").textContent);
  byId("map-first").textContent = "layer 0";
  byId("map-last").textContent = `layer ${kept.layers.length - 1}`;
  byId("map-end").textContent = count(kept.compressed_tokens);
  byId("kept-empty").hidden = true;
  byId("kept-view").hidden = false;
  showChoice();
}

function showNothingKept(sentence) {
  byId("kept-view").hidden = true;
  byId("kept-empty").textContent = sentence;
  byId("kept-empty").hidden = false;
}

/** Shows a request, and moves the focus if a place is given. Busy until the latest call has its reply. */
async function inspect(id, focused) {
  byId("kept-id").value = id;
  const asked = ++inspector.asked;
  byId("kept").setAttribute("aria-busy", "true");
  const [show, answer] = await askJson(`/winnow/requests/${encodeURIComponent(id)}/kept`).then(
    (kept) => [showKept, kept],
    (error) => [showNothingKept, sentenceOf(error)],
  );
  if (asked !== inspector.asked) {
    return;
  }
  show(answer);
  byId("kept").setAttribute("aria-busy", "false");
  if (focused) {
    byId("kept").scrollIntoView();
    focused.focus({ preventScroll: true });
  }
}

/** A request of this page, which the field can suggest. */
function rememberId(id) {
  byId("kept-ids").prepend(make("option", { value: id }));
}

function chooseAt(event) {
  const { kept } = inspector;
  const box = event.target.getBoundingClientRect();
  const rows = kept.layers.flat().length;
  const row = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows)));
  byId("kept-layer").value = String(Math.floor(row / kept.layers[0].length));
  byId("kept-of-head").value = String(row % kept.layers[0].length);
  showChoice();
}

function startInspector() {
  byId("kept-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const id = byId("kept-id").value.trim();
    if (id) inspect(id);
  });
  byId("kept-layer").addEventListener("change", showChoice);
  byId("kept-of-head").addEventListener("change", showChoice);
  byId("map").addEventListener("click", chooseAt);
  new ResizeObserver(drawMap).observe(byId("map").parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);
}
