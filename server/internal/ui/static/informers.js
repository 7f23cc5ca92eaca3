// The insides of a program's informers, which it publishes at a debug address of this machine.

import { el, fill, field, every, number, bytes, duration } from "./dom.js";
import { head } from "./flow.js";

const addressKey = "levelwire-informers";

export function informers(main, signal, say) {
  const address = el("input", { type: "url", required: true, size: 40, value: sessionStorage.getItem(addressKey) || "http://127.0.0.1:8080/debug/informers" });
  const items = el("tbody");
  const handlers = el("tbody");
  const program = el("p", { id: "program" });
  let reading = null;
  fill(main, el("h2", {}, "Informers"),
    el("p", {}, "A program with our library publishes its informers by package client/debug. The page reads an address of this machine, and sends it nothing of yours."),
    el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); follow(); } }, field("Address", address), el("button", {}, "Show")), program,
    scroll("Informers", el("table", { id: "informers" }, head("Informer", "State", ["Age", "number"], "At version", ["Objects", "number"], ["Bytes", "number"], "Indexes", ["DeltaFIFO", "number"], ["Events", "number"], ["Lists", "number"], ["Watches", "number"], ["Resumes", "number"], ["Differences", "number"]), items)),
    el("h3", {}, "Handlers"),
    scroll("Handlers", el("table", { id: "handlers" }, head("Informer", "Handler", ["Queued", "number"], ["For", "number"], ["Mean", "number"], ["Delivered", "number"], ["Coalesced", "number"], ["Panics", "number"], "Ended by"), handlers)));

  function follow() {
    reading?.abort();
    reading = new AbortController();
    const both = AbortSignal.any([signal, reading.signal]);
    sessionStorage.setItem(addressKey, address.value);
    every(1000, both, async () => {
      const response = await fetch(address.value, { signal: both, credentials: "omit", cache: "no-store" });
      if (!response.ok) throw new Error(`${address.value} answers ${response.status}`);
      show(await response.json());
      say(null);
    }, (error) => say(error instanceof TypeError ? new Error(`${address.value} cannot be read: is it an address of this machine, and does the program use client/debug?`) : error));
  }

  function show(all) {
    program.textContent = `${all.program}: ${number(all.items.length)} informers`;
    fill(items, all.items.map((i) => el("tr", { class: i.queued ? "late" : undefined }, el("th", { scope: "row" }, i.name),
      el("td", { title: i.lastError || "" }, i.lastError ? i.lastError : i.synced ? "synced" : "not synced"), cell(i.ageMillis < 0 ? "" : duration(i.ageMillis)), el("td", {}, i.resourceVersion || ""),
      cell(number(i.objects)), cell(bytes(i.bytes)), el("td", {}, (i.indexes || []).map((x) => `${x.name} ${number(x.values)}`).join(", ")), cell(number(i.queued)), cell(number(i.events)), cell(number(i.lists)), cell(number(i.watches)), cell(number(i.resumes)), cell(number(i.differences)))));
    fill(handlers, all.items.flatMap((i) => i.handlers.map((h) => el("tr", { class: h.queued ? "late" : undefined }, el("th", { scope: "row" }, i.name), el("td", {}, h.name),
      cell(number(h.queued)), cell(h.lagMillis ? duration(h.lagMillis) : ""), cell(h.delivered && h.busyMillis ? duration(h.busyMillis / h.delivered) : ""), cell(number(h.delivered)), cell(number(h.coalesced)), cell(number(h.panics)), el("td", {}, h.error || "")))));
  }
}

const cell = (text) => el("td", { class: "number" }, text);

const scroll = (label, table) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
