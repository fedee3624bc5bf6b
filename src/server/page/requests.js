// The running and waiting requests, polled while they are shown.

const POLL = 1000; // milliseconds
const requests = { memory: null };

function progressOf(slot) {
  if (slot.phase === "waiting") return `${count(slot.prompt_tokens)} prompt tokens wait`;
  if (slot.phase === "reading") return `${percent(slot.prompt_read)} of ${count(slot.prompt_tokens)} prompt tokens read`;
  const done = `${count(slot.prompt_tokens)} prompt tokens, ${count(slot.completion_tokens)} answered`;
  return slot.phase === "paused" ? `${done}, waits for memory` : done;
}

function itemOf(slot) {
  const item = make(
    "li",
    {},
    make("span", { className: "id" }, slot.id),
    make("span", {}, slot.phase),
    make("p", { title: slot.spec }, spelled(labelOf(slot.spec), slot.budget)),
    make("p", { className: "quiet" }, progressOf(slot)),
  );
  if (slot.phase === "reading") {
    const bar = make("progress", { max: 1, value: slot.prompt_read });
    bar.setAttribute("aria-label", "Share of the prompt that has been read");
    item.append(bar);
  }
  item.append(make("p", {}, `${bytes(slot.bytes_held)} held, ${bytes(slot.bytes_promised)} promised`));
  return item;
}

function showRequests(slots) {
  const running = slots.filter((slot) => slot.is_processing).length;
  byId("requests-count").textContent = slots.length ? `${running} running, ${slots.length - running} waiting` : "";
  byId("requests-list").replaceChildren(...slots.map(itemOf));
  byId("requests-empty").hidden = slots.length > 0;
  if (!requests.memory) return;
  const promised = slots.reduce((sum, slot) => sum + (slot.is_processing ? slot.bytes_promised : 0), 0);
  byId("memory-text").textContent = `${bytes(promised)} of ${bytes(requests.memory)} promised`;
  byId("memory-meter").value = promised / requests.memory;
}

/** Fetches and shows the current requests. */
async function refresh() {
  try {
    showRequests(await askJson("/slots"));
    showTrouble(null);
    if (!chat.methods.size) await greet(); // the server is back, or has got its key
  } catch (error) {
    showTrouble(error);
  }
}

async function poll() {
  if (!document.hidden) await refresh();
  setTimeout(poll, POLL);
}
