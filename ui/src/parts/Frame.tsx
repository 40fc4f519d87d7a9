import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import type { Liveness } from "../api/stream";
import { Keys } from "./Keys";
import { MayNot } from "./MayNot";
import { ThemeSwitch } from "./ThemeSwitch";
import "./frame.css";

const places = [
  { path: "/", name: "Overview" },
  { path: "/runs", name: "Runs" },
  { path: "/machines", name: "Machines" },
  { path: "/sessions", name: "Sessions" },
  { path: "/workflows", name: "Workflows" },
  { path: "/gateway", name: "Gateway" },
  { path: "/hooks", name: "Hooks" },
  { path: "/requests", name: "Requests" },
];

const words: Record<Liveness, string> = { live: "Live", connecting: "Reconnecting", lost: "Disconnected: reload the page" };

/** What is around every page: where one can go, and whether the page is live. */
export function Frame({ liveness, children }: { liveness: Liveness; children: ReactNode }) {
  const [location] = useLocation();
  return (
    <div className="frame">
      <a className="skip" href="#page">Skip to the content</a>
      <header className="frame-bar">
        <Link href="/" className="frame-name">Guideway</Link>
        <nav aria-label="Pages">
          <ul>
            {places.map(({ path, name }) => (
              <li key={path}>
                <Link href={path} aria-current={isIn(location, path) ? "page" : undefined}>{name}</Link>
              </li>
            ))}
          </ul>
        </nav>
        <span className="frame-state" role="status" data-state={liveness}>{words[liveness]}</span>
        <ThemeSwitch />
      </header>
      <Keys />
      <main id="page" tabIndex={-1}><MayNot />{children}</main>
    </div>
  );
}

function isIn(location: string, path: string): boolean {
  return path === "/" ? location === "/" : location === path || location.startsWith(`${path}/`) || (path === "/machines" && location.startsWith("/machine-runs/")) || (path === "/sessions" && location.startsWith("/dashboard/")) || (path === "/workflows" && location === "/new-workflow") || (path === "/hooks" && location === "/new-hook") || (path === "/gateway" && (location === "/new-upstream" || location === "/tokens")) || (path === "/requests" && (location === "/calls" || location.startsWith("/calls/")));
}
