// The client of the API. A token that was typed in is kept in sessionStorage: it ends with the tab.
// The key of a session is kept in localStorage: all tabs of this page have it, and no other port of
// this host, which the session's cookie is sent to.

const tokenKey = "levelwire-token";

export class APIError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(tokenKey),
  set: (value) => (value ? sessionStorage.setItem(tokenKey, value) : sessionStorage.removeItem(tokenKey)),
};

const keyName = "levelwire-session-key";

export const sessionKey = {
  get: () => localStorage.getItem(keyName) || "none",
  set: (value) => (value ? localStorage.setItem(keyName, value) : localStorage.removeItem(keyName)),
};

// bytes counts what answers of the API had, uncompressed.
export const received = { bytes: 0 };

// request sends one request, and throws an APIError unless it succeeds.
export async function request(path, options = {}) {
  const headers = { "Levelwire-Ui": sessionKey.get(), Accept: "application/json", ...options.headers };
  if (token.get()) headers.Authorization = "Bearer " + token.get();
  if (options.body && !headers["Content-Type"]) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  if (!response.ok) {
    const text = await response.text();
    let message = text.trim();
    try {
      message = JSON.parse(text).message || message;
    } catch { /* it is no Status */ }
    throw new APIError(response.status, message || response.statusText);
  }
  return response;
}

export async function get(path, options) {
  const text = await (await request(path, options)).text();
  received.bytes += text.length;
  return JSON.parse(text);
}

export const send = async (method, path, body, headers = {}) => {
  const response = await request(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
};

// watch calls each with every event of a watch until it ends, and returns how it ended.
export async function watch(path, signal, each, headers = {}) {
  const response = await request(path, { signal, headers });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    received.bytes += value.length;
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) each(JSON.parse(line));
  }
}

// whoAmI returns the name of the user, or throws an APIError.
export async function whoAmI() {
  const review = await send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });
  return review.status.userInfo;
}

// collection returns the path of a collection.
export function collection(resource, namespace) {
  const group = resource.group ? `/apis/${resource.group}/${resource.version}` : `/api/${resource.version}`;
  const within = namespace && resource.namespaced ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${group}${within}/${resource.resource}`;
}

// resources returns what is served and can be listed, in the preferred versions.
export async function resources() {
  const found = [];
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
  for (const root of ["/api", "/apis"]) {
    const list = await get(root, { headers: { Accept: accept } });
    for (const group of list.items || []) {
      const names = new Set();
      for (const version of group.versions || []) {
        for (const r of version.resources || []) {
          if (!r.verbs.includes("list") || names.has(r.resource)) continue;
          names.add(r.resource);
          found.push({ group: group.metadata.name || "", version: version.version, resource: r.resource, kind: r.responseKind.kind,
            namespaced: r.scope === "Namespaced", watchable: r.verbs.includes("watch") });
        }
      }
    }
  }
  return found.sort((a, b) => a.resource.localeCompare(b.resource) || a.group.localeCompare(b.group));
}

export const nameOf = (resource) => (resource.group ? `${resource.resource}.${resource.group}` : resource.resource);
