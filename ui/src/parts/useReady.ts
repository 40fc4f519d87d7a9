import { useEffect, useState } from "react";

/** How long a form is shown before it accepts a click, in milliseconds. */
const delay = 1_000;

/**
 * Reports whether a form has been in its place for a second. A younger one may have come
 * under the pointer of a person who is about to click something else. The value of moved
 * changes with the place.
 */
export function useReady(moved: unknown = 0): boolean {
  const [settled, setSettled] = useState<{ moved: unknown }>();
  useEffect(() => {
    const timer = setTimeout(() => setSettled({ moved }), delay);
    return () => clearTimeout(timer);
  }, [moved]);
  return settled !== undefined && Object.is(settled.moved, moved);
}
