// Keeps the key that this origin's pages send with requests, and goes on. The
// browser keeps it by origin, the port included, unlike the cookie.
"use strict";
const key = document.querySelector('meta[name="guideway-key"]').content;
try {
  localStorage.setItem("guideway-key", key);
} catch {
  // Storage is off: the pages can show nothing, and explain how to log in.
}
location.replace("/");
