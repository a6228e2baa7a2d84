// The graph of layers and their tensors. It scrolls natively; dragging moves it, buttons and Ctrl + wheel zoom.

const DRAW_UNASKED = 1500;
const LEAST_READABLE = 0.85;
const ZOOMS = { least: 0.05, most: 3, step: 1.25 };
const graphView = el("div", { class: "graph-view", role: "group", "aria-label": "Graph of the layers" });
const graphNodes = new Map(); // position -> its <g>
const graphEdges = new Map(); // position -> the paths at it
let drawing = null;
let zoom = 1;

function drawGraph() {
  drawing = layoutGraph(data.layers, data.graph);
  const labelled = new Set();
  const edges = drawing.edges.map(drawEdge);
  const tensors = drawing.edges.map((edge) => drawTensor(edge, labelled));
  const nodes = drawing.items.map((item) => (item.kind === "layer" ? drawLayer(item) : drawPill(item)));
  drawing.svg = svg("svg", { viewBox: [drawing.left, 0, drawing.width, drawing.height].join(" ") },
    svg("g", {}, edges), svg("g", {}, tensors), svg("g", {}, nodes));
  graphView.replaceChildren(drawing.svg);
  if (data.layers.length) graphNodes.get(0).setAttribute("tabindex", "0");
  paintShares();
  startView();
}

function drawEdge(edge) {
  const points = edge.path.map((item) => [item.x, topOf(item)]);
  let line = "M" + points[0][0] + " " + (points[0][1] + NODE_HEIGHT);
  for (let i = 1; i < points.length; i++) {
    const [x, y] = points[i];
    const fromY = points[i - 1][1] + NODE_HEIGHT;
    const middle = (fromY + y) / 2;
    line += "C" + points[i - 1][0] + " " + middle + " " + x + " " + middle + " " + x + " " + y;
    if (i < points.length - 1) line += "V" + (y + NODE_HEIGHT);
  }
  const path = svg("path", { class: "edge", d: line });
  for (const end of [edge.from, edge.to]) {
    if (end.kind !== "layer") continue;
    if (!graphEdges.has(end.position)) graphEdges.set(end.position, []);
    graphEdges.get(end.position).push(path);
  }
  return path;
}

// Once for each tensor, just below the layer that writes it.
function drawTensor(edge, labelled) {
  if (edge.from.kind !== "layer" || labelled.has(edge.tensor)) return null;
  const already = edge.from.labels || 0;
  if (already > 1) return null;
  edge.from.labels = already + 1;
  labelled.add(edge.tensor);
  const tensor = data.tensors[edge.tensor];
  const text = clip(tensor.opt + " " + tensor.dtype + " " + tensor.word, 30);
  const y = topOf(edge.from) + NODE_HEIGHT + 13 + already * 11;
  return svg("text", { class: "tensor", x: edge.from.x + 7, y }, svg("title", {}, tensor.name + "\n" + tensor.format), text);
}

function drawLayer(item) {
  const layer = data.layers[item.position];
  const x = item.x - NODE_WIDTH / 2;
  const y = topOf(item);
  const first = leadingNode(layer) || (layer.added ? "added " + layer.added : "no ONNX node");
  const share = svg("rect", { class: fillClass(layer.type), x: x + 5, y: y + NODE_HEIGHT - 4.5, height: 2.5, width: 0, rx: 1 });
  const node = svg("g", { class: "node" + (layer.added ? " added" : ""), "data-position": item.position, tabindex: "-1", role: "button",
    "aria-label": "Layer " + layer.index + ", " + layer.type + ", " + first },
    svg("title", {}, layer.name + "\n" + layer.kernel),
    svg("rect", { class: "box", x, y, width: NODE_WIDTH, height: NODE_HEIGHT, rx: 6 }),
    svg("rect", { class: fillClass(layer.type), x, y: y + 6, width: 4, height: NODE_HEIGHT - 12, rx: 1.5 }),
    svg("rect", { class: "track", x: x + 5, y: y + NODE_HEIGHT - 4.5, height: 2.5, width: NODE_WIDTH - 10, rx: 1 }),
    share,
    svg("text", { x: x + 11, y: y + 16 }, clip(first, 27)),
    svg("text", { class: "second", x: x + 11, y: y + 30 }, clip("#" + layer.index + " " + layer.type, 20)),
    svg("text", { class: "second us", x: x + NODE_WIDTH - 8, y: y + 30, "text-anchor": "end" }));
  node.share = share;
  graphNodes.set(item.position, node);
  item.node = node;
  return node;
}

function drawPill(item) {
  const tensor = data.tensors[item.tensor];
  const y = topOf(item);
  return svg("g", { class: "pill" }, svg("title", {}, tensor.name + "\n" + tensor.format),
    svg("rect", { class: "box", x: item.x - NODE_WIDTH / 2, y, width: NODE_WIDTH, height: NODE_HEIGHT, rx: NODE_HEIGHT / 2 }),
    svg("text", { x: item.x, y: y + 18, "text-anchor": "middle" }, clip(item.kind + " " + tensor.name, 26)),
    svg("text", { class: "second", x: item.x, y: y + 31, "text-anchor": "middle" }, clip(tensor.opt + " " + tensor.dtype + " " + tensor.word, 30)));
}

