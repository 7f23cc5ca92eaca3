// YAML of an object, and what differs between two. Both work on JSON values.

// yaml returns the lines of a value, each with the dotted path of its field; lines within a list
// have the path of the list.
export function yaml(value, path = "", indent = "", within = false) {
  const lines = [];
  for (const [key, item] of Object.entries(value)) {
    const at = within ? path : path ? `${path}.${key}` : key;
    if (item !== null && typeof item === "object" && Object.keys(item).length) {
      lines.push({ line: `${indent}${key}:`, path: at });
      if (Array.isArray(item)) lines.push(...listLines(item, at, indent));
      else lines.push(...yaml(item, at, indent + "  ", within));
    } else {
      lines.push({ line: `${indent}${key}: ${scalar(item)}`, path: at });
    }
  }
  return lines;
}

function listLines(list, path, indent) {
  const lines = [];
  for (const item of list) {
    if (item === null || typeof item !== "object") {
      lines.push({ line: `${indent}- ${scalar(item)}`, path });
      continue;
    }
    const below = Array.isArray(item) ? listLines(item, path, indent + "  ") : yaml(item, path, indent + "  ", true);
    if (below.length) below[0] = { line: `${indent}- ${below[0].line.slice(indent.length + 2)}`, path };
    lines.push(...below);
  }
  return lines;
}

// scalar quotes what YAML would read as something else.
function scalar(value) {
  if (value === null) return "null";
  if (typeof value === "object") return Array.isArray(value) ? "[]" : "{}";
  if (typeof value !== "string") return String(value);
  return /^[A-Za-z][\w./:@-]*( [\w./:@-]+)*$/.test(value) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(value) && !/: |:$/.test(value) ? value : JSON.stringify(value);
}

// difference returns the fields that differ: {path, before, after}, undefined where there is none.
export function difference(before, after, path = "") {
  const out = [];
  const composite = (v) => v !== null && typeof v === "object";
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const at = path ? `${path}.${key}` : key;
    const [a, b] = [before[key], after[key]];
    if (composite(a) && composite(b) && Array.isArray(a) === Array.isArray(b)) out.push(...difference(a, b, at));
    else if (JSON.stringify(a) !== JSON.stringify(b)) out.push({ path: at, before: a === undefined ? undefined : JSON.stringify(a), after: b === undefined ? undefined : JSON.stringify(b) });
  }
  return out;
}
