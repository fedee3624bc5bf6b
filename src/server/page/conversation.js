// Keeps the conversation and the form's choices when the page is reloaded. They are in sessionStorage, like the key:
// they are gone with the tab, and other tabs cannot read them.

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

/** Saves the conversation. If it is larger than the browser allows, it is not saved at all, and the page says so. */
function keepConversation() {
  try {
    sessionStorage.setItem(CONVERSATION, JSON.stringify(chat.turns));
  } catch {
    sessionStorage.removeItem(CONVERSATION);
    byId("progress").textContent += ". This conversation is too long to survive a reload of the page";
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

/** Restores the choices that are still possible. */
function restoreChoices() {
  const choices = kept(CHOICES) ?? {};
  for (const id of CHOSEN) {
    const field = byId(id);
    const isOffered = field.tagName !== "SELECT" || [...field.options].some((option) => option.value === choices[id]);
    if (typeof choices[id] === "string" && isOffered) field.value = choices[id];
  }
  byId("system-part").open = byId("system").value !== "";
}
