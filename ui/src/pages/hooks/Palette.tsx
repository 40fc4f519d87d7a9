import { dragType } from "./Canvas";
import { kindNames, type HookDocument, type Kind } from "./document";
import { whyNoNode } from "./rules";

const kinds: { kind: Kind; does: string }[] = [
  { kind: "hook", does: "A script that changes, answers, refuses or records" },
  { kind: "condition", does: "Continues on true or false" },
  { kind: "mcp-call", does: "The request is sent to the server" },
  { kind: "end", does: "The response goes out" },
  { kind: "start", does: "The request comes in" },
];

interface Props {
  doc: HookDocument;
  /** Where a node goes that is added without a drag. */
  where: string;
  onAdd: (kind: Kind) => void;
  onDrag: (kind: Kind | undefined) => void;
}

/** The kinds of nodes: to be dragged onto the canvas or onto a way, or added by a press. */
export function Palette({ doc, where, onAdd, onDrag }: Props) {
  return (
    <div className="palette" role="group" aria-label="Nodes to add">
      {kinds.map(({ kind, does }) => {
        const why = whyNoNode(doc, kind);
        return (
          <button key={kind} type="button" className="palette-item" data-kind={kind} draggable={why === undefined} disabled={why !== undefined} title={why ?? `${does}. Drag it onto the canvas or an edge, or press to add it ${where}.`}
            onClick={() => onAdd(kind)} onDragStart={(e) => { e.dataTransfer.setData(dragType, kind); e.dataTransfer.effectAllowed = "copy"; onDrag(kind); }} onDragEnd={() => onDrag(undefined)}>
            {kindNames[kind]}
          </button>
        );
      })}
    </div>
  );
}
