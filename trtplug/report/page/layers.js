// The table of layers: filters above it, one row a layer, the detail of the selected one below its row.

const haystacks = data.layers.map((layer) => [layer.name, layer.type, layer.kernel, layer.tensors, layer.added,
  ...layer.nodes.map((n) => data.nodes[n].label)].join("\n").toLowerCase());
const positionOf = new Map(data.layers.map((layer, position) => [layer, position]));

function leadingNode(layer) {
  if (!layer.nodes.length) return null;
  const more = layer.nodes.length - 1;
  return data.nodes[layer.nodes[layer.lead]].label + (more ? " +" + more : "");
}
function two(first, second) {
  return [first, second === null ? null : el("span", { title: second }, second)];
}
// Generated names differ at their ends, so the middle is what gives way.
const TAIL = 9;
function elided(text) {
  const characters = Array.from(text);
  if (characters.length <= 2 * TAIL) return el("bdi", { class: "mono" }, text);
  return el("bdi", { class: "mono elided" }, el("span", {}, characters.slice(0, -TAIL).join("")), el("span", {}, characters.slice(-TAIL).join("")));
}

const layerColumns = [
  { key: "index", label: "#", sort: (l) => l.index, cell: (l) => String(l.index) },
  { key: "layer", label: "Layer", lines: true, sort: (l) => l.name, title: "Below it: the leading ONNX node",
    cell: (l) => two(nameButton(l), leadingNode(l)) },
  { key: "type", label: "Type", lines: true, sort: (l) => l.type,
    cell: (l) => [el("span", { title: l.type }, el("i", { class: "swatch " + fillClass(l.type) }), l.type),
      l.added ? el("span", { class: "tag added", title: "added by the builder: it holds no ONNX node" }, l.added) : null] },
  { key: "kernel", label: "Kernel", lines: true, sort: (l) => l.kernel, title: "Below it: who decided, type and format",
    cell: (l) => two(l.chosen ? el("span", { title: l.kernel }, elided(l.kernel)) : el("span", { title: l.kernel }, l.kernel), (l.override ? "by --" + l.override + "; " : "") + l.tensors) },
  { key: "flops", label: "FLOPs", lines: true, numeric: true, first: "descending", sort: (l) => l.flops[1],
    title: "Below it: operations a byte", cell: (l) => two(el("span", {}, l.flops[0]), l.intensity[0] + " /B") },
  { key: "bytes", label: "Bytes", numeric: true, first: "descending", sort: (l) => l.bytes[1], cell: (l) => l.bytes[0] },
  { key: "bound", label: "Bound µs", lines: true, numeric: true, first: "descending", sort: (l) => bound(l).value_us,
    title: "Lower bound, no time. Below it: what sets it", cell: (l) => two(el("span", {}, bound(l).us), bound(l).by) },
  { key: "share", label: "Share", numeric: true, first: "descending", sort: (l) => bound(l).share_value,
    title: "Of the sum of the bounds; the longest bar is the largest layer", cell: shareCell },
];
if (data.timed) {
  layerColumns.splice(7, 0, { key: "time", label: "Time µs", numeric: true, first: "descending", sort: (l) => l.time[1],
    title: "Measured", cell: (l) => l.time[0] });
}

if (data.tried) {
  layerColumns.splice(layerColumns.length - 1, 0, { key: "margin", label: "Margin", numeric: true, first: "ascending",
    sort: (l) => l.margin[1], title: "By which part the fastest other candidate is slower; near ties are below 5%",
    cell: (l) => l.near ? el("span", { class: "tag near", title: "near tie: another build may choose otherwise" }, l.margin[0]) : l.margin[0] });
}

let largestLayer = largestPart(data.layers);
onGpu.push(() => { largestLayer = largestPart(data.layers); });
function meter(part, largest, type) {
  const bar = el("i", { class: fillClass(type) });
  bar.style.width = (largest && part ? Math.max(1, (100 * part) / largest) : 0) + "%";
  return el("div", { class: "meter", "aria-hidden": "true" }, bar);
}
function shareCell(layer) {
  return [bound(layer).share, meter(bound(layer).share_value, largestLayer, layer.type)];
}

