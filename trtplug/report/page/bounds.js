// The sum of the bounds: one strip in the engine's order, and one row for each type of layer.

function drawStrip() {
  const strip = byId("strip");
  const total = data.totals[state.gpu];
  if (!total || !total.value_us) {
    strip.replaceChildren();
    return;
  }
  let x = 0;
  const parts = data.layers.map((layer, position) => {
    const width = 1000 * (bound(layer).share_value || 0);
    const part = svg("rect", { class: fillClass(layer.type), x, y: 0, width, height: 10, "data-position": position,
      onclick: () => select(position, "strip") },
      svg("title", {}, "#" + layer.index + " " + (leadingNode(layer) || layer.name) + ": at least " + bound(layer).us + " µs, " + bound(layer).share));
    part.classList.toggle("selected", position === state.selected);
    x += width;
    return width ? part : null;
  });
  strip.replaceChildren(
    svg("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img", "aria-label": "Share of each layer, in the engine's order" }, parts),
    el("p", { class: "caption" }, el("span", {}, "first layer"), el("span", {}, "each segment is a layer; its width is its share of the bound"), el("span", {}, "last layer")));
}
onSelect.push((position) => {
  for (const part of byId("strip").querySelectorAll("rect")) part.classList.toggle("selected", Number(part.dataset.position) === position);
});

const typeTable = new ListTable({
  items: data.types, caption: "Share by type of layer", empty: "No layers.", class: "types",
  columns: [
    { key: "type", label: "Type", sort: (t) => t.type, cell: (t) => [el("i", { class: "swatch " + fillClass(t.type) }),
      el("button", { type: "button", class: "link", title: "Show only these layers", onclick: () => showType(t.type) }, t.type)] },
    { key: "layers", label: "Layers", numeric: true, cell: (t) => t.layers },
    { key: "flops", label: "FLOPs", numeric: true, cell: (t) => t.flops },
    { key: "bytes", label: "Bytes", numeric: true, cell: (t) => t.bytes },
    { key: "bound", label: "Bound µs", numeric: true, first: "descending", sort: (t) => bound(t).value_us, cell: (t) => bound(t).us },
    { key: "share", label: "Share of the bound", numeric: true, first: "descending", sort: (t) => bound(t).share_value,
      cell: (t) => el("div", { class: "wide" }, meter(bound(t).share_value, largestPart(data.types), t.type), el("span", {}, bound(t).share)) },
  ],
  sorting: { key: "bound", direction: "descending" },
  row: (_, cells) => el("tr", {}, cells),
});
function showType(name) {
  layerFilters.type.value = name;
  filterLayers();
  byId("layers").scrollIntoView();
}

function showTotal() {
  const total = data.totals[state.gpu];
  if (!total) return;
  byId("total-bound").replaceChildren(total.us + " ", el("small", {}, "µs"));
  byId("total-gpu").textContent = "on " + data.gpus[state.gpu].name + "; the sum over all layers, not a time";
}
onGpu.push(showTotal, drawStrip, () => typeTable.render());
