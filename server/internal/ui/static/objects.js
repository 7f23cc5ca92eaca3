// Objects of any kind, as kubectl prints them. The server sorts and counts; only the rows that
// can be seen are watched, by a stream that the server sends them and their changes on.

import { get, watch, resources, collection, nameOf } from "./api.js";
import { el, fill, field, number, sleep, every, age } from "./dom.js";
import { showObject } from "./object.js";

const rowHeight = 30;
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
// A browser does not scroll further than this many pixels; longer lists are scrolled in proportion.
const maxScroll = 8_000_000;

export async function objects(main, signal, say, [kindName = "pods", namespace = "", ...rest]) {
  if (kindName === "object") return showObject(main, signal, say, [namespace, ...rest]);
  const kinds = await resources().catch((error) => { say(error); return []; });
  if (signal.aborted || !kinds.length) return undefined;
  const kind = kinds.find((k) => nameOf(k) === kindName) || kinds[0];
  const list = new List(main, signal, say, kind, namespace);
  list.build(kinds);
  document.addEventListener("visibilitychange", () => list.load(), { signal });
  list.follow();
  every(1000, signal, () => list.showAges(), say);
  return undefined;
}

class List {
  constructor(main, signal, say, kind, namespace) {
    Object.assign(this, { main, signal, say, kind, namespace });
    this.sortBy = "";
    this.descending = false;
    this.first = 0; // the number of the first row that is shown
    this.rows = 15;
    this.total = 0;
    this.columns = [];
    this.known = new Map(); // rows by name
    this.names = []; // of the rows that are shown
    this.stream = null; // the AbortController of the stream
    this.opening = false; // the stream has not shown anything yet
    this.watchable = kind.watchable;
  }

