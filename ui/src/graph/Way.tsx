import { BaseEdge, EdgeLabelRenderer, type Edge, type EdgeProps } from "@xyflow/react";
import type { Point, Routed } from "./layout";

export type WayEdge = Edge<{ routed: Routed }, "way">;

/** A way as the layout has led it, with its condition in words. */
export function Way({ data, markerEnd }: EdgeProps<WayEdge>) {
  if (data === undefined) return null;
  const { points, label, edge } = data.routed;
  return (
    <>
      <BaseEdge path={pathOf(points)} {...(markerEnd === undefined ? {} : { markerEnd })} />
      {label === undefined ? null : (
        <EdgeLabelRenderer>
          <div className="way-label" title={edge.label} style={{ transform: `translate(-50%, -50%) translate(${label.x}px, ${label.y}px)`, maxWidth: label.width, maxHeight: label.height }}>
            {edge.label}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
}

/** A line through points with rounded corners. */
export function pathOf(points: Point[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let path = `M${first.x},${first.y}`;
  rest.forEach((p, i) => {
    const next = rest[i + 1];
    if (next === undefined) path += `L${p.x},${p.y}`;
    else path += `Q${p.x},${p.y} ${(p.x + next.x) / 2},${(p.y + next.y) / 2}`;
  });
  return path;
}
