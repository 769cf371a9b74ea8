// SPDX-License-Identifier: Apache-2.0

// Replaces the page's content with what the server says now. Without this script
// the page is the same, and stays as it was when it was loaded.
"use strict";

(function () {
  const interval = 5000;
  const live = document.getElementById("live");
  let failed = 0;

  function say(text, state) {
    live.hidden = false;
    live.textContent = text;
    live.dataset.state = state;
  }

  function isBusy() {
    const selection = document.getSelection();
    const typing = document.activeElement && document.activeElement.matches("input, button");
    return document.hidden || typing || (selection && !selection.isCollapsed);
  }

  function adopt(text) {
    const next = new DOMParser().parseFromString(text, "text/html");
    const open = new Map();
    for (const d of document.querySelectorAll("details[id]")) open.set(d.id, d.open);
    const focused = document.activeElement && document.activeElement.getAttribute("href");
    for (const part of ["main", "footer"]) {
      const now = document.querySelector(part);
      const then = next.querySelector(part);
      if (now && then) now.replaceWith(document.adoptNode(then));
    }
    for (const [id, isOpen] of open) {
      const d = document.getElementById(id);
      if (d) d.open = isOpen;
    }
    if (focused) {
      const link = document.querySelector("main a[href=" + CSS.escape(focused) + "]");
      if (link) link.focus({ preventScroll: true });
    }
    document.title = next.title;
  }

  async function refresh() {
    if (!isBusy()) {
      try {
        const answer = await fetch(location.pathname + location.search, { cache: "no-store", signal: AbortSignal.timeout(interval) });
        if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
        adopt(await answer.text());
        failed = 0;
        say("live", "live");
      } catch {
        failed++;
        say("no answer for " + failed * interval / 1000 + " s", "lost");
      }
    }
    setTimeout(refresh, interval);
  }

  say("live", "live");
  setTimeout(refresh, interval);
})();
