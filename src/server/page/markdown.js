// Converts the parts of Markdown that models use most to nodes. Text becomes text nodes only; nothing is parsed as
// HTML. Each line and character is read a bounded number of times, and nesting is bounded, whatever a model writes.

const DEEPEST = 8; // lists and quotations in each other

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+/;
const TABLE_RULE = /^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$/;

/** Nodes of a text in Markdown. */
function markdown(text) {
  return blocksOf(text.split("\n"), 0);
}

function blocksOf(lines, depth) {
  const out = [];
  for (let i = 0; i < lines.length; ) {
    const [node, next] = blockAt(lines, i, depth);
    if (node) out.push(node);
    i = next;
  }
  return out;
}

/** The block that begins with line `i`, and the index of the line after it. A blank line is not a block. */
function blockAt(lines, i, depth) {
  const line = lines[i];
  if (!line.trim()) return [null, i + 1];
  if (FENCE.test(line)) return fenceAt(lines, i);
  const heading = HEADING.exec(line);
  if (heading) return [make(`h${Math.min(heading[1].length + 3, 6)}`, {}, ...inline(heading[2].trim().replace(/ #+$/, ""))), i + 1];
  if (RULE.test(line)) return [make("hr"), i + 1];
  if (depth < DEEPEST && QUOTE.test(line)) return quoteAt(lines, i, depth);
  if (depth < DEEPEST && ITEM.test(line)) return listAt(lines, i, depth);
  if (line.includes("|") && TABLE_RULE.test(lines[i + 1] ?? "")) return tableAt(lines, i);
  return paragraphAt(lines, i);
}

function fenceAt(lines, i) {
  const [, fence, language] = FENCE.exec(lines[i]);
  const isEnd = (line) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0], "") === "";
  let end = i + 1;
  while (end < lines.length && !isEnd(lines[end])) ++end;
  const code = make("code", { title: language.trim() }, lines.slice(i + 1, end).join("\n"));
  return [make("pre", { tabIndex: 0 }, code), end + 1];
}

function quoteAt(lines, i, depth) {
  let end = i;
  while (end < lines.length && QUOTE.test(lines[end])) ++end;
  const inner = lines.slice(i, end).map((line) => line.replace(QUOTE, ""));
  return [make("blockquote", {}, ...blocksOf(inner, depth + 1)), end];
}

/** A list: all items are of one kind, and indented lines belong to the previous item. */
function listAt(lines, i, depth) {
  const [, indent, mark] = ITEM.exec(lines[i]);
  const isNumbered = /\d/.test(mark);
  const list = isNumbered ? make("ol", { start: parseInt(mark, 10) }) : make("ul");
  while (i < lines.length) {
    const item = ITEM.exec(lines[i]);
    if (!item || item[1].length > indent.length || /\d/.test(item[2]) !== isNumbered) break;
    const inner = [lines[i].slice(item[0].length)];
    for (++i; i < lines.length && belongsTo(lines, i, indent.length); ++i) inner.push(lines[i].slice(Math.min(item[0].length, indentOf(lines[i]))));
    list.append(make("li", {}, ...listItem(inner, depth)));
  }
  return [list, i];
}

const indentOf = (line) => line.length - line.trimStart().length;

/** True if line `i` continues an item with indentation `indent`: it is indented more, or blank before such a line. */
function belongsTo(lines, i, indent) {
  if (lines[i].trim()) return indentOf(lines[i]) > indent;
  return i + 1 < lines.length && lines[i + 1].trim() !== "" && indentOf(lines[i + 1]) > indent;
}

/** An item with a single paragraph has no element for it. */
function listItem(lines, depth) {
  const blocks = blocksOf(lines, depth + 1);
  return blocks[0]?.tagName === "P" ? [...blocks[0].childNodes, ...blocks.slice(1)] : blocks;
}

function tableAt(lines, i) {
  const row = (line, tag) => make("tr", {}, ...cellsOf(line).map((cell) => make(tag, {}, ...inline(cell))));
  const body = make("tbody");
  let end = i + 2;
  for (; end < lines.length && lines[end].includes("|"); ++end) body.append(row(lines[end], "td"));
  const table = make("table", {}, make("thead", {}, row(lines[i], "th")), body);
  return [make("div", { className: "wide-table", tabIndex: 0 }, table), end];
}

const cellsOf = (line) =>
  line
    .trim()
    .replace(/^\|/, "")
    .replace(/\|$/, "")
    .split("|")
    .map((cell) => cell.trim());

function paragraphAt(lines, i) {
  let end = i + 1;
  while (end < lines.length && !beginsBlock(lines, end)) ++end;
  return [make("p", {}, ...inline(lines.slice(i, end).join("\n").trim())), end];
}

function beginsBlock(lines, i) {
  const line = lines[i];
  if (!line.trim() || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line)) return true;
  return line.includes("|") && TABLE_RULE.test(lines[i + 1] ?? "");
}

/** Marks within a line: the one that begins first, or the first listed of those that begin together. Their length is
 *  bounded, which limits the cost of a mark without an end. */
const MARK = new RegExp(
  [
    /\\(?<escaped>[!-/:-@[-`{-~])/,
    /(?<ticks>`{1,3})(?<code>[^`]{1,2000})\k<ticks>/,
    /\[(?<text>[^\][]{1,500})\]\((?<address>[^\s()]{1,1000})\)/,
    /(?<bare>https?:\/\/[^\s<>()[\]]{0,1000}[^\s<>()[\].,;:!?'"])/,
    /\*\*(?<strong>[^*\s][^*]{0,1000}?)\*\*/,
    /\*(?<em>[^*\s][^*]{0,1000}?)\*/,
    /(?<![\p{L}\p{N}_])_(?<under>[^_\s][^_]{0,1000}?)_(?![\p{L}\p{N}_])/,
    /~~(?<del>[^~]{1,1000}?)~~/,
  ]
    .map((each) => each.source)
    .join("|"),
  "gu",
);

/** Nodes of a text with marks in it. */
function inline(text) {
  const out = [];
  let at = 0;
  for (const found of text.matchAll(MARK)) {
    if (found.index > at) out.push(text.slice(at, found.index));
    out.push(markedNode(found));
    at = found.index + found[0].length;
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

function markedNode(found) {
  const { escaped, code, text, address, bare, strong, em, under, del } = found.groups;
  if (escaped) return escaped;
  if (code !== undefined) return make("code", {}, code);
  if (address) return /^https?:\/\//.test(address) ? link(address, text) : found[0];
  if (bare) return link(bare, bare);
  if (strong) return make("strong", {}, ...inline(strong));
  if (del) return make("del", {}, ...inline(del));
  return make("em", {}, ...inline(em ?? under));
}

const link = (href, text) => make("a", { href, rel: "noopener noreferrer", target: "_blank" }, text);

/** The length of the beginning of `text` whose blocks later text cannot change: up to a blank line before a line that
 *  begins a new block. */
function settledLength(text) {
  let settled = 0;
  let at = 0;
  let fence = null;
  let afterBlank = false;
  for (const line of text.split("\n").slice(0, -1)) {
    const found = FENCE.exec(line);
    if (!fence && afterBlank && indentOf(line) === 0 && line && !ITEM.test(line)) settled = at;
    if (found) fence = !fence ? found[1] : found[1].startsWith(fence) && !found[2].trim() ? null : fence;
    afterBlank = !line.trim();
    at += line.length + 1;
  }
  return settled;
}