function nameButton(layer) {
  const position = positionOf.get(layer);
  return el("button", { type: "button", class: "link", title: layer.name, "aria-expanded": String(position === state.selected),
    onclick: (event) => { event.stopPropagation(); toggle(position); } }, elided(layer.name));
}
function toggle(position) {
  select(position === state.selected ? -1 : position, "table");
}

const layerTable = new ListTable({
  items: data.layers, columns: layerColumns, class: "layers sticky", caption: "Engine layers",
  sorting: { key: "share", direction: "descending" },
  empty: data.layers.length ? "No layer matches." : "The builder reported no layers.",
  row: (layer, cells) => {
    const position = positionOf.get(layer);
    return el("tr", { class: "row", id: "layer-" + position, "data-position": position,
      onclick: (event) => { if (!getSelection().toString() && !event.target.closest("a")) toggle(position); } }, cells);
  },
  after: () => unfold(),
});

function unfold() {
  for (const old of layerTable.body.querySelectorAll("tr.detail")) old.remove();
  const row = state.selected < 0 ? null : byId("layer-" + state.selected);
  if (!row) return;
  row.classList.add("selected");
  row.after(el("tr", { class: "detail" }, el("td", { colspan: layerColumns.length }, layerDetail(data.layers[state.selected]))));
}

function pickList(label, options, change) {
  return el("select", { "aria-label": label, onchange: change }, options.map(([value, text]) => el("option", { value }, text)));
}
const layerFilters = {
  text: filterField("Filter layers, nodes, kernels", filterLayers),
  type: pickList("Type", [["", "All types"], ...data.types.map((t) => [t.type, t.type + " (" + t.layers + ")"])], filterLayers),
  added: pickList("Origin", [["", "All origins"], ["any", "Added by the builder"], 
    ...[...new Set(data.layers.map((l) => l.added))].filter(Boolean).sort().map((a) => [a, "Added: " + a]), ["none", "Holding ONNX nodes"]], filterLayers),
  count: el("span", { class: "count", role: "status" }),
};
function originFits(layer, origin) {
  if (!origin) return true;
  if (origin === "any") return layer.added !== "";
  return origin === "none" ? layer.nodes.length > 0 : layer.added === origin;
}
function filterLayers() {
  const words = wordsOf(layerFilters.text);
  const type = layerFilters.type.value;
  const origin = layerFilters.added.value;
  const shown = data.layers.filter((layer, i) => (!type || layer.type === type) && originFits(layer, origin) && hasWords(haystacks[i], words));
  layerTable.show(shown);
  countLayers(shown);
}
function countLayers(shown) {
  const part = shown.reduce((sum, layer) => sum + (bound(layer).share_value || 0), 0);
  const share = data.gpus.length ? ", " + (100 * part).toFixed(1) + "% of the bound" : "";
  layerFilters.count.textContent = shown.length.toLocaleString("en") + " of " + count(data.layers.length, "layer") + share;
}

// A layer chosen elsewhere must have a row: filters that hide it are cleared.
function reveal(position) {
  if (!layerTable.items.includes(data.layers[position])) {
    layerFilters.text.value = layerFilters.type.value = layerFilters.added.value = "";
    filterLayers();
  }
  if (!byId("layer-" + position)) layerTable.showAll();
}
onSelect.push((position, before, from) => {
  for (const old of layerTable.body.querySelectorAll("tr.selected")) {
    old.classList.remove("selected");
    old.querySelector("button").setAttribute("aria-expanded", "false");
  }
  if (position >= 0) reveal(position);
  unfold();
  const row = position < 0 ? null : byId("layer-" + position);
  if (!row) return;
  row.querySelector("button").setAttribute("aria-expanded", "true");
  if (from !== "table") row.scrollIntoView({ block: "center" });
});
onGpu.push(filterLayers);
