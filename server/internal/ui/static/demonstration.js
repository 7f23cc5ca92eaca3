// A watch of the page's own, whose connection can be slowed, stopped and cut.

import { send, watch, APIError } from "./api.js";
import { el, fill, sleep, number, duration } from "./dom.js";

const namespace = "default";
const demoLabel = "levelwire-demonstration";

export function demonstration(panel, signal, say) {
  let name = "";
  let version = ""; // of the last event
  let connection = null;
  let paused = false;
  const counts = { events: 0, connections: 0, resumes: 0, lists: 0, lastGap: 0 };
  const facts = el("dl", { class: "cards", "aria-live": "off" });
  const log = el("ol", { "aria-live": "polite", "aria-label": "What happened to the client" });
  const buttons = {
    start: el("button", { onclick: start }, "Start a watch"),
    churn: el("button", { onclick: churn, "aria-pressed": "false" }, "Make changes"),
    slow: el("button", { onclick: () => pace(2000, "slow: reads 2 kB a second"), disabled: true }, "Slow"),
    half: el("button", { onclick: () => pace(0, "reads nothing: half open"), disabled: true }, "Half-open"),
    normal: el("button", { onclick: () => pace(-1, "reads at full speed"), disabled: true }, "Full speed"),
    cut: el("button", { onclick: cut, disabled: true }, "Cut"),
  };
  fill(panel, el("h3", {}, "A client to play with"),
    el("p", {}, `This page watches the ConfigMaps of the namespace ${namespace}. Slow it or cut it: it alone falls behind, and then it resumes where it was, without a list.`),
    el("div", { class: "bar" }, Object.values(buttons)), facts, log);
  show();

  function note(text) {
    log.append(el("li", {}, text));
    while (log.children.length > 8) log.firstChild.remove();
  }

  function show() {
    const fact = (label, value) => el("div", { class: "card" }, el("dt", {}, label), el("dd", { "data-demo": label }, value));
    fill(facts, fact("Events", number(counts.events)), fact("At version", version || "–"), fact("Connections", number(counts.connections)),
      fact("Resumes", number(counts.resumes)), fact("Lists", number(counts.lists)), fact("Lists saved", number(counts.resumes)));
  }

  async function start() {
    buttons.start.disabled = true;
    for (const b of [buttons.slow, buttons.half, buttons.normal, buttons.cut]) b.disabled = false;
    while (!signal.aborted) {
      connection = new AbortController();
      const both = AbortSignal.any([signal, connection.signal]);
      name = crypto.randomUUID();
      const from = version ? `resourceVersion=${version}` : "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
      counts.connections++;
      if (version) counts.resumes++;
      else counts.lists++;
      note(version ? `resumes at version ${version}` : "begins with the state");
      let first = true;
      const opened = performance.now();
      try {
        await watch(`/api/v1/namespaces/${namespace}/configmaps?watch=1&allowWatchBookmarks=true&${from}&levelwireDemonstration=${name}`, both, (event) => {
          if (event.type === "ERROR") throw new APIError(event.object.code, event.object.message);
          version = event.object.metadata.resourceVersion;
          if (event.type !== "BOOKMARK") counts.events++;
          if (first && counts.resumes) note(`first event ${duration(performance.now() - opened)} after the connection`);
          first = false;
          throttledShow();
        });
        note("the server ended the watch");
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 410) version = "";
        if (error.status === 403 || error.status === 401) {
          say(error);
          return;
        }
        note(connection.signal.aborted ? "the connection was cut" : `the connection broke: ${error.message}`);
      }
      show();
      await sleep(700, signal);
    }
  }

  let due = 0;
  function throttledShow() {
    if (due) return;
    due = setTimeout(() => { due = 0; show(); }, 200);
  }

  async function pace(rate, text) {
    try {
      await send("PUT", `/ui/pace/${name}?bytesPerSecond=${rate}`);
      note(text);
    } catch (error) {
      say(error);
    }
  }

  function cut() { connection?.abort(); }

  // churn changes a ConfigMap again and again until it is pressed again.
  async function churn() {
    paused = buttons.churn.getAttribute("aria-pressed") === "true";
    buttons.churn.setAttribute("aria-pressed", String(!paused));
    if (paused) return;
    const object = "levelwire-demonstration";
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    try {
      for (let i = 0; !paused && !signal.aborted; i++) {
        await send("PATCH", `${path}/${object}?fieldManager=levelwire-ui&force=true`, {
          apiVersion: "v1", kind: "ConfigMap", metadata: { name: object, labels: { [demoLabel]: "true" } },
          data: { round: String(i), filling: "x".repeat(1500) },
        }, { "Content-Type": "application/apply-patch+yaml" });
        await sleep(40, signal);
      }
      await send("DELETE", `${path}/${object}`);
    } catch (error) {
      buttons.churn.setAttribute("aria-pressed", "false");
      if (!signal.aborted) say(error);
    }
  }

  return { name: () => name };
}
