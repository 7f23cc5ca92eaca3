// The run flow: creates a ReplicaSet and a Service, and shows when each hop of the chain was
// seen, by watches of this page.

import { send, get, watch } from "./api.js";
import { el, fill, field, duration } from "./dom.js";

const namespace = "default";

const hops = [
  ["created", "ReplicaSet created", "the API server has stored it, and this page's watch has it"],
  ["pods", "Pods created", "by the ReplicaSet controller, which watches ReplicaSets"],
  ["bound", "Pods bound", "by the scheduler, which watches pods without a node"],
  ["running", "Pods running", "reported by the kubelets, which watch the pods of their nodes"],
  ["ready", "ReplicaSet ready", "its controller has seen the pods' status"],
  ["endpoints", "Endpoints published", "by the controller of EndpointSlices"],
];

export function run(main, signal, say) {
  const name = el("input", { value: "run-" + Math.random().toString(36).slice(2, 7), size: 14, pattern: "[a-z0-9]([a-z0-9-]*[a-z0-9])?", required: true });
  const replicas = el("input", { type: "number", min: "1", max: "50", value: "3", required: true });
  const start = el("button", {}, "Create a ReplicaSet");
  const remove = el("button", { type: "button", disabled: true }, "Delete it");
  const chain = el("ol", { class: "chain", "aria-live": "polite" });
  const facts = el("tbody");
  fill(main, el("h2", {}, "The run flow"),
    el("p", {}, `Creates a ReplicaSet, and a Service for its pods, in the namespace ${namespace}. Each time is when the first event that shows the hop reached this page, after the button was pressed; for pods, when it had done so for all of them.`),
    el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); begin().catch(say); } }, field("Name", name), field("Pods", replicas), start, remove),
    chain,
    el("h3", {}, "What was seen"),
    el("table", { id: "seen" }, el("thead", {}, el("tr", {}, ["After", "Resource", "Name", "Event", "Version"].map((c) => el("th", { scope: "col" }, c)))), facts));
  remove.addEventListener("click", () => clean().catch(say));
  draw({});

  function draw(at) {
    fill(chain, hops.map(([id, title, what]) => el("li", { "data-hop": id, class: at[id] !== undefined ? "lit" : undefined },
      el("strong", {}, title), el("time", {}, at[id] !== undefined ? duration(at[id]) : "…"), el("div", {}, what))));
  }

  async function begin() {
    start.disabled = true;
    say(null);
    const wanted = Number(replicas.value);
    const label = { "levelwire-run": name.value };
    const selector = encodeURIComponent(`levelwire-run=${name.value}`);
    const at = {};
    const pods = { pods: new Set(), bound: new Set(), running: new Set() };
    const stop = new AbortController();
    const both = AbortSignal.any([signal, stop.signal]);
    let begun = 0;
    const seen = (resource, event, what) => {
      const after = performance.now() - begun;
      facts.append(el("tr", {}, el("td", {}, duration(after)), el("td", {}, resource), el("td", {}, event.object.metadata.name), el("td", {}, what), el("td", {}, event.object.metadata.resourceVersion)));
      return after;
    };
    const reached = (hop, after) => {
      if (at[hop] !== undefined) return;
      at[hop] = after;
      draw(at);
    };
    const all = (hop, event, after) => {
      pods[hop].add(event.object.metadata.name);
      if (pods[hop].size >= wanted) reached(hop, after);
    };
    const follow = async (path, each) => {
      const list = await get(`${path}?labelSelector=${selector}`, { signal: both });
      watch(`${path}?watch=1&labelSelector=${selector}&resourceVersion=${list.metadata.resourceVersion}`, both, (event) => {
        if (event.type !== "BOOKMARK" && event.type !== "ERROR") each(event);
      }).catch((error) => { if (!both.aborted) say(error); });
    };
    await follow(`/apis/apps/v1/namespaces/${namespace}/replicasets`, (event) => {
      const status = event.object.status || {};
      const after = seen("replicasets", event, event.type === "ADDED" ? "created" : `${status.readyReplicas || 0} of ${event.object.spec.replicas} ready`);
      if (event.type === "ADDED") reached("created", after);
      if (status.readyReplicas === wanted) reached("ready", after);
    });
    await follow(`/api/v1/namespaces/${namespace}/pods`, (event) => {
      if (event.type === "DELETED") return;
      const { spec, status } = event.object;
      const after = seen("pods", event, [spec.nodeName ? `on ${spec.nodeName}` : "no node", status.phase].join(", "));
      all("pods", event, after);
      if (spec.nodeName) all("bound", event, after);
      if (status.phase === "Running") all("running", event, after);
    });
    await follow(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, (event) => {
      const ready = (event.object.endpoints || []).filter((e) => e.conditions?.ready).length;
      const after = seen("endpointslices", event, `${ready} ready`);
      if (ready >= wanted) reached("endpoints", after);
    });
    await send("POST", `/api/v1/namespaces/${namespace}/services`, {
      apiVersion: "v1", kind: "Service", metadata: { name: name.value, labels: label }, spec: { selector: label, ports: [{ port: 80 }] },
    });
    fill(facts);
    begun = performance.now();
    await send("POST", `/apis/apps/v1/namespaces/${namespace}/replicasets`, {
      apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: name.value, labels: label },
      spec: { replicas: wanted, selector: { matchLabels: label }, template: { metadata: { labels: label }, spec: { containers: [{ name: "main", image: "example.com/nothing:1" }] } } },
    });
    remove.disabled = false;
    remove.onclick = () => stop.abort();
  }

  async function clean() {
    remove.disabled = true;
    await send("DELETE", `/apis/apps/v1/namespaces/${namespace}/replicasets/${name.value}`);
    await send("DELETE", `/api/v1/namespaces/${namespace}/services/${name.value}`);
    name.value = "run-" + Math.random().toString(36).slice(2, 7);
    start.disabled = false;
  }
}
