// Signs in, and shows the view that the address names.

import { token, sessionKey, whoAmI, request, send } from "./api.js";
import { el, fill } from "./dom.js";
import { flow } from "./flow.js";
import { objects } from "./objects.js";
import { run } from "./run.js";
import { time } from "./time.js";
import { informers } from "./informers.js";

const views = { flow, objects, run, time, informers };
const main = document.getElementById("view");
const status = document.getElementById("status");
let current = null; // the AbortController of the view that is shown

// say shows what went wrong until something else did, or nothing.
export function say(error) {
  if (error?.name === "AbortError") return;
  status.textContent = !error ? "" : error.status === 403 ? `Not allowed: ${error.message}` : error.message || String(error);
}

async function begin() {
  const link = /[#&]link=([A-Za-z0-9]+)/.exec(location.hash);
  if (link) {
    history.replaceState(null, "", location.pathname);
    try {
      sessionKey.set((await send("POST", "/ui/session", { link: link[1] })).key);
    } catch (error) {
      return signIn(error.message);
    }
  }
  try {
    const user = await whoAmI();
    fill(document.getElementById("who"), user.username, " ", el("button", { onclick: signOut }, "Sign out"));
  } catch (error) {
    return signIn(error.status === 401 ? (token.get() ? "That token is not accepted." : "") : error.message);
  }
  show();
}

function signIn(problem) {
  token.set(null);
  current?.abort();
  fill(document.getElementById("who"));
  const input = el("input", { type: "password", name: "token", autocomplete: "off", required: true });
  fill(main, el("section", { id: "signin", class: "panel" },
    el("h2", {}, "Sign in"),
    problem ? el("p", { role: "alert", class: "deleted" }, problem) : null,
    el("form", {
      onsubmit: (event) => {
        event.preventDefault();
        token.set(input.value.trim());
        begin();
      },
    }, el("label", {}, "Bearer token", input), el("button", {}, "Sign in")),
    el("p", {}, "Or install a client certificate in this browser, and load the page again; or open a one-time link on the machine of the server. ",
      "levelwire up prints one, and this command makes another for the user of a kubeconfig:"),
    el("pre", {}, "kubectl create --raw /ui/link -f /dev/null")));
  input.focus();
}

async function signOut() {
  token.set(null);
  await request("/ui/session", { method: "DELETE" }).catch(() => {});
  sessionKey.set(null);
  signIn("");
}

function show() {
  const [name, ...rest] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  const view = views[name] ? name : "flow";
  current?.abort();
  current = new AbortController();
  say(null);
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.hash === "#/" + view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view} · Levelwire`;
  main.replaceChildren();
  views[view](main, current.signal, say, rest);
}

addEventListener("hashchange", () => {
  if (location.hash.includes("link=")) return begin();
  if (document.getElementById("signin")) return undefined;
  show();
  main.focus();
  return undefined;
});

// The keys 1 to 5 choose a view, / goes to the first input.
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const links = document.querySelectorAll("#tabs a");
  if (event.key >= "1" && event.key <= String(links.length)) links[event.key - 1].click();
  if (event.key === "/") {
    main.querySelector("input")?.focus();
    event.preventDefault();
  }
});

begin();
