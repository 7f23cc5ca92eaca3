// The flow: the logs of the resources, and the cursors of all watches on them.

import { get, collection, nameOf } from "./api.js";
import { el, svg, fill, every, number, bytes, duration, clock, field } from "./dom.js";
import { series } from "./charts.js";
import { demonstration } from "./demonstration.js";

const shownEvents = 400;

export function flow(main, signal, say) {
  const cards = el("dl", { class: "cards" });
  const choice = el("select", { onchange: refreshSoon });
  const strip = svg("svg", { class: "strip", role: "img", preserveAspectRatio: "none" });
  const watchers = el("tbody");
  const caption = el("caption");
  const demo = el("section", { class: "panel", "aria-label": "A demonstration client" });
  const logs = el("tbody");
  const events = series("Events applied in a second", "added", (n) => number(Math.round(n * 10) / 10), signal);
  const lag = series("The watch that is furthest behind", "late", duration, signal);
  fill(main,
    el("h2", {}, "The flow"), cards,
    el("div", { class: "bar" }, field("Log of", choice)),
    strip,
    el("ul", { class: "legend" }, legend("added", "added"), legend("modified", "modified"), legend("deleted", "deleted"),
      el("li", {}, "Each mark is an event of the shared log, the newest at the right; each triangle is the cursor of a watch.")),
    el("div", { class: "split charts" }, events.figure, lag.figure),
    el("div", { class: "split two" },
      el("section", {}, el("h3", {}, "Watches"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Watches" },
        el("table", { id: "watchers" }, caption, head(["Lag", "number"], ["For", "number"], "User", "Client", "Resource", "Selector", "Protocol", "Began", "State", ["Sent", "number"]), watchers))),
      demo),
    el("h3", {}, "Logs"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Logs" },
      el("table", { id: "logs" }, head("Resource", ["Objects", "number"], ["Events in the log", "number"], ["Since", "number"], ["Watches", "number"], ["Exact resumes", "number"], ["Coalesced", "number"], ["With the state", "number"], ["Expired", "number"]), logs)));

  const client = demonstration(demo, signal, say);
  let known = [];
  let applied, appliedAt;
  let again = () => {};
  function refreshSoon() { again(); }

  every(1000, signal, async () => {
    const [all, open] = await Promise.all([get("/debug/listwatch/logs", { signal }), get("/debug/listwatch/watchers?limit=200", { signal })]);
    say(null);
    known = all.resources;
    showChoice(choice, known);
    showCards(cards, all);
    const sum = known.reduce((n, r) => n + r.applied, 0), now = performance.now();
    events.add(applied === undefined ? null : Math.max(0, sum - applied) * 1000 / (now - appliedAt));
    [applied, appliedAt] = [sum, now];
    lag.add(Math.max(0, ...open.items.map((w) => (w.lagEvents ? w.lagMillis : 0))));
    showLogs(logs, known);
    showWatchers(watchers, caption, open, client.name());
    const chosen = known.find((r) => nameOf(r) === choice.value);
    if (chosen) await showStrip(strip, chosen, open.items, client.name(), signal);
  }, say);
  again = async () => {
    const chosen = known.find((r) => nameOf(r) === choice.value);
    if (chosen) await showStrip(strip, chosen, [], "", signal).catch(say);
  };
}

const legend = (kind, text) => el("li", {}, svg("svg", { viewBox: "0 0 8 8", "aria-hidden": "true" }, svg("rect", { width: 8, height: 8, class: kind })), " ", text);

export const head = (...columns) => el("thead", {}, el("tr", {}, columns.map((c) =>
  (Array.isArray(c) ? el("th", { scope: "col", class: c[1] }, c[0]) : el("th", { scope: "col" }, c)))));

function showChoice(choice, resources) {
  const names = resources.filter((r) => r.ready).map(nameOf).sort();
  if (choice.options.length === names.length) return;
  const before = choice.value || "pods";
  fill(choice, names.map((name) => el("option", {}, name)));
  choice.value = names.includes(before) ? before : names[0];
}

function card(name, value) { return el("div", { class: "card" }, el("dt", {}, name), el("dd", { "data-card": name }, value)); }

function showCards(cards, all) {
  const sum = (of) => all.resources.reduce((n, r) => n + of(r), 0);
  fill(cards,
    card("Store revision", number(all.revision)),
    card("Open watches", number(all.watchers)),
    card("Objects", number(sum((r) => r.objects))),
    card("Events applied", number(sum((r) => r.applied))),
    card("Lists saved", number(sum((r) => r.resumes.exact + r.resumes.coalesced + r.resumes.continued))),
    card("Logs", bytes(sum((r) => r.logBytes))));
}

