// One object: YAML with its fields' managers as colour, owners, events, and its versions.

import { get, resources, collection, nameOf } from "./api.js";
import { el, fill, every, clock, number, count } from "./dom.js";
import { yaml, difference } from "./yaml.js";

export async function showObject(main, signal, say, [kindName, namespace, name]) {
  const kinds = await resources().catch((error) => { say(error); return []; });
  const kind = kinds.find((k) => nameOf(k) === kindName);
  if (signal.aborted || !kind) return;
  const path = `${collection(kind, namespace)}/${encodeURIComponent(name)}`;
  const text = el("pre", { tabindex: "0", role: "region", "aria-label": "YAML" });
  const managers = el("ul", { class: "legend", "aria-label": "Managers of fields" });
  const owners = el("div");
  const events = el("tbody");
  const versions = el("tbody");
  const changes = el("pre", { tabindex: "0", role: "region", "aria-label": "What changed" });
  fill(main, el("p", {}, el("a", { href: `#/objects/${encodeURIComponent(kindName)}/${encodeURIComponent(namespace)}` }, `All ${kindName}${namespace ? ` in ${namespace}` : ""}`)),
    el("h2", {}, `${kind.kind} ${namespace ? namespace + "/" : ""}${name}`),
    el("div", { class: "split two" },
      el("section", { class: "panel" }, el("h3", {}, "YAML"), managers, text),
      el("section", {}, el("h3", {}, "Owners and what it owns"), owners,
        el("h3", {}, "Events"), el("table", {}, el("thead", {}, el("tr", {}, ["Type", "Reason", "Message"].map((c) => el("th", { scope: "col" }, c)))), events),
        el("h3", {}, "Versions"), el("table", { id: "versions" }, el("caption"), el("thead", {}, el("tr", {}, ["Version", "At", "Change", "Changed fields"].map((c) => el("th", { scope: "col" }, c)))), versions),
        changes)));

  let shown = "";
  let selected = null;
  await every(1500, signal, async () => {
    const history = await get(`/debug/listwatch/history${path}?limit=50`, { signal });
    say(null);
    const latest = history.items.at(-1);
    const key = history.items.map((v) => v.revision).join();
    if (key === shown) return;
    shown = key;
    const object = history.items.findLast((v) => v.object)?.object;
    if (object) {
      showYAML(text, managers, object);
      await showOwners(owners, kinds, object, signal);
    }
    if (latest.type === "DELETED") text.prepend("# deleted\n");
    showVersions(history);
  }, (error) => { if (error.status === 404) fill(text, "It does not exist, and the server remembers no version of it."); else say(error); });

  function showVersions(history) {
    const items = history.items;
    versions.parentNode.caption.textContent = `${count(items.length, "version")}; every one since revision ${number(history.oldest)} is kept`;
    const rows = items.map((version, i) => {
      const before = items[i - 1]?.object;
      const changed = version.object && before ? difference(before, version.object) : [];
      const paths = [...new Set(changed.map((c) => c.path))].filter((p) => !/^metadata\.(resourceVersion|managedFields)/.test(p));
      return el("tr", {}, el("th", { scope: "row" }, el("button", { onclick: () => { selected = version.revision; compare(version, before); } }, String(version.revision))),
        el("td", {}, version.time ? clock(version.time) : "before"), el("td", {}, version.type || ""), el("td", { title: paths.join(" ") }, paths.slice(0, 3).join(", ") + (paths.length > 3 ? ` and ${paths.length - 3} more` : "")));
    });
    fill(versions, rows.reverse());
    if (selected === null && items.length > 1) compare(items.at(-1), items.at(-2).object);
  }

  function compare(version, before) {
    const lines = version.object ? difference(before || {}, version.object) : [];
    fill(changes, el("span", {}, `# version ${version.revision} ${version.type || ""}\n`), version.type === "DELETED" ? "deleted" :
      lines.filter((c) => !c.path.startsWith("metadata.managedFields")).map((c) =>
        [c.before === undefined ? null : el("span", { class: "deleted" }, `- ${c.path}: ${c.before}\n`), c.after === undefined ? null : el("span", { class: "added" }, `+ ${c.path}: ${c.after}\n`)]));
  }

  const selector = new URLSearchParams({ fieldSelector: `involvedObject.name=${name},involvedObject.kind=${kind.kind}`, limit: "20" });
  const related = await get(`/api/v1/${namespace ? `namespaces/${encodeURIComponent(namespace)}/` : ""}events?${selector}`, { signal }).catch(() => ({ items: [] }));
  fill(events, related.items.length ? related.items.map((e) => el("tr", {}, el("td", {}, e.type), el("td", {}, e.reason), el("td", { title: e.message }, e.message))) :
    el("tr", {}, el("td", { colspan: "3", class: "muted" }, "none")));
}

