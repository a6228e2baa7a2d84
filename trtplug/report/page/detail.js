// What unfolds below the row of the selected layer.

function layerDetail(layer) {
  return el("div", {},
    el("dl", {},
      el("dt", {}, "name"), el("dd", { class: "mono" }, el("bdi", {}, layer.name)),
      el("dt", {}, "ONNX nodes"), el("dd", {}, layer.nodes.length ? links(layer.nodes, nodeLink) : "none: added by the builder"),
      el("dt", {}, "kernel"), el("dd", { class: layer.chosen ? "mono" : "" }, layer.kernel),
      ...boundFacts(layer)),
    tensorTable(layer),
    candidateTable(layer.candidates));
}

function boundFacts(layer) {
  return data.gpus.flatMap((gpu, i) => {
    const cell = layer.bounds[i] || NO_BOUND;
    const set = cell.by ? ", set by " + boundWords[cell.by] : "";
    const text = cell.value_us === null ? "not known" : cell.us + " µs" + set + "; " + cell.share + " of the whole";
    return [el("dt", {}, "bound"), el("dd", {}, text + " on " + gpu.name)];
  });
}
const boundWords = {
  memory: "memory bandwidth",
  matrix: "the peak of the matrix units",
  vector: "the peak of the vector units",
};

function tensorTable(layer) {
  const rows = [["input", layer.inputs], ["constant", layer.constants], ["output", layer.outputs]].flatMap(([role, tensors]) =>
    tensors.map((position) => tensorRow(role, data.tensors[position])));
  if (!rows.length) return null;
  const heads = ["", "tensor", "at opt", "dimensions", "type", "format"].map((h) => el("th", { scope: "col" }, h));
  return el("table", {}, el("thead", {}, el("tr", {}, heads, el("th", { scope: "col", class: "n" }, "bytes"))), el("tbody", {}, rows));
}

function tensorRow(role, tensor) {
  return el("tr", {}, el("th", { scope: "row" }, role), el("td", { class: "mono" }, el("bdi", {}, tensor.name)),
    el("td", {}, tensor.opt), el("td", {}, tensor.dims), el("td", {}, tensor.dtype), el("td", {}, tensor.format),
    el("td", { class: "n" }, tensor.bytes));
}

function candidateTable(candidates) {
  if (!candidates.length) return null;
  const rows = candidates.map((c) => el("tr", { class: c.chosen ? "chosen" : "" },
    el("td", {}, c.chosen ? "chosen" : ""), el("td", { class: "mono" }, el("bdi", {}, c.kernel)),
    el("td", { class: "n" }, c.time), el("td", { class: "n" }, c.ratio), el("td", {}, c.by), el("td", { class: "mono" }, c.tactic)));
  const heads = el("tr", {}, el("th", { scope: "col" }, ""), el("th", { scope: "col" }, count(candidates.length, "candidate")),
    el("th", { scope: "col", class: "n" }, "time µs"), el("th", { scope: "col", class: "n" }, "× fastest"),
    el("th", { scope: "col" }, "its time"), el("th", { scope: "col" }, "tactic"));
  return el("table", {}, el("thead", {}, heads), el("tbody", {}, rows));
}
