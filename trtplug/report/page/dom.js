// Elements are made here, and text only ever becomes a text node: names cannot become markup.

const data = JSON.parse(document.getElementById("data").textContent);
const state = { gpu: 0, selected: -1 };
const SVG = "http://www.w3.org/2000/svg";

function fillIn(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}
function el(tag, attributes, ...children) {
  return fillIn(document.createElement(tag), attributes, children);
}
function svg(tag, attributes, ...children) {
  return fillIn(document.createElementNS(SVG, tag), attributes, children);
}
function byId(id) {
  return document.getElementById(id);
}

// Colours go to the types with the largest bounds; the last colour serves all the others.
const LAST_COLOUR = 7;
const typeColour = new Map(data.types.map((t, i) => [t.type, Math.min(i, LAST_COLOUR)]));
function fillClass(type) {
  const colour = typeColour.get(type);
  return "fill-" + (colour === undefined ? LAST_COLOUR : colour);
}

const NO_BOUND = { us: "-", share: "-", by: "", value_us: null, share_value: null };
function bound(item) {
  return item.bounds[state.gpu] || NO_BOUND;
}
function largestPart(items) {
  return items.reduce((most, item) => Math.max(most, bound(item).share_value || 0), 0);
}
function count(number, word) {
  return number.toLocaleString("en") + " " + word + (number === 1 ? "" : "s");
}

// What depends on the GPU or on the selected layer registers here, and is called on each change.
const onGpu = [];
const onSelect = [];
function setGpu(gpu) {
  state.gpu = gpu;
  onGpu.forEach((update) => update());
}
function select(position, from) {
  const before = state.selected;
  state.selected = position;
  onSelect.forEach((update) => update(position, before, from));
  const hash = position >= 0 ? "#layer-" + position : " ";
  try {
    history.replaceState(null, "", hash);
  } catch {
    // Some browsers refuse this for files; the link then lacks the layer, and nothing else.
  }
}

// Node -> the layers that hold it.
const layersOfNode = data.nodes.map(() => []);
data.layers.forEach((layer, position) => {
  for (const node of layer.nodes) layersOfNode[node].push(position);
});

function layerLink(target) {
  if (typeof target === "string") return el("span", { class: "mono" }, target);
  const layer = data.layers[target];
  return el("a", { href: "#layer-" + target, "data-layer": target, class: "mono", title: layer.name }, "#" + layer.index);
}
function nodeLink(position) {
  const node = data.nodes[position];
  return el("a", { href: "#node-" + position, "data-node": position, class: "mono", title: node.op }, el("bdi", {}, node.label));
}
function links(targets, make) {
  return el("span", { class: "links" }, targets.map(make));
}
