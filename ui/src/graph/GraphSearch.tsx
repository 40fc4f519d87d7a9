import { useId, useState } from "react";
import type { GraphModel } from "./model";

/** Finds a node by its title; Enter shows it. */
export function GraphSearch({ model, onFind }: { model: GraphModel; onFind: (id: string) => void }) {
  const [words, setWords] = useState("");
  const known = useId();
  const find = (text: string) => {
    const wanted = text.trim().toLowerCase();
    if (wanted === "") return;
    const node = model.nodes.find((n) => n.title.toLowerCase() === wanted) ?? model.nodes.find((n) => n.title.toLowerCase().includes(wanted) || n.ref?.toLowerCase().includes(wanted) === true);
    if (node !== undefined) onFind(node.id);
  };
  return (
    <form className="graph-search" role="search" onSubmit={(e) => { e.preventDefault(); find(words); }}>
      <input type="text" aria-label="Find a step" placeholder="Find a step" value={words} list={known} onChange={(e) => setWords(e.target.value)} />
      <datalist id={known}>{model.nodes.filter((n) => n.ref !== undefined).map((n) => <option key={n.id} value={n.title} />)}</datalist>
    </form>
  );
}
