/** Fetches the server's properties, and fills the elements that depend on them. */
async function greet() {
  try {
    const props = await askJson("/props");
    byId("server").textContent = `${props.model}, ${count(props.n_ctx)} tokens of context, ${props.build_info}`;
    requests.memory = props.memory;
    byId("memory").hidden = !props.memory;
    fillOptions(props);
    showTrouble(null);
  } catch (error) {
    showTrouble(error);
  }
}

byId("key").value = sessionStorage.getItem(KEY) ?? "";
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, byId("key").value.trim());
  greet();
});
startChat();
startInspector();
await greet();
poll();
