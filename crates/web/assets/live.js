// Live updates: one event stream, and the page fetched again after an event, rate-limited by the page. Events missed
// while the stream is down are in the next page anyway.

import { patch } from "./patch.js";

const BANNER_AFTER_MS = 2500;
const HIDDEN_MS = 20000;
const RETRY_MS = [1000, 2000, 5000, 10000, 30000];

export function start() {
  const main = document.querySelector("main[data-live]");
  if (main && "EventSource" in window) new Live(main).open();
}

class Live {
  constructor(main) {
    this.main = main;
    this.interval = Number(main.dataset.interval) || 250;
    this.dot = document.getElementById("live");
    this.place = main.dataset.place;
    this.updated = Date.now();
    this.tries = 0;
    this.paused = false;
    document.addEventListener("visibilitychange", () => this.seen());
    const pause = document.querySelector("[data-pause]");
    pause?.addEventListener("click", () => {
      this.paused = !this.paused;
      pause.setAttribute("aria-pressed", this.paused);
      pause.textContent = this.paused ? "Resume" : "Pause";
      this.tell();
      if (!this.paused) this.soon();
    });
    addEventListener("pagehide", () => this.source?.close());
    addEventListener("pageshow", (event) => event.persisted && this.open());
  }

  open() {
    this.source?.close();
    const address = new URL(this.main.dataset.live, location.href);
    if (this.place) address.searchParams.set("after", this.place);
    const source = new EventSource(address);
    this.source = source;
    source.onopen = () => {
      this.tries = 0;
      clearTimeout(this.warning);
      this.warning = undefined;
      this.say(null);
      this.tell("live");
    };
    source.onerror = () => this.lost(source);
    const heard = (event) => {
      if (event.lastEventId) this.place = event.lastEventId;
      this.soon();
    };
    for (const kind of this.main.dataset.kinds.split(" ")) source.addEventListener(kind, heard);
    source.onmessage = heard;
  }

  lost(source) {
    this.tell("lost");
    this.warning ??= setTimeout(() => {
      this.say(`Reconnecting… last update ${new Date(this.updated).toLocaleTimeString()}`);
    }, BANNER_AFTER_MS);
    if (source.readyState === EventSource.CLOSED && source === this.source) {
      const wait = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];
      setTimeout(() => {
        if (document.hidden) return;
        this.soon();
        this.open();
      }, wait);
    }
  }

  seen() {
    clearTimeout(this.sleeping);
    if (document.hidden) {
      // A browser has few connections, so hidden pages close theirs.
      this.sleeping = setTimeout(() => {
        this.source?.close();
        this.source = undefined;
      }, HIDDEN_MS);
      return;
    }
    if (!this.source || this.source.readyState === EventSource.CLOSED) this.open();
    if (this.waiting || !this.timer) this.soon();
  }

  soon() {
    this.waiting = true;
    if (this.timer || this.fetching || document.hidden || this.paused) return;
    const rest = Math.max(0, this.updated + this.interval - Date.now());
    this.timer = setTimeout(() => this.refresh(), rest);
  }

  async refresh() {
    this.timer = undefined;
    this.waiting = false;
    this.fetching = true;
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      if (response.redirected && new URL(response.url).pathname !== location.pathname) {
        this.say("Your session has ended.", response.url);
        this.source?.close();
        return;
      }
      if (response.ok) patch(new DOMParser().parseFromString(await response.text(), "text/html"), this.paused);
    } catch {
      // The stream fails too, and reconnects.
    } finally {
      this.fetching = false;
      this.updated = Date.now();
      if (this.waiting) this.soon();
    }
  }

  tell(state) {
    this.state = state ?? this.state;
    if (!this.dot) return;
    const words = { live: "live", lost: "reconnecting" };
    this.dot.dataset.state = this.paused ? "off" : this.state;
    const text = this.paused ? "paused" : words[this.state];
    if (this.dot.textContent !== text) this.dot.textContent = text;
  }

  say(text, href) {
    let banner = document.getElementById("banner");
    if (!text) {
      banner?.remove();
      return;
    }
    if (!banner) {
      banner = document.createElement("p");
      banner.id = "banner";
      banner.className = "banner";
      banner.setAttribute("role", "status");
      this.main.prepend(banner);
    }
    banner.textContent = text;
    if (href) {
      const link = document.createElement("a");
      link.href = href;
      link.textContent = "Sign in again";
      banner.append(" ", link);
    }
  }
}
