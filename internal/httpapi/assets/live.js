// The plain live view: runs and sessions as the API lists them, read again when
// the stream says that they changed. It commands nothing.
"use strict";

const byId = (id) => document.getElementById(id);

// Text from runs and documents only ever becomes text.
function element(name, properties, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "class") e.className = value;
    else e.setAttribute(key, value);
  }
  e.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return e;
}

function when(text) {
  const t = new Date(text);
  const seconds = Math.round((Date.now() - t.getTime()) / 1000);
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  const unit = units.find(([size]) => seconds >= size);
  const words = unit ? `${Math.floor(seconds / unit[0])} ${unit[1]} ago` : "just now";
  return element("time", { datetime: text, title: t.toLocaleString() }, words);
}

const shapes = { running: "▶", waiting: "⬣", completed: "✓", complete: "✓", aborted: "✕", blocked: "✕" };

function status(word) {
  if (!word) return "";
  const name = String(word);
  const mark = element("span", { "aria-hidden": "true" }, (shapes[name] || "·") + " ");
  return element("span", { class: "status " + name.replace(/[^a-z_]/g, "") }, mark, name.replaceAll("_", " "));
}

function row(cells) {
  return element("tr", {}, ...cells.map(([label, content, number]) =>
    element("td", number ? { "data-label": label, class: "number" } : { "data-label": label },
      element("span", {}, ...[content].flat()))));
}

function project(path, id) {
  const name = (path || "").split(/[\\/]/).filter(Boolean).pop() || id || "";
  return element("span", path ? { title: path } : {}, name);
}

function showRuns(list) {
  const waiting = list.filter((r) => r.person);
  byId("waiting").hidden = waiting.length === 0;
  byId("waiting-list").replaceChildren(...waiting.map((r) => element("li", {},
    `${r.title || r.step} in ${r.workflowName}${r.goal ? ": " + r.goal : ""} `,
    element("span", { class: "mono quiet" }, r.runId))));
  byId("runs-rows").replaceChildren(...list.map((r) => row([
    ["Status", status(r.status)],
    ["Workflow", [r.workflowName || r.workflowId, r.goal ? element("div", { class: "quiet" }, r.goal) : "", element("div", { class: "mono quiet" }, r.runId)]],
    ["Where it is", r.title || r.step || ""],
    ["Steps done", String(r.done), true],
    ["Project", project(r.project.path, r.project.id)],
    ["Changed", when(r.updatedAt), true],
  ])));
  byId("runs-empty").hidden = list.length > 0;
}

function showSessions(list) {
  byId("sessions-rows").replaceChildren(...list.map((s) => {
    const d = s.data.dashboard && typeof s.data.dashboard === "object" ? s.data.dashboard : {};
    return row([
      ["Session", element("a", { href: s.url }, typeof d.title === "string" && d.title ? d.title : s.id)],
      ["Workflow", s.workflowId],
      ["Status", status(d.status)],
      ["Progress", typeof d.progress === "number" ? `${d.progress} %` : "", true],
      ["Project", project(s.projectPath, s.projectId)],
      ["Changed", when(s.updatedAt), true],
    ]);
  }));
  byId("sessions-empty").hidden = list.length > 0;
}

async function get(path) {
  const response = await fetch(path, { headers: { Accept: "application/json" } });
  if (response.status === 401) location.reload(); // the page says how to log in
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}

// A part that this server does not have is shown as empty.
const optional = (promise, otherwise) => promise.catch((e) => {
  if (e.message === "Not found") return otherwise;
  throw e;
});

// One read at a time, and one more if news came meanwhile.
let reading = false;
let again = false;
async function refresh() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const [runs, sessions] = await Promise.all([
      optional(get("/api/runs?limit=200"), { runs: [] }),
      optional(get("/api/sessions"), { sessions: [] }),
    ]);
    showRuns(runs.runs);
    showSessions(sessions.sessions);
    byId("problem").hidden = true;
  } catch (e) {
    byId("problem").textContent = `Could not read runs and sessions (${e.message}). The page tries again at the next change.`;
    byId("problem").hidden = false;
  }
  setTimeout(() => {
    reading = false;
    if (again) {
      again = false;
      refresh();
    }
  }, 250);
}

const events = new EventSource("/api/events");
events.addEventListener("connected", () => {
  byId("state").textContent = "Live";
  refresh();
});
events.addEventListener("change", refresh);
events.addEventListener("reset", refresh);
events.onerror = () => {
  if (events.readyState === EventSource.CLOSED) {
    byId("state").textContent = "Not live";
    refresh();
  } else {
    byId("state").textContent = "Connecting again";
  }
};
setInterval(() => document.visibilityState === "visible" && refresh(), 60000); // times grow old
