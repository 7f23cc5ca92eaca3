// Time: a collection as it was at any version that is kept, and what changed between two.

import { get, request, resources, collection, nameOf } from "./api.js";
import { el, fill, field, number, count, clock } from "./dom.js";

const shownEvents = 5000;

export async function time(main, signal, say, [kindName = "pods", namespace = ""]) {
  const kinds = (await resources().catch((error) => { say(error); return []; })).filter((k) => k.watchable);
  if (signal.aborted || !kinds.length) return;
  const kind = kinds.find((k) => nameOf(k) === kindName) || kinds[0];
  const go = () => { location.hash = `#/time/${encodeURIComponent(choice.value)}/${encodeURIComponent(space.value.trim())}`; };
  const choice = el("select", { onchange: go }, kinds.map((k) => el("option", { selected: k === kind }, nameOf(k))));
  const space = el("input", { value: namespace, placeholder: "all", onchange: go, disabled: !kind.namespaced, size: 14 });
  const from = el("input", { type: "range", min: "0", value: "0", step: "1" });
  const to = el("input", { type: "range", min: "0", value: "0", step: "1" });
  const fromText = el("output", {});
  const toText = el("output", {});
  const facts = el("p", { role: "status", id: "kept" });
  const state = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The state at that version" });
  const changes = el("tbody");
  fill(main, el("h2", {}, "Time"),
    el("div", { class: "bar" }, field("Kind", choice), field("Namespace", space), el("button", { onclick: () => load().catch(say) }, "Load again")), facts,
    el("div", { class: "panel" }, el("label", {}, "Show the state at ", toText, to), el("label", {}, "Compare with ", fromText, from)),
    el("div", { class: "split two" },
      el("section", {}, el("h3", {}, "As it was"), state),
      el("section", {}, el("h3", {}, "What changed between the two"), el("table", { id: "changes" }, el("caption"),
        el("thead", {}, el("tr", {}, ["Object", "Changes", "Last", "At"].map((c) => el("th", { scope: "col" }, c)))), changes))));

  let log = null;
  let steps = []; // the versions: before the first event, and after each
  async function load() {
    log = await get(`/debug/listwatch/events${collection(kind, namespace)}?limit=${shownEvents}`, { signal });
    say(null);
    const first = log.items[0];
    steps = [{ revision: first ? Math.max(first.revision - 1, log.oldest) : log.revision, time: null }, ...log.items.map((e) => ({ revision: e.revision, time: e.time }))];
    facts.textContent = log.truncated ? `The latest ${count(log.items.length, "change")} are shown; the server keeps more.` :
      `${count(log.items.length, "change")} since version ${number(log.oldest)}; what was before is not kept.`;
    for (const slider of [from, to]) slider.max = String(steps.length - 1);
    to.value = to.max;
    from.value = "0";
    await show();
  }

  let showing = null;
  async function show() {
    showing?.abort();
    showing = new AbortController();
    const mine = showing;
    const at = steps[Number(to.value)];
    const since = steps[Number(from.value)];
    const label = (step) => `version ${number(step.revision)}${step.time ? `, ${clock(step.time)}` : ""}`;
    toText.textContent = label(at);
    fromText.textContent = label(since);
    to.setAttribute("aria-valuetext", label(at));
    from.setAttribute("aria-valuetext", label(since));
    showChanges(Math.min(at.revision, since.revision), Math.max(at.revision, since.revision));
    try {
      const response = await request(`/debug/listwatch/window${collection(kind, namespace)}?limit=100&resourceVersion=${at.revision}&resourceVersionMatch=Exact`,
        { signal: AbortSignal.any([signal, mine.signal]), headers: { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" } });
      const table = await response.json();
      const columns = table.columnDefinitions.map((c, i) => ({ name: c.name, i, wide: c.priority > 0 })).filter((c) => !c.wide);
      const total = Number(response.headers.get("Levelwire-Total"));
      fill(state, el("table", { id: "state" }, el("caption", {}, `${count(total, "object")}${total > 100 ? ", the first 100" : ""}`),
        el("thead", {}, el("tr", {}, columns.map((c) => el("th", { scope: "col" }, c.name)))),
        el("tbody", {}, (table.rows || []).map((row) => el("tr", {}, columns.map((c) => el("td", {}, String(row.cells[c.i] ?? ""))))))));
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error.status === 410) fill(state, el("p", {}, "That version is not kept any more."));
      else throw error;
    }
  }

  function showChanges(after, through) {
    const objects = new Map();
    for (const e of log.items) {
      if (e.revision <= after || e.revision > through) continue;
      const key = (e.namespace ? e.namespace + "/" : "") + e.name;
      const known = objects.get(key) || { count: 0, first: e.type };
      objects.set(key, { ...known, count: known.count + 1, last: e.type, time: e.time });
    }
    changes.parentNode.caption.textContent = `${count(objects.size, "object")}${objects.size > 200 ? ", the first 200" : ""}`;
    fill(changes, [...objects].slice(0, 200).map(([key, o]) => {
      const effect = o.first === "ADDED" && o.last === "DELETED" ? "ADDED and DELETED" : o.first === "ADDED" ? "ADDED" : o.last;
      return el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, String(o.count)), el("td", { class: o.last.toLowerCase() }, effect), el("td", {}, clock(o.time)));
    }));
  }

  for (const slider of [from, to]) slider.addEventListener("input", () => show().catch(say));
  await load().catch(say);
}
