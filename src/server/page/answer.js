// An answer in the conversation while it is streamed: reasoning and text.

/** Scrolls to the end, unless the reader has scrolled back. */
function follow(wasAtEnd) {
  const log = byId("log");
  if (wasAtEnd) log.scrollTop = log.scrollHeight;
}

function isAtEnd() {
  const log = byId("log");
  return log.scrollHeight - log.scrollTop - log.clientHeight < 40;
}

/** Shows a growing answer, with pauses: a fast model writes more than a page can draw. Complete blocks are drawn
 *  once. */
class Growing {
  constructor(element) {
    this.element = element;
    this.timer = null;
    this.open = []; // nodes that may still change
  }
  /** Redraws all of `text`, as Markdown or as plain text. */
  draw(text) {
    this.text = text;
    this.drawn = 0; // the length of what is settled
    this.element.replaceChildren();
    this.show();
  }
  add(text) {
    this.text += text;
    this.timer ??= setTimeout(() => this.show(), 40);
  }
  show() {
    clearTimeout(this.timer);
    this.timer = null;
    const atEnd = isAtEnd();
    for (const node of this.open) node.remove();
    const rest = this.text.slice(this.drawn);
    const settled = isMarkdown() ? settledLength(rest) : 0;
    if (settled) this.element.append(...markdown(rest.slice(0, settled)));
    this.drawn += settled;
    this.open = isMarkdown() ? markdown(rest.slice(settled)) : [make("p", {}, rest)];
    this.element.append(...this.open);
    follow(atEnd);
  }
}

const isMarkdown = () => byId("markdown").checked;

/** A shown answer, redrawn when the reader switches between Markdown and plain text. */
function showAnswer(said, text) {
  const shown = new Growing(said);
  shown.draw(text);
  byId("markdown").addEventListener("change", () => shown.draw(shown.text));
  return shown;
}

/** A model's reasoning: open while it is streamed, folded at its end. */
class Thoughts {
  constructor(said) {
    this.said = said;
    this.part = null;
  }
  add(text) {
    if (!text) return;
    if (!this.part) {
      const body = make("div", { className: "said thought" });
      this.part = make("details", { open: true }, make("summary", {}, "Thoughts"), body);
      this.said.before(this.part);
      this.shown = showAnswer(body, "");
    }
    this.shown.add(text);
  }
  fold() {
    if (!this.part) return;
    this.shown.show();
    this.part.open = false;
  }
}

function showThoughts(said, text) {
  const thoughts = new Thoughts(said);
  thoughts.add(text);
  thoughts.fold();
}
