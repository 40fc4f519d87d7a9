import { Background, Controls, MarkerType, MiniMap, ReactFlow, type Connection, type Edge, type NodeChange, type ReactFlowInstance } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useMemo, useRef, useState, type DragEvent, type KeyboardEvent } from "react";
import { branchOf, connect, isAside, freshNode, insertNode, addNode, move, titleOf, nodeOf, without, type HookDocument, type Kind, type Point } from "./document";
import { nodeSize } from "./layout";
import { Piece, pieceWords, type Marks, type PieceNode } from "./Piece";
import { whyNoNode, whyNot, whyNotInto } from "./rules";

/** What is chosen: a node by its id, or an edge by its place. */
export type Chosen = { node: string } | { edge: number } | undefined;

interface Props {
  doc: HookDocument;
  chosen: Chosen;
  marks: Map<string, Marks>;
  /** Edges with findings. */
  badEdges: Set<number>;
  /** What is dragged from the palette. */
  dragged: Kind | undefined;
  onChoose: (chosen: Chosen) => void;
  onEdit: (doc: HookDocument, of?: string) => void;
  /** Says why something cannot be done. */
  onRefuse: (why: string | undefined) => void;
}

/** A node whose circles come or go is another type, so that they are measured anew. */
const nodeTypes = { piece: Piece, aside: Piece };
const mapFrom = 40;
const noMarks: Marks = { errors: 0, warnings: 0 };

/** Where a way is being drawn from. */
interface From {
  node: string;
  handle: string | undefined;
  /** It is drawn from its end. */
  back: boolean;
}

/** The canvas: nodes are dragged, ways drawn from handle to handle. What would break a rule cannot be drawn, and says why. */
export function Canvas({ doc, chosen, marks, badEdges, dragged, onChoose, onEdit, onRefuse }: Props) {
  const [flow, setFlow] = useState<ReactFlowInstance<PieceNode> | undefined>();
  const [moved, setMoved] = useState<Map<string, Point>>(new Map());
  const [from, setFrom] = useState<From | undefined>();
  const why = useRef<string | undefined>(undefined);
  const nodes = useMemo(() => piecesOf(doc, chosen, marks, moved, from), [doc, chosen, marks, moved, from]);
  const edges = useMemo(() => waysOf(doc, chosen, badEdges), [doc, chosen, badEdges]);
  const onNodesChange = (changes: NodeChange<PieceNode>[]) => {
    const done = new Map<string, Point>();
    const going = new Map(moved);
    for (const c of changes) {
      if (c.type === "select" && c.selected) onChoose({ node: c.id });
      if (c.type !== "position" || c.position === undefined) continue;
      if (c.dragging === true) going.set(c.id, c.position);
      else { going.delete(c.id); done.set(c.id, c.position); }
    }
    if (going.size !== moved.size || going.size > 0) setMoved(going);
    if (done.size > 0 && differs(doc, done)) onEdit(move(doc, done), "move");
  };
  const judge = (c: Connection | Edge): boolean => {
    why.current = whyNot(doc, { source: c.source, target: c.target, branch: c.sourceHandle ?? undefined });
    onRefuse(why.current);
    return why.current === undefined;
  };
  const drop = (e: DragEvent) => {
    e.preventDefault();
    const kind = e.dataTransfer.getData(dragType) as Kind;
    if (flow === undefined || kind.length === 0) return;
    const at = flow.screenToFlowPosition({ x: e.clientX, y: e.clientY });
    const edge = edgeAt(e);
    const no = refusal(doc, kind, edge);
    onRefuse(no);
    if (no !== undefined) return;
    const node = freshNode(doc, kind, { x: at.x - nodeSize.width / 2, y: at.y - nodeSize.height / 2 });
    onEdit(edge === undefined ? addNode(doc, node) : insertNode(doc, node, edge));
    onChoose({ node: node.id });
  };
  const press = (e: KeyboardEvent) => {
    if ((e.key !== "Delete" && e.key !== "Backspace") || chosen === undefined) return;
    e.preventDefault();
    onEdit("node" in chosen ? without(doc, [chosen.node], []) : without(doc, [], [chosen.edge]));
    onChoose(undefined);
  };
  return (
    <div className="canvas" role="group" aria-label="The graph" onKeyDown={press} data-drawing={from === undefined ? undefined : true}
      onDragOver={(e) => { if (e.dataTransfer.types.includes(dragType)) { e.preventDefault(); e.dataTransfer.dropEffect = "copy"; if (dragged !== undefined) onRefuse(refusal(doc, dragged, edgeAt(e))); } }} onDrop={drop}>
      <ReactFlow<PieceNode>
        nodes={nodes} edges={edges} nodeTypes={nodeTypes} onInit={setFlow} fitView fitViewOptions={{ maxZoom: 1, padding: 0.08 }}
        onNodesChange={onNodesChange} onNodeClick={(_, n) => onChoose({ node: n.id })}
        onEdgesChange={(changes) => { for (const c of changes) if (c.type === "select" && c.selected) onChoose({ edge: Number(c.id) }); }}
        onPaneClick={() => onChoose(undefined)} isValidConnection={judge} connectionRadius={48}
        onConnectStart={(_, p) => { if (p.nodeId !== null) setFrom({ node: p.nodeId, handle: p.handleId ?? undefined, back: p.handleType === "target" }); }}
        onConnect={(c) => onEdit(connect(doc, c.source, c.target, c.sourceHandle ?? undefined))}
        onConnectEnd={(_, state) => { setFrom(undefined); if (state.isValid === true || state.toNode === null) onRefuse(undefined); else onRefuse(why.current); }}
        deleteKeyCode={null} selectionKeyCode={null} multiSelectionKeyCode={null} minZoom={0.1} maxZoom={1.5} proOptions={{ hideAttribution: true }}
        onlyRenderVisibleElements={doc.nodes.length > 120}
      >
        <Background gap={16} />
        <Controls showInteractive={false} fitViewOptions={{ maxZoom: 1 }} />
        {doc.nodes.length > mapFrom ? <MiniMap pannable zoomable ariaLabel="Map of the graph" /> : null}
      </ReactFlow>
    </div>
  );
}