// showYAML marks each line by the manager that owns its field.
function showYAML(text, legend, object) {
  const managers = [...new Set((object.metadata.managedFields || []).map((m) => m.manager))];
  const owned = new Map();
  for (const entry of object.metadata.managedFields || []) walk(entry.fieldsV1 || {}, [], (path) => owned.set(path, managers.indexOf(entry.manager)));
  const { managedFields, ...metadata } = object.metadata;
  fill(legend, managers.map((m, i) => el("li", { class: `owner o${i % 5}` }, m)));
  fill(text, yaml({ ...object, metadata }).map(({ line, path }) => {
    const owner = owned.get(path);
    return el("div", owner === undefined ? { class: "owner" } : { class: `owner o${owner % 5}`, title: managers[owner] }, line);
  }));
}

// walk calls each with the dotted path of every field that fieldsV1 names; items of lists are
// named by their keys there, so lists are marked as a whole.
function walk(fields, path, each) {
  for (const [key, below] of Object.entries(fields)) {
    if (!key.startsWith("f:")) {
      if (path.length) each(path.join("."));
      continue;
    }
    const at = [...path, key.slice(2)];
    if (Object.keys(below).length === 0) each(at.join("."));
    else walk(below, at, each);
  }
}

// showOwners shows the owners of an object, and the objects of common kinds that it owns.
async function showOwners(node, kinds, object, signal) {
  const link = (kind, meta) => el("li", {}, el("a", { href: `#/objects/object/${encodeURIComponent(nameOf(kind))}/${encodeURIComponent(meta.namespace || "")}/${encodeURIComponent(meta.name)}` }, `${kind.kind} ${meta.name}`));
  const above = (object.metadata.ownerReferences || []).map((o) => {
    const [group, version] = o.apiVersion.includes("/") ? o.apiVersion.split("/") : ["", o.apiVersion];
    const kind = kinds.find((k) => k.kind === o.kind && k.group === group) || { kind: o.kind, group, version, resource: "" };
    return kind.resource ? link(kind, { name: o.name, namespace: kind.namespaced ? object.metadata.namespace : "" }) : el("li", {}, `${o.kind} ${o.name}`);
  });
  const owns = { Deployment: ["replicasets.apps"], ReplicaSet: ["pods"], StatefulSet: ["pods"], DaemonSet: ["pods"], Job: ["pods"], CronJob: ["jobs.batch"], Service: ["endpointslices.discovery.k8s.io"] }[object.kind] || [];
  const below = [];
  for (const name of owns) {
    const kind = kinds.find((k) => nameOf(k) === name);
    const list = kind && await get(`${collection(kind, object.metadata.namespace)}?limit=500`, { signal }).catch(() => null);
    for (const item of list?.items || []) {
      if ((item.metadata.ownerReferences || []).some((o) => o.uid === object.metadata.uid)) below.push(link(kind, item.metadata));
    }
  }
  fill(node, el("ul", {}, above, el("li", {}, el("strong", {}, `${object.kind} ${object.metadata.name}`), below.length ? el("ul", {}, below) : null)));
}