function clip(text, most) {
  if (text.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return text.slice(0, most - 1 - tail) + "…" + text.slice(-tail);
}

function paintShares() {
  const largest = largestPart(data.layers);
  for (const [position, node] of graphNodes) {
    const cell = bound(data.layers[position]);
    node.share.setAttribute("width", largest ? ((NODE_WIDTH - 10) * (cell.share_value || 0)) / largest : 0);
    node.querySelector(".us").textContent = cell.value_us === null ? "" : (cell.us.startsWith("<") ? "" : "≥ ") + cell.us + " µs";
  }
}

function setZoom(wanted) {
  const before = zoom;
  zoom = Math.min(ZOOMS.most, Math.max(ZOOMS.least, wanted));
  const middleX = graphView.scrollLeft + graphView.clientWidth / 2;
  const middleY = graphView.scrollTop + graphView.clientHeight / 2;
  drawing.svg.setAttribute("width", drawing.width * zoom);
  drawing.svg.setAttribute("height", drawing.height * zoom);
  graphView.scrollLeft = (middleX * zoom) / before - graphView.clientWidth / 2;
  graphView.scrollTop = (middleY * zoom) / before - graphView.clientHeight / 2;
}
// Readable first, and as much of the width as that leaves; the first layer is in sight.
function startView() {
  setZoom(Math.max(LEAST_READABLE, Math.min(1, (graphView.clientWidth - 4) / drawing.width)));
  const first = drawing.items.reduce((top, item) => (item.rank < top.rank ? item : top), drawing.items[0]);
  if (first) graphView.scrollLeft = (first.x - drawing.left) * zoom - graphView.clientWidth / 2;
}
function fitWidth() {
  setZoom(Math.min(1, (graphView.clientWidth - 4) / drawing.width));
}
function fitAll() {
  setZoom(Math.min((graphView.clientWidth - 4) / drawing.width, (graphView.clientHeight - 4) / drawing.height));
}

function centreOn(position) {
  const item = drawing.items[position];
  graphView.scrollTo({
    left: (item.x - drawing.left) * zoom - graphView.clientWidth / 2,
    top: (topOf(item) + NODE_HEIGHT / 2) * zoom - graphView.clientHeight / 2,
  });
}

// Arrow keys follow the edges; left and right go through the layers in the engine's order.
function neighbourFor(key, position) {
  const item = drawing.items[position];
  const end = (edge, mine, other) => edge[mine] === item && edge[other].kind === "layer";
  if (key === "ArrowDown") return drawing.edges.find((e) => end(e, "from", "to"))?.to.position;
  if (key === "ArrowUp") return drawing.edges.find((e) => end(e, "to", "from"))?.from.position;
  if (key === "ArrowRight") return position + 1;
  return key === "ArrowLeft" ? position - 1 : undefined;
}
function onGraphKey(event) {
  const node = event.target.closest(".node");
  if (!node) return;
  const position = Number(node.dataset.position);
  if (event.key === "Enter" || event.key === " ") select(position, "graph");
  else {
    const next = graphNodes.get(neighbourFor(event.key, position));
    if (!next) return;
    node.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus({ preventScroll: true });
    centreOn(Number(next.dataset.position));
  }
  event.preventDefault();
}

function onDrag(event) {
  if (event.button !== 0 || event.pointerType === "touch") return;
  const start = { x: event.clientX, y: event.clientY, left: graphView.scrollLeft, top: graphView.scrollTop };
  let moved = false;
  const move = (e) => {
    moved = moved || Math.abs(e.clientX - start.x) + Math.abs(e.clientY - start.y) > 4;
    graphView.classList.toggle("dragging", moved);
    graphView.scrollLeft = start.left - e.clientX + start.x;
    graphView.scrollTop = start.top - e.clientY + start.y;
  };
  const up = (e) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
    graphView.classList.remove("dragging");
    const node = moved ? null : e.target.closest && e.target.closest(".node");
    if (node) select(Number(node.dataset.position), "graph");
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", up);
}

function graphPanel() {
  const button = (label, title, act) => el("button", { type: "button", title, "aria-label": title, onclick: () => drawing && act() }, label);
  graphView.addEventListener("keydown", onGraphKey);
  graphView.addEventListener("pointerdown", onDrag);
  graphView.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (drawing) setZoom(zoom * (event.deltaY < 0 ? ZOOMS.step : 1 / ZOOMS.step));
  }, { passive: false });
  return el("div", { class: "graph-panel" },
    el("div", { class: "toolbar" },
      button("−", "Zoom out", () => setZoom(zoom / ZOOMS.step)),
      button("+", "Zoom in", () => setZoom(zoom * ZOOMS.step)),
      button("Width", "Fit the width", fitWidth),
      button("All", "Show the whole graph", fitAll)),
    graphView);
}

function startGraph() {
  byId("graph").replaceChildren(graphPanel());
  if (data.layers.length <= DRAW_UNASKED) drawGraph();
  else {
    graphView.append(el("p", { class: "empty" }, el("button", { type: "button", onclick: drawGraph },
      "Draw the graph of " + count(data.layers.length, "layer"))));
  }
}

onGpu.push(() => drawing && paintShares());
onSelect.push((position, before, from) => {
  if (!drawing) return;
  for (const [at, on] of [[before, false], [position, true]]) {
    if (at < 0) continue;
    graphNodes.get(at).classList.toggle("selected", on);
    for (const path of graphEdges.get(at) || []) path.classList.toggle("near", on);
  }
  if (position < 0) return;
  for (const node of graphNodes.values()) node.setAttribute("tabindex", "-1");
  graphNodes.get(position).setAttribute("tabindex", "0");
  if (from !== "graph") centreOn(position);
});
