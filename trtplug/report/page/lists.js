// ONNX nodes, sites and near misses, each with links to the layers.

const NODES_AT_FIRST = 60;

function startNodes() {
  const items = data.nodes.map((node, position) => ({ node, position, layers: layersOfNode[position] }));
  const table = new ListTable({
    items, limit: NODES_AT_FIRST, class: "nodes", caption: "ONNX nodes and the layers they are in", empty: "No node matches.",
    columns: [
      { key: "label", label: "Node", sort: (i) => i.node.label, cell: (i) => el("bdi", { class: "mono" }, i.node.label) },
      { key: "op", label: "Operator", sort: (i) => i.node.op, cell: (i) => i.node.op || "not in the model" },
      { key: "layers", label: "Layers", sort: (i) => (i.layers.length ? i.layers[0] : null),
        cell: (i) => (i.layers.length ? links(i.layers, layerLink) : el("span", { class: "note" }, "in no layer: folded into others or removed")) },
    ],
    row: (i, cells) => el("tr", { id: "node-" + i.position }, cells),
  });
  const field = filterField("Filter nodes and operators", refresh);
  const only = el("select", { "aria-label": "Which nodes", onchange: refresh },
    [["", "All nodes"], ["in", "In a layer"], ["out", "In no layer"]].map(([value, text]) => el("option", { value }, text)));
  const status = el("span", { class: "count", role: "status" });
  function refresh() {
    const words = wordsOf(field);
    const shown = items.filter((i) => (!only.value || (i.layers.length > 0) === (only.value === "in")) &&
      hasWords((i.node.label + "\n" + i.node.op).toLowerCase(), words));
    table.show(shown);
    status.textContent = shown.length.toLocaleString("en") + " of " + count(items.length, "node");
  }
  byId("node-table").replaceChildren(el("div", { class: "toolbar" }, field, only, status), table.element);
  refresh();
  return (position) => {
    if (!byId("node-" + position)) {
      field.value = only.value = "";
      refresh();
      if (!byId("node-" + position)) table.showAll();
    }
    byId("node-" + position).scrollIntoView({ block: "center" });
  };
}

function startSites() {
  const chosen = data.sites.some((s) => s.choice);
  const table = new ListTable({
    items: data.sites, limit: NODES_AT_FIRST, caption: "Sites", empty: "The model has no site.",
    sorting: { key: "outcome", direction: "descending" },
    columns: [
      { key: "conv", label: "Site", sort: (s) => s.conv, cell: (s) => el("bdi", { class: "mono" }, s.conv) },
      { key: "words", label: "What it is", sort: (s) => s.words, cell: (s) => s.words },
      { key: "flops", label: "FLOPs", numeric: true, first: "descending", sort: (s) => s.flops[1], cell: (s) => s.flops[0] },
      { key: "outcome", label: "Outcome", sort: (s) => s.outcome, cell: (s) => el("span", { class: "tag " + (s.fused ? "good" : "bad") }, s.outcome) },
      { key: "layers", label: "Layers", cell: (s) => links(s.layers, layerLink) },
      { key: "why", label: "Why", cell: (s) => s.why },
      ...(chosen ? [{ key: "choice", label: "Planned", sort: (s) => (s.choice ? s.choice.words : ""), cell: (s) => (s.choice ? plannedCell(s.choice) : "") }] : []),
    ],
    row: (_, cells) => el("tr", {}, cells),
  });
  table.render();
  byId("site-table").replaceChildren(table.element);
}

function plannedCell(choice) {
  const moved = (title, layers) => (layers.length ? el("div", {}, title, links(layers, layerLink)) : null);
  return el("div", { class: "lines" }, el("div", {}, el("b", {}, choice.words)), el("div", {}, choice.reason),
    moved("Reformats before: ", choice.before), moved("Reformats after: ", choice.after));
}

function startMisses() {
  if (!data.misses.length) return;
  const table = new ListTable({
    items: data.misses, limit: NODES_AT_FIRST, caption: "Near misses", empty: "",
    columns: [
      { key: "conv", label: "Convolution", sort: (m) => m.conv, cell: (m) => el("bdi", { class: "mono" }, m.conv) },
      { key: "reason", label: "Why it is no site", sort: (m) => m.reason, cell: (m) => m.reason },
      { key: "node", label: "At node", sort: (m) => m.node, cell: (m) => el("bdi", { class: "mono" }, m.node) },
      { key: "layers", label: "Layers", cell: (m) => links(m.layers, layerLink) },
    ],
    row: (_, cells) => el("tr", {}, cells),
  });
  table.render();
  byId("miss-table").replaceChildren(el("h3", { class: "spaced" }, count(data.misses.length, "near miss").replace("misss", "misses")), table.element);
}
