// Where the layers of the graph stand: ranks by topological depth, order by the mean of the neighbours.
// In goes data.graph, out comes {items, edges, width, height}. Knows nothing of drawing.

const NODE_WIDTH = 196;
const NODE_HEIGHT = 42;
const RANK_HEIGHT = 80;
const GAP = 18;
const BEND_WIDTH = 10;
const TENSOR_BESIDE = 88; // a tensor's words start at the middle of its layer and go beyond it
const LOOSE_IN_A_ROW = 3;
const MOST_BENDS = 20000; // beyond, long edges run straight: their bends would outnumber the layers

function layoutGraph(layers, graph) {
  const items = layers.map((_, position) => ({ kind: "layer", position, width: NODE_WIDTH }));
  const edges = graph.between.map(([from, to, tensor]) => ({ from: items[from], to: items[to], tensor }));
  addPills(graph.read, "input", (pill, layer, tensor) => edges.push({ from: pill, to: layer, tensor }), items);
  addPills(graph.written, "output", (pill, layer, tensor) => edges.push({ from: layer, to: pill, tensor }), items);
  rankItems(items, edges);
  const ranks = intoRanks(items, bendEdges(items, edges));
  orderRanks(ranks);
  placeItems(ranks);
  return { items, edges, ...bounds(items) };
}

function addPills(pairs, kind, connect, items) {
  const pills = new Map();
  for (const [position, tensor] of pairs) {
    const name = data.tensors[tensor].name;
    if (!pills.has(name)) {
      pills.set(name, { kind, tensor, width: NODE_WIDTH });
      items.push(pills.get(name));
    }
    connect(pills.get(name), items[position], tensor);
  }
}

// Layers stand in the engine's order, which is topological, so one pass finds the longest paths.
function rankItems(items, edges) {
  const into = new Map(items.map((item) => [item, []]));
  const outOf = new Map(items.map((item) => [item, []]));
  for (const edge of edges) {
    into.get(edge.to).push(edge.from);
    outOf.get(edge.from).push(edge.to);
  }
  const layers = items.filter((item) => item.kind === "layer");
  for (const item of layers) {
    item.rank = into.get(item).reduce((deep, before) => Math.max(deep, (before.rank || 0) + 1), 1);
  }
  for (const item of [...layers].reverse()) pullDown(item, into.get(item), outOf.get(item));
  for (const item of items) {
    if (item.kind === "input") item.rank = Math.min(...outOf.get(item).map((after) => after.rank)) - 1;
    if (item.kind === "output") item.rank = Math.max(...into.get(item).map((before) => before.rank)) + 1;
  }
  const isLoose = (item) => !into.get(item).length && !outOf.get(item).length;
  rankLoose(layers.filter(isLoose), items.filter((item) => !isLoose(item)));
}

// Layers that touch no tensor (an engine with several streams has many) stand in rows below the rest.
function rankLoose(loose, others) {
  const deepest = others.reduce((most, item) => Math.max(most, item.rank), -1);
  loose.forEach((item, i) => { item.rank = deepest + 1 + Math.floor(i / LOOSE_IN_A_ROW); });
}

// What nothing leads to is placed just above its first reader.
function pullDown(item, into, outOf) {
  if (into.some((before) => before.kind === "layer")) return;
  const readers = outOf.filter((after) => after.kind === "layer").map((after) => after.rank);
  if (readers.length) item.rank = Math.max(item.rank, Math.min(...readers) - 1);
}

// An edge over several ranks gets a bend in each of them, so that it runs between the layers.
function bendEdges(items, edges) {
  const length = edges.reduce((sum, edge) => sum + edge.to.rank - edge.from.rank - 1, 0);
  const longest = length > MOST_BENDS ? 2 : Infinity;
  const bends = [];
  for (const edge of edges) {
    edge.path = [edge.from];
    if (edge.to.rank - edge.from.rank <= longest) {
      for (let rank = edge.from.rank + 1; rank < edge.to.rank; rank++) {
        const bend = { kind: "bend", rank, width: BEND_WIDTH };
        bends.push(bend);
        edge.path.push(bend);
      }
    }
    edge.path.push(edge.to);
  }
  return linkNeighbours([...items, ...bends], edges);
}

function linkNeighbours(all, edges) {
  for (const item of all) {
    item.above = [];
    item.below = [];
  }
  for (const { path } of edges) {
    for (let i = 1; i < path.length; i++) {
      path[i].above.push(path[i - 1]);
      path[i - 1].below.push(path[i]);
    }
  }
  return all;
}

function intoRanks(items, all) {
  const deepest = all.reduce((most, item) => Math.max(most, item.rank), 0);
  const ranks = Array.from({ length: deepest + 1 }, () => []);
  for (const item of all) ranks[item.rank].push(item);
  return ranks;
}

function meanOf(neighbours, key) {
  return neighbours.reduce((sum, n) => sum + n[key], 0) / neighbours.length;
}

function orderRanks(ranks) {
  const number = (rank) => rank.forEach((item, place) => { item.place = place - rank.length / 2; });
  ranks.forEach(number);
  for (let sweep = 0; sweep < 6; sweep++) {
    const downward = sweep % 2 === 0;
    for (const rank of downward ? ranks : [...ranks].reverse()) {
      for (const item of rank) {
        const neighbours = downward ? item.above : item.below;
        item.target = neighbours.length ? meanOf(neighbours, "place") : item.place;
      }
      rank.sort((a, b) => a.target - b.target || a.place - b.place);
      number(rank);
    }
  }
}

// Each item is best below (or above) its neighbours; left to right, then right to left, positions
// give way to the space between items, and the mean of both passes keeps that space.
function placeItems(ranks) {
  for (const rank of ranks) settle(rank, () => 0);
  for (let sweep = 0; sweep < 10; sweep++) {
    const downward = sweep % 2 === 0;
    const target = (item) => {
      const neighbours = downward ? item.above : item.below;
      return neighbours.length ? meanOf(neighbours, "x") : item.x;
    };
    for (const rank of downward ? ranks : [...ranks].reverse()) settle(rank, target);
  }
}

function settle(rank, target) {
  const targets = rank.map(target);
  const left = [...targets];
  const right = [...targets];
  for (let i = 1; i < rank.length; i++) left[i] = Math.max(left[i], left[i - 1] + space(rank[i - 1], rank[i]));
  for (let i = rank.length - 2; i >= 0; i--) right[i] = Math.min(right[i], right[i + 1] - space(rank[i], rank[i + 1]));
  rank.forEach((item, i) => { item.x = (left[i] + right[i]) / 2; });
}
function space(a, b) {
  return (a.width + b.width) / 2 + (a.kind === "bend" && b.kind === "bend" ? 2 : GAP);
}

function bounds(items) {
  const margin = 16;
  const left = Math.min(0, ...extent(items, -1)) - margin;
  const right = Math.max(0, ...extent(items, 1)) + TENSOR_BESIDE;
  const deepest = items.reduce((most, item) => Math.max(most, item.rank), 0);
  return { left, width: right - left, height: deepest * RANK_HEIGHT + NODE_HEIGHT + 2 * margin, margin };
}
function extent(items, side) {
  const pick = side < 0 ? Math.min : Math.max;
  return items.length ? [items.reduce((most, item) => pick(most, item.x + (side * item.width) / 2), items[0].x)] : [];
}
function topOf(item) {
  return item.rank * RANK_HEIGHT + 16;
}
