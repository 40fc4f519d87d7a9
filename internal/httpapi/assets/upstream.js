// Sends the parameters of the redirect to the API with the key of this origin's pages, which
// shows that the person who started the login finishes it in the same browser.
"use strict";
const query = location.search.slice(1);
history.replaceState(null, "", location.pathname); // the code is no longer in the address bar
const show = (text) => { document.querySelector("[role=status]").textContent = text; };
let key = "";
try {
  key = localStorage.getItem("guideway-key") ?? "";
} catch {
  // Storage is off: the API refuses the request and explains how to log in.
}
fetch("/api/upstream-logins", {
  method: "POST", headers: { "Content-Type": "application/json", "X-Guideway-Key": key }, body: JSON.stringify({ query }),
}).then((answer) => answer.json()).then(
  (body) => body.success ? location.replace("/gateway/" + encodeURIComponent(body.upstream)) : show(`The login failed: ${body.error}. To continue: ${body.fix}.`),
  () => show("The login failed: the server does not answer. Log in again."),
);
