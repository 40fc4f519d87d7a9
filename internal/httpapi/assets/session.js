// One session document, live.
"use strict";

const byId = (id) => document.getElementById(id);

// tree shows any JSON as nested lists. Its text only ever becomes text.
function tree(value) {
  if (value === null || typeof value !== "object") return document.createTextNode(String(value));
  if (Array.isArray(value)) {
    const list = document.createElement("ol");
    list.className = "tree";
    for (const item of value) {
      const li = document.createElement("li");
      li.append(tree(item));
      list.append(li);
    }
    return list;
  }
  const list = document.createElement("dl");
  for (const [key, item] of Object.entries(value)) {
    const term = document.createElement("dt");
    term.textContent = key;
    const text = document.createElement("dd");
    text.append(tree(item));
    list.append(term, text);
  }
  return list;
}

function show(session) {
  const dashboard = session.data.dashboard;
  const title = dashboard && typeof dashboard.title === "string" && dashboard.title ? dashboard.title : session.id;
  document.title = `${title} · Guideway`;
  byId("title").textContent = title;
  byId("about").textContent = `${session.workflowId}, ${session.projectPath || session.projectId}, changed ${new Date(session.updatedAt).toLocaleString()}`;
  byId("document").replaceChildren(tree(session.data));
}

function fail(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = false;
}

async function start() {
  const id = location.pathname.split("/")[2];
  const query = new URLSearchParams(location.search);
  const inProject = query.get("project") ? "?project=" + encodeURIComponent(query.get("project")) : "";
  let path = query.get("workflow")
    ? `/api/sessions/${encodeURIComponent(query.get("workflow"))}/${id}` : `/api/sessions/${id}`;
  const response = await fetch(path + inProject);
  if (response.status === 401) {
    location.reload(); // the page says how to log in
    return;
  }
  const body = await response.json();
  if (!response.ok) {
    byId("state").textContent = "Not live";
    fail(body.candidates ? `${body.error}: add ?workflow=… to this address to choose one.` : body.error);
    return;
  }
  show(body.session);
  path = `/api/sessions/${encodeURIComponent(body.session.workflowId)}/${encodeURIComponent(body.session.id)}/stream`;
  const events = new EventSource(`${path}?project=${encodeURIComponent(body.session.projectId)}`);
  events.onopen = () => { byId("state").textContent = "Live"; };
  events.onmessage = (message) => {
    const event = JSON.parse(message.data);
    if (event.session) show(event.session);
    if (event.type === "deleted") fail("This session was deleted.");
    else byId("problem").hidden = true;
  };
  events.onerror = () => {
    byId("state").textContent = events.readyState === EventSource.CLOSED ? "Not live" : "Connecting again";
  };
}

start().catch((e) => fail(`Could not read the session (${e.message}). Reload the page to try again.`));
