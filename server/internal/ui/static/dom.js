// Small helpers to build elements. Text is always set as text, never as HTML.

// el makes an element: el("p", {class: "x", onclick: f}, "text", child).
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  setAll(node, attributes);
  append(node, children);
  return node;
}

const svgNamespace = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(svgNamespace, name);
  setAll(node, attributes);
  append(node, children);
  return node;
}

function setAll(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (node instanceof HTMLElement && key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
}

function append(node, children) {
  for (const child of children.flat()) if (child !== undefined && child !== null && child !== false) node.append(child);
}

export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

export const field = (label, control) => el("label", {}, label, control);

export const number = (n) => Number(n).toLocaleString("en");

// count writes a number of things.
export const count = (n, one) => `${number(n)} ${one}${n === 1 ? "" : "s"}`;

export function bytes(n) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (n < 1000 || unit === "GB") return `${n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1000;
  }
}

export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60000)} min`;
}

// age writes how long something has existed, as kubectl does.
export function age(since) {
  const s = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86400)];
  const both = (n, unit, rest, small) => (rest ? `${n}${unit}${rest}${small}` : `${n}${unit}`);
  if (s < 120) return `${s}s`;
  if (m < 10) return both(m, "m", s % 60, "s");
  if (m < 180) return `${m}m`;
  if (h < 8) return both(h, "h", m % 60, "m");
  if (h < 48) return `${h}h`;
  if (d < 8) return both(d, "d", h % 24, "h");
  if (d < 730) return `${d}d`;
  const y = Math.floor(d / 365);
  return y < 8 ? both(y, "y", d % 365, "d") : `${y}y`;
}

// clock returns the time of day of a moment.
export const clock = (text) => (text ? new Date(text).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 2 }) : "");

// every calls f at once and then again, a while after it has returned, until signal is aborted.
export async function every(milliseconds, signal, f, failed) {
  while (!signal.aborted) {
    if (!document.hidden) {
      try {
        await f();
      } catch (error) {
        if (!signal.aborted) failed(error);
      }
    }
    await sleep(milliseconds, signal);
  }
}

export const sleep = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
