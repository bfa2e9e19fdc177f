// Keys, search as you type, and refreshed figures. Every page works without it.
"use strict";

const keys = document.getElementById("keys");
// In a cookie, as each port has its own storage, and the port mostly differs from one run to the next.
const keysOn = document.getElementById("keys-on");
keysOn.checked = !document.cookie.includes("keys=off");
keysOn.addEventListener("change", () => {
  document.cookie = `keys=${keysOn.checked ? "on" : "off"}; path=/; max-age=31536000; samesite=strict`;
});
document.querySelector("footer").hidden = false;  // it names the keys

function isTyping(element) {
  return element.closest("input, textarea, select, [contenteditable]") !== null;
}

function move(step) {
  const rows = [...document.querySelectorAll("main a.row")];
  if (rows.length === 0) return;
  const here = document.activeElement && document.activeElement.closest("li, tr, section");
  let place = rows.indexOf(document.activeElement);
  if (place < 0 && here) place = rows.findIndex((row) => here.contains(row));
  place = Math.min(Math.max(place + step, 0), rows.length - 1);
  rows[place].focus();
  rows[place].scrollIntoView({ block: "nearest" });
}

let waitsForPage = false;
document.addEventListener("keydown", (event) => {
  if (!keysOn.checked || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (keys && keys.open) return;
  if (waitsForPage) {
    waitsForPage = false;
    const page = document.querySelector(`nav [data-go="${CSS.escape(event.key)}"]`);
    if (page) page.click();
    return;
  }
  const field = document.querySelector("[data-key='/']") || document.getElementById("find");
  if (event.key === "/" && field) { event.preventDefault(); field.focus(); field.select(); }
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "u" || event.key === "x") {
    const row = document.activeElement.closest(".injections > li");
    const buttons = row ? row.querySelectorAll("button[aria-pressed]") : [];
    if (buttons.length) buttons[event.key === "u" ? 0 : 1].click();
  }
  else if (event.key === "g") waitsForPage = true;
  else if (event.key === "?" && keys) keys.showModal();
});

// Whether a person is at a place within a part of the page, or has selected some text.
function isRead(part) {
  return part.contains(document.activeElement) || String(getSelection()) !== "";
}

// The part of the page with this id or attribute, fetched anew. Throws if no page answers.
async function refresh(address, selector, purpose, signal) {
  const answer = await fetch(address, { headers: { "X-Fragment": purpose }, signal });
  if (!answer.ok) throw new Error(answer.status);
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const fresh = holder.content.querySelector(selector);
  const former = document.querySelector(selector);
  if (!fresh || !former || (purpose === "live" && isRead(former))) return;
  former.replaceChildren(...fresh.childNodes);
}

const late = document.querySelector("[data-load]");
if (late) refresh(late.dataset.load, "#" + late.id, "late").catch(() => {});

const form = document.querySelector("form[data-type-ahead]");
if (form) {
  let timer = 0;
  let running = null;
  const search = () => {
    const fields = [...new FormData(form)].filter(([, value]) => value !== "");
    const address = "/search" + (fields.length ? "?" + new URLSearchParams(fields) : "");
    if (running) running.abort();
    running = new AbortController();
    refresh(address, "#" + form.dataset.typeAhead, "typed", running.signal)
      .then(() => {
        history.replaceState(null, "", address);
        const said = document.querySelector("#results h2, #results .empty, #results .warning");
        document.getElementById("said").textContent = said ? said.textContent : "";
      })
      .catch(() => {});
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 200); });
}

const live = document.querySelector("[data-live]");
if (live) {
  const note = document.getElementById("ended");
  let source = null;
  let waits = false;
  let changed = false;
  // At most once a second, and for at most a fifth of the time.
  const update = async () => {
    if (waits) { changed = true; return; }
    waits = true;
    changed = false;
    const begin = performance.now();
    if (!document.hidden && !isRead(live)) {
      await refresh(location.href, "[data-live]", "live")
        .then(() => { note.hidden = true; }, () => { note.hidden = false; });
    }
    setTimeout(() => { waits = false; if (changed) update(); },
      Math.max(1000, 4 * (performance.now() - begin)));
  };
  // A browser has few connections to a server: a hidden page gives its own back.
  const listen = () => {
    if (document.hidden) { if (source) source.close(); source = null; return; }
    if (source && source.readyState !== EventSource.CLOSED) return;
    source = new EventSource("/events");
    source.onopen = update;  // for what changed before
    source.onmessage = update;
    source.onerror = update;
  };
  listen();
  document.addEventListener("visibilitychange", () => { listen(); update(); });
  setInterval(() => { listen(); update(); }, live.dataset.live * 1000);
}
