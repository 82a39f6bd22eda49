// Runs first: says on the page what goes wrong in the scripts behind it, or what the policy refuses.
"use strict";
function showProblem(what) {
  const root = document.documentElement;
  root.dataset.errors = (root.dataset.errors ? root.dataset.errors + "; " : "") + what;
  const place = document.getElementById("problem");
  if (!place) return;
  place.textContent = "Something on this page could not be shown: " + root.dataset.errors;
  place.hidden = false;
}
window.addEventListener("error", (event) => showProblem(event.message || "a part could not be loaded"), true);
window.addEventListener("unhandledrejection", (event) => showProblem(String(event.reason)));
document.addEventListener("securitypolicyviolation",
  (event) => showProblem(event.violatedDirective + " refused " + event.blockedURI));
