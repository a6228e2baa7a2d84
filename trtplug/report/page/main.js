// Puts the parts on the page, and joins them: GPU, theme, links.

function gpuControl() {
  if (data.gpus.length < 2) return null;
  const choose = el("select", { id: "gpu", onchange: (event) => setGpu(Number(event.target.value)) },
    data.gpus.map((gpu, i) => el("option", { value: i }, gpu.name)));
  return el("label", {}, "Bounds for ", choose);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function themeControl() {
  const button = el("button", { type: "button", id: "theme", onclick: () => { show(!isDark()); keep(); } });
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Use " + (isDark() ? "light" : "dark") + " colours");
  };
  const show = (dark) => { document.documentElement.dataset.theme = dark ? "dark" : "light"; label(); };
  const keep = () => { try { localStorage.setItem("trtplug-theme", document.documentElement.dataset.theme); } catch { /* not kept */ } };
  try {
    const kept = localStorage.getItem("trtplug-theme");
    if (kept === "dark" || kept === "light") show(kept === "dark");
  } catch { /* nothing was kept */ }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();
  return button;
}

byId("controls").append(...[gpuControl(), themeControl()].filter(Boolean));
byId("layer-table").replaceChildren(
  el("div", { class: "toolbar" }, layerFilters.text, layerFilters.type, layerFilters.added, layerFilters.count), layerTable.element);
byId("types").replaceChildren(typeTable.element);
startGraph();
const showNode = startNodes();
startSites();
startMisses();
setGpu(0);

document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a[data-layer], a[data-node]");
  if (!link) return;
  event.preventDefault();
  if (link.dataset.layer !== undefined) select(Number(link.dataset.layer), "link");
  else showNode(Number(link.dataset.node));
});

function followHash() {
  const match = /^#(layer|node)-(\d{1,9})$/.exec(location.hash);
  const position = match ? Number(match[2]) : -1;
  if (match && match[1] === "layer" && position < data.layers.length) select(position, "link");
  if (match && match[1] === "node" && position < data.nodes.length) showNode(position);
}
addEventListener("hashchange", followHash);
followHash();
