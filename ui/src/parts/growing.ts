import { useCallback, useState } from "react";

/** How many items come at a time. */
const some = 60;

/** Draws a long list piece by piece: how many items to draw now, and what to put behind the last of them. */
export function useGrowing(count: number): { drawn: number; end: (e: Element | null) => (() => void) | undefined } {
  const [drawn, setDrawn] = useState(some);
  const end = useCallback((e: Element | null) => {
    if (e === null) return undefined;
    const watch = new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) setDrawn((n) => n + some); }, { rootMargin: "600px" });
    watch.observe(e);
    return () => watch.disconnect();
  }, []);
  return { drawn: Math.min(drawn, count), end };
}