/** What drags of the palette carry. */
export const dragType = "application/x-guideway-node";

/** Why a node cannot come to a place; undefined where it can. */
export function refusal(doc: HookDocument, kind: Kind, edge: number | undefined): string | undefined {
  return whyNoNode(doc, kind) ?? (edge === undefined ? undefined : whyNotInto(doc, kind, edge));
}

/** The edge under the pointer. */
function edgeAt(e: DragEvent): number | undefined {
  const at = document.elementFromPoint(e.clientX, e.clientY)?.closest<HTMLElement>(".react-flow__edge")?.dataset["id"];
  return at === undefined ? undefined : Number(at);
}

function differs(doc: HookDocument, places: Map<string, Point>): boolean {
  return doc.nodes.some((n) => { const to = places.get(n.id); return to !== undefined && (Math.round(to.x) !== n.position?.x || Math.round(to.y) !== n.position.y); });
}

function piecesOf(doc: HookDocument, chosen: Chosen, marks: Map<string, Marks>, moved: Map<string, Point>, from: From | undefined): PieceNode[] {
  const seen = new Set<string>(); // two nodes with one id are a finding, and would confuse the canvas
  return doc.nodes.filter((n) => !seen.has(n.id) && seen.add(n.id)).map((node): PieceNode => {
    const isChosen = chosen !== undefined && "node" in chosen && chosen.node === node.id;
    const cannot = from === undefined || from.node === node.id ? undefined :
      from.back ? whyNotBack(doc, node.id, from.node) : whyNot(doc, { source: from.node, target: node.id, branch: from.handle });
    return {
      id: node.id, type: isAside(node) ? "aside" : "piece", measured: nodeSize, position: moved.get(node.id) ?? node.position ?? { x: 0, y: 0 }, width: nodeSize.width, height: nodeSize.height,
      selected: isChosen, data: { node, marks: marks.get(node.id), chosen: isChosen, cannot }, ariaLabel: pieceWords(node, marks.get(node.id) ?? noMarks),
    };
  });
}

/** Drawn from its end, a way of a condition may be for either branch. */
function whyNotBack(doc: HookDocument, source: string, target: string): string | undefined {
  if (nodeOf(doc, source)?.type !== "condition") return whyNot(doc, { source, target });
  const no = whyNot(doc, { source, target, branch: "true" });
  return no === undefined ? undefined : whyNot(doc, { source, target, branch: "false" });
}

function waysOf(doc: HookDocument, chosen: Chosen, bad: Set<number>): Edge[] {
  return doc.edges.map((e, i): Edge => {
    const branch = branchOf(doc, e);
    const title = (id: string) => { const n = nodeOf(doc, id); return n === undefined ? id : titleOf(n); };
    return {
      id: String(i), source: e.source, target: e.target, sourceHandle: branch ?? null, markerEnd: { type: MarkerType.ArrowClosed },
      selected: chosen !== undefined && "edge" in chosen && chosen.edge === i, interactionWidth: 24,
      ...(bad.has(i) ? { className: "way-bad" } : {}),
      ariaLabel: `Edge from ${title(e.source)}${branch === undefined ? "" : ` if ${branch}`} to ${title(e.target)}`,
    };
  });
}
