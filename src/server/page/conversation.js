// The conversation and the choices of the form, kept over a reload of the page. They are in sessionStorage, as the key
// is: gone with the tab, and seen by no other one.

const CONVERSATION = "winnow-conversation";
const CHOICES = "winnow-choices";
const CHOSEN = ["system", "method", "method-options", "budget", "protocol", "max-tokens", "temperature"];

function kept(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name));
  } catch {
    return null; // not this page's
  }
}

/** Keeps the conversation; one that is larger than the browser allows is not kept at all, and the page says so. */
function keepConversation() {
  try {
    sessionStorage.setItem(CONVERSATION, JSON.stringify(chat.turns));
  } catch {
    sessionStorage.removeItem(CONVERSATION);
    byId("progress").textContent += ". This conversation is too long to be kept over a reload";
  }
}

function restoreConversation() {
  const turns = kept(CONVERSATION);
  if (!Array.isArray(turns)) return;
  for (const turn of turns) {
    showMessage(turn.text, turn.message);
    const { article, said } = addArticle("assistant", "winnow");
    showThoughts(said, turn.answer.thoughts);
    showAnswer(said, turn.answer.text);
    if (turn.answer.winnow) addFigures(article, turn.answer);
  }
  chat.turns = turns;
}

function keepChoices() {
  sessionStorage.setItem(CHOICES, JSON.stringify(Object.fromEntries(CHOSEN.map((id) => [id, byId(id).value]))));
}

/** Puts back what was chosen, where it still can be. */
function restoreChoices() {
  const choices = kept(CHOICES) ?? {};
  for (const id of CHOSEN) {
    const field = byId(id);
    const isOffered = field.tagName !== "SELECT" || [...field.options].some((option) => option.value === choices[id]);
    if (typeof choices[id] === "string" && isOffered) field.value = choices[id];
  }
  byId("system-part").open = byId("system").value !== "";
}
