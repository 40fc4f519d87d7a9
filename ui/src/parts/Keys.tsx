import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import "./ask.css";

const places: Record<string, { path: string; name: string }> = {
  o: { path: "/", name: "Overview" },
  r: { path: "/runs", name: "Runs" },
  m: { path: "/machines", name: "Machines" },
  s: { path: "/sessions", name: "Sessions" },
  w: { path: "/workflows", name: "Workflows" },
  g: { path: "/gateway", name: "Gateway" },
  h: { path: "/hooks", name: "Hooks" },
  q: { path: "/requests", name: "Requests" },
};

/** What keys do: g and a letter goes to a page, / searches, ? shows the list. */
export function Keys() {
  const [, go] = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    let after = 0;
    const press = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || e.altKey || isTyping(e) || dialog.current?.open === true) return;
      const place = Date.now() < after ? places[e.key] : undefined;
      after = e.key === "g" ? Date.now() + 1_200 : 0;
      if (place !== undefined) go(place.path);
      else if (e.key === "?") dialog.current?.showModal();
      else if (e.key === "/") {
        const search = document.querySelector<HTMLInputElement>('main input[type="search"]');
        if (search === null) return;
        search.focus();
        e.preventDefault();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [go]);
  return (
    <dialog ref={dialog} className="ask" aria-labelledby="keys-title">
      <form method="dialog">
        <h2 id="keys-title">Keys</h2>
        <dl className="keys">
          {Object.entries(places).map(([key, { name }]) => <div key={key}><dt><kbd>g</kbd> <kbd>{key}</kbd></dt><dd>{name}</dd></div>)}
          <div><dt><kbd>/</kbd></dt><dd>Search on this page</dd></div>
          <div><dt><kbd>?</kbd></dt><dd>Show this list</dd></div>
        </dl>
        <div className="ask-buttons"><button type="submit" className="button">Close</button></div>
      </form>
    </dialog>
  );
}

function isTyping(e: KeyboardEvent): boolean {
  const at = e.composedPath()[0];
  return at instanceof HTMLElement && (at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName));
}
