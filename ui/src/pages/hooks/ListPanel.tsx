import { kindOf, doesOf } from "./Piece";
import type { Chosen } from "./Canvas";
import { branchOf, nodeOf, titleOf, without, type HookDocument } from "./document";

interface Props {
  doc: HookDocument;
  chosen: Chosen;
  onChoose: (chosen: Chosen) => void;
  onEdit: (doc: HookDocument) => void;
}

/** The nodes and ways as lists: all that the canvas shows, for those who do not use it. */
export function ListPanel({ doc, chosen, onChoose, onEdit }: Props) {
  const title = (id: string) => { const n = nodeOf(doc, id); return n === undefined ? id : titleOf(n); };
  return (
    <div className="panel">
      <h3>Nodes</h3>
      <ul className="pieces" aria-label="Nodes">
        {doc.nodes.map((n) => (
          <li key={n.id}>
            <button type="button" className="piece-row" aria-pressed={chosen !== undefined && "node" in chosen && chosen.node === n.id} onClick={() => onChoose({ node: n.id })}>
              <strong>{titleOf(n)}</strong> <span className="quiet">{[kindOf(n), doesOf(n)].filter((t) => t !== "").join(" · ")}</span>
            </button>
            <button type="button" className="button button-small" aria-label={`Delete ${titleOf(n)}`} onClick={() => { onEdit(without(doc, [n.id], [])); onChoose(undefined); }}>Delete</button>
          </li>
        ))}
      </ul>
      <h3>Ways</h3>
      {doc.edges.length === 0 ? <p className="quiet">None yet: select a node and connect it.</p> : null}
      <ul className="pieces" aria-label="Ways">
        {doc.edges.map((e, i) => (
          <li key={i}>
            <button type="button" className="piece-row" aria-pressed={chosen !== undefined && "edge" in chosen && chosen.edge === i} onClick={() => onChoose({ edge: i })}>{title(e.source)}{branchOf(doc, e) === undefined ? "" : ` (${branchOf(doc, e) ?? ""})`} → {title(e.target)}</button>
            <button type="button" className="button button-small" aria-label={`Remove the edge from ${title(e.source)} to ${title(e.target)}`} onClick={() => { onEdit(without(doc, [], [i])); onChoose(undefined); }}>Remove</button>
          </li>
        ))}
      </ul>
    </div>
  );
}
