// A table that sorts by its headings and shows the first rows until all are requested.
// columns: {key, label, sort(item) -> number | string | null, first: "ascending" | "descending", cell(item), numeric}

const ROWS_AT_FIRST = 400;

class ListTable {
  constructor(options) {
    this.options = options;
    this.items = options.items;
    this.limit = options.limit || ROWS_AT_FIRST;
    this.sorting = options.sorting || null;
    this.body = el("tbody");
    this.more = el("p", { class: "more" });
    this.heads = new Map();
    const heads = options.columns.map((column) => this.head(column));
    const columns = options.columns.map((c) => el("col", { class: "c-" + c.key }));
    this.element = el("div", {},
      el("div", { class: "scroll" },
        el("table", { class: "data " + (options.class || "") },
          el("caption", { class: "skip" }, options.caption),
          el("colgroup", {}, columns), el("thead", {}, el("tr", {}, heads)), this.body)),
      this.more);
    addEventListener("beforeprint", () => this.showAll());
  }

  head(column) {
    const label = column.sort
      ? el("button", { type: "button", onclick: () => this.sortBy(column) }, column.label)
      : column.label;
    const head = el("th", { scope: "col", class: column.numeric ? "n" : "", title: column.title || null }, label);
    if (column.sort) head.setAttribute("aria-sort", "none");
    this.heads.set(column, head);
    return head;
  }

  sortBy(column) {
    const other = { ascending: "descending", descending: "ascending" };
    const again = this.sorting && this.sorting.key === column.key;
    const direction = again ? other[this.sorting.direction] : column.first || "ascending";
    this.sorting = { key: column.key, direction };
    this.render();
  }

  show(items) {
    this.items = items;
    this.render();
  }

  showAll() {
    if (this.items.length <= this.limit) return;
    this.limit = Infinity;
    this.render();
  }

  // What is unknown goes last in both directions.
  sorted() {
    const column = this.sorting && this.options.columns.find((c) => c.key === this.sorting.key);
    if (!column) return this.items;
    const sign = this.sorting.direction === "ascending" ? 1 : -1;
    const keyed = this.items.map((item, place) => ({ item, place, key: column.sort(item) }));
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
      const order = typeof a.key === "number" ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true });
      return sign * order || a.place - b.place;
    });
    return keyed.map((k) => k.item);
  }

  render() {
    for (const [column, head] of this.heads) {
      const here = this.sorting && this.sorting.key === column.key;
      if (column.sort) head.setAttribute("aria-sort", here ? this.sorting.direction : "none");
    }
    const items = this.sorted();
    const rows = items.slice(0, this.limit).map((item) => this.options.row(item, this.cells(item)));
    if (!rows.length) rows.push(el("tr", {}, el("td", { colspan: this.options.columns.length, class: "empty" }, this.options.empty)));
    this.body.replaceChildren(...rows);
    const hidden = items.length - Math.min(items.length, this.limit);
    this.more.replaceChildren(...(hidden ? [el("button", { type: "button", onclick: () => this.showAll() },
      "Show all " + items.length.toLocaleString("en"))] : []));
    if (this.options.after) this.options.after();
  }

  cells(item) {
    return this.options.columns.map((c) => el("td", { class: (c.numeric ? "n " : "") + (c.lines ? "lines" : "") }, c.cell(item)));
  }
}

// A text field over a table; `matches` gets the words, each of which must be found.
function filterField(label, change) {
  return el("input", { type: "search", placeholder: label, "aria-label": label, oninput: change, spellcheck: "false" });
}
function hasWords(haystack, words) {
  return words.every((word) => haystack.includes(word));
}
function wordsOf(field) {
  return field.value.toLowerCase().split(/\s+/).filter(Boolean);
}