  build(kinds) {
    const go = () => { location.hash = `#/objects/${encodeURIComponent(this.kinds.value)}/${encodeURIComponent(this.space.value.trim())}`; };
    this.kinds = el("select", { onchange: go }, kinds.map((k) => el("option", { selected: k === this.kind }, nameOf(k))));
    this.space = el("input", { value: this.namespace, placeholder: "all", onchange: go, disabled: !this.kind.namespaced, size: 14 });
    this.labels = el("input", { placeholder: "app=web", onchange: () => this.restart(), size: 18 });
    this.fields = el("input", { placeholder: "status.phase=Running", onchange: () => this.restart(), size: 24 });
    this.order = el("select", { onchange: () => { [this.sortBy, this.descending] = JSON.parse(this.order.value); this.restart(); } },
      [["Namespace and name", "", false], ["Name", "name", false], ["Newest first", "created", true], ["Oldest first", "created", false], ["Changed last", "changed", true]]
        .map(([text, by, descending]) => el("option", { value: JSON.stringify([by, descending]) }, text)));
    this.facts = el("p", { id: "facts" });
    this.header = el("tr");
    this.body = el("tbody");
    this.spacer = el("div");
    this.scroller = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `List of ${nameOf(this.kind)}`, onscroll: () => this.scrolled(), onkeydown: (e) => this.key(e) },
      el("table", { id: "objects", "aria-rowcount": "-1" }, el("thead", {}, this.header), this.body), this.spacer);
    fill(this.main, el("h2", {}, this.kind.kind),
      el("div", { class: "bar" }, field("Kind", this.kinds), field("Namespace", this.space), field("Labels", this.labels), field("Fields", this.fields), field("Order", this.order)),
      this.facts, this.scroller);
    const height = Math.max(240, innerHeight - this.scroller.getBoundingClientRect().top - 40);
    this.scroller.style.height = `${height}px`;
    this.rows = Math.floor(height / rowHeight) - 1;
    const table = this.scroller.firstChild;
    table.style.position = "sticky";
    table.style.top = "0";
  }

  restart() {
    this.scroller.scrollTop = 0;
    this.first = 0;
    this.load();
  }

  // follow has a stream open for as long as the view is shown and can be seen. A stream ends
  // after some minutes, and when another part of the list is wanted.
  async follow() {
    while (!this.signal.aborted) {
      if (document.hidden) {
        await sleep(500, this.signal);
        continue;
      }
      this.stream = new AbortController();
      this.opening = true;
      this.again = false;
      this.begin = performance.now();
      const both = AbortSignal.any([this.signal, this.stream.signal]);
      try {
        await (this.watchable ? this.watch(both) : this.poll(both));
      } catch (error) {
        if (this.signal.aborted) return;
        if (!both.aborted && error.status === 403 && this.watchable) {
          this.watchable = false; // the user may only list, perhaps
          continue;
        }
        if (!both.aborted) {
          this.say(error);
          await sleep(2000, both);
        }
      } finally {
        this.stream.abort();
        this.opening = false;
      }
    }
  }

  // load shows another part of the list. A stream that is being opened is not taken back, so that
  // quick scrolling does not open one for each step.
  load() {
    if (this.opening) this.again = true;
    else this.stream?.abort();
  }

  query() {
    const query = new URLSearchParams({ offset: this.first, limit: this.rows, includeObject: "Metadata" });
    if (this.sortBy) query.set("sortBy", this.sortBy);
    if (this.descending) query.set("descending", "true");
    if (this.labels.value) query.set("labelSelector", this.labels.value);
    if (this.fields.value) query.set("fieldSelector", this.fields.value);
    // Windows are of what the server keeps: a kind that nobody can watch is elsewhere, or is kept nowhere.
    return `${this.kind.watchable ? "/debug/listwatch/window" : ""}${collection(this.kind, this.namespace)}?${query}`;
  }

  async watch(signal) {
    const first = this.first;
    await watch(`${this.query()}&watch=true`, signal, (event) => {
      if (event.type === "ERROR") throw Object.assign(new Error(event.object.message), { status: event.object.code });
      if (event.type !== "WINDOW") return this.learn(event.object, event.type === "DELETED");
      const { order, total, resourceVersion } = event.object;
      if (order) this.arrange(order);
      this.show(first, total, resourceVersion);
    }, { Accept: asTable });
  }

  // poll reads the rows once a second, for users and kinds that cannot watch.
  async poll(signal) {
    while (!signal.aborted) {
      const first = this.first;
      const table = await get(this.query(), { signal, headers: { Accept: asTable } });
      this.learn(table, false);
      const rows = table.rows || [];
      this.arrange(rows.map((row) => nameOfRow(row)));
      this.show(first, first + rows.length + (table.metadata.remainingItemCount || 0), table.metadata.resourceVersion);
      await sleep(1000, signal);
    }
  }

  // learn takes rows that are new or have changed.
  learn(table, deleted) {
    if (table.columnDefinitions?.length) {
      this.columns = table.columnDefinitions.map((c, i) => ({ name: c.name, i, wide: c.priority > 0 })).filter((c) => !c.wide);
      fill(this.header, this.namespaced ? el("th", { scope: "col" }, "Namespace") : null, this.columns.map((c) => el("th", { scope: "col" }, c.name)));
    }
    for (const row of table.rows || []) this.known.set(nameOfRow(row), this.draw(row, deleted));
  }

  arrange(names) {
    this.names = names;
    const known = new Map();
    for (const name of names) if (this.known.has(name)) known.set(name, this.known.get(name));
    this.known = known;
  }

  get namespaced() { return this.kind.namespaced && !this.namespace; }

  get maxFirst() { return Math.max(0, this.total - this.rows); }

  scrolled() {
    const most = this.scroller.scrollHeight - this.scroller.clientHeight;
    const first = most > 0 ? Math.round((this.scroller.scrollTop / most) * this.maxFirst) : 0;
    if (first === this.first) return;
    this.first = first;
    this.load();
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: this.rows, PageUp: -this.rows, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.target !== this.scroller) return;
    event.preventDefault();
    this.first = Math.min(Math.max(0, this.first + step), this.maxFirst);
    const most = this.scroller.scrollHeight - this.scroller.clientHeight;
    this.scroller.scrollTop = this.maxFirst ? (this.first / this.maxFirst) * most : 0;
    this.load();
  }

  draw(row, deleted) {
    const meta = row.object.metadata;
    const target = `#/objects/object/${encodeURIComponent(nameOf(this.kind))}/${encodeURIComponent(meta.namespace || "")}/${encodeURIComponent(meta.name)}`;
    return el("tr", { class: deleted ? "deleted" : undefined, "data-since": meta.creationTimestamp }, this.namespaced ? el("td", {}, meta.namespace) : null,
      this.columns.map((c, n) => (n === 0 ? el("th", { scope: "row" }, el("a", { href: target }, String(row.cells[c.i]))) :
        el("td", { class: c.name === "Age" ? "age" : undefined }, String(row.cells[c.i] ?? "")))));
  }

  show(first, total, version) {
    this.say(null);
    if (this.opening) this.took = performance.now() - this.begin;
    this.opening = false;
    this.total = total;
    const rows = this.names.map((name) => this.known.get(name)).filter(Boolean);
    rows.forEach((row, i) => row.setAttribute("aria-rowindex", String(first + i + 2)));
    if (rows.length !== this.body.children.length || rows.some((row, i) => row !== this.body.children[i])) this.body.replaceChildren(...rows);
    this.scroller.firstChild.setAttribute("aria-rowcount", String(this.total + 1));
    const hidden = Math.max(0, this.total - this.rows) * rowHeight;
    this.spacer.style.height = `${Math.min(hidden, maxScroll)}px`;
    const last = Math.min(first + rows.length, this.total);
    this.facts.textContent = `${number(rows.length ? first + 1 : 0)} to ${number(last)} of ${number(this.total)}${version ? `, at version ${version}` : ""}, in ${Math.round(this.took)} ms`;
    if (this.again) this.stream.abort();
  }

  // showAges brings the ages up to date: the server sends rows only when they change.
  showAges() {
    for (const cell of this.body.querySelectorAll("td.age")) {
      const text = age(cell.parentNode.dataset.since);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }
}

function nameOfRow(row) {
  const { namespace, name } = row.object.metadata;
  return namespace ? `${namespace}/${name}` : name;
}