function showLogs(body, resources) {
  const busy = resources.filter((r) => r.objects || r.watchers || r.applied).sort((a, b) => b.applied - a.applied || b.objects - a.objects);
  fill(body, busy.map((r) => el("tr", {},
    el("th", { scope: "row" }, nameOf(r)), cell(number(r.objects)), cell(number(r.events)), cell(r.oldestTime ? clock(r.oldestTime) : ""), cell(number(r.watchers)),
    cell(number(r.resumes.exact)), cell(number(r.resumes.coalesced + r.resumes.continued)), cell(number(r.resumes.initial)), cell(number(r.expired)))));
}

const cell = (text) => el("td", { class: "number" }, text);

function showWatchers(body, caption, open, mine) {
  caption.textContent = `${number(open.total)} open, those that lag most first`;
  fill(body, open.items.map((w) => el("tr", { class: w.lagEvents > 0 ? "late" : isMine(w, mine) ? "mine" : undefined, "data-watch": w.id },
    cell(w.state === "busy" ? "…" : number(w.lagEvents)), cell(w.lagEvents ? duration(w.lagMillis) : ""),
    el("td", { title: w.user }, w.user), el("td", { title: w.agent || "" }, (isMine(w, mine) ? "this page" : (w.agent || "").split(" ")[0])),
    el("td", {}, (w.group ? `${w.resource}.${w.group}` : w.resource) + (w.namespace ? ` in ${w.namespace}` : "")),
    el("td", { title: [w.labelSelector, w.fieldSelector].filter(Boolean).join(" ") }, [w.labelSelector, w.fieldSelector].filter(Boolean).join(" ")),
    el("td", {}, w.protocol.replace(".0", "")), el("td", {}, w.coalescedThrough ? "coalesced" : w.began || ""), el("td", {}, w.state), cell(bytes(w.bytes)))));
}

const isMine = (w, mine) => mine && (w.demonstration === mine);

// showStrip draws the latest events of a log, and the cursors of the watches on it.
async function showStrip(strip, resource, watchers, mine, signal) {
  let log;
  try {
    log = await get(`/debug/listwatch/events${collection(resource)}?limit=${shownEvents}`, { signal });
  } catch (error) {
    if (error.status !== 403 && error.status !== 405) throw error;
    fill(strip, svg("text", { x: 20, y: 75, class: "muted" }, "Its events are not yours to see."));
    return;
  }
  const width = strip.clientWidth || 800;
  strip.setAttribute("viewBox", `0 0 ${width} 150`);
  const step = Math.max(2, Math.min(14, (width - 90) / Math.max(log.items.length, 1)));
  const left = width - 60 - step * log.items.length;
  const marks = log.items.map((e, i) => svg("rect", { x: left + i * step, y: 30, width: Math.max(1, step - 1), height: 34, class: e.type.toLowerCase() },
    svg("title", {}, `${e.revision} ${e.type} ${e.namespace ? e.namespace + "/" : ""}${e.name} ${clock(e.time)}`)));
  const head = left + log.items.length * step;
  // Watches that are at the same place share a triangle.
  const places = new Map();
  for (const w of watchers) {
    if (w.resource !== resource.resource || w.group !== resource.group || w.state === "busy") continue;
    const behind = w.lagEvents ? log.items.filter((e) => e.revision > w.position).length : 0;
    const x = Math.max(head - behind * step, 12);
    const row = w.lagEvents ? 1 : 0;
    const place = places.get(x) || { count: 0, row, mine: false, lag: 0 };
    place.count++;
    place.mine ||= isMine(w, mine);
    place.lag = Math.max(place.lag, w.lagEvents);
    places.set(x, place);
  }
  const cursors = [...places].map(([x, p]) => svg("g", { class: p.lag ? "late" : "muted" },
    svg("path", { d: `M${x} 68 l6 14 h-12 z` }),
    svg("text", { x, y: 98, "text-anchor": "middle", "font-size": 12 }, (p.mine ? "this page" + (p.count > 1 ? ` +${p.count - 1}` : "") : String(p.count))),
    p.lag ? svg("text", { x, y: 114, "text-anchor": "middle", "font-size": 12 }, `${p.lag} behind`) : null));
  fill(strip,
    svg("title", {}, `The log of ${nameOf(resource)}: ${number(resource.events)} events since revision ${resource.oldest}, ${resource.watchers} watches`),
    svg("text", { x: 8, y: 18, class: "muted", "font-size": 12 }, `${number(resource.events)} events since revision ${number(resource.oldest)}; the latest ${log.items.length} are shown`),
    svg("text", { x: width - 8, y: 18, class: "muted", "font-size": 12, "text-anchor": "end" }, `now ${number(log.revision)}`),
    svg("line", { x1: 0, x2: width, y1: 66, y2: 66, stroke: "currentColor", "stroke-opacity": 0.3 }),
    marks, cursors);
}

