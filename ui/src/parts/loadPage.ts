import { lazy, type ComponentType } from "react";

/** Reports that the code of a page cannot be loaded. */
export class PageLoadError extends Error {
  readonly reason: "unreachable" | "updated";

  constructor(reason: "unreachable" | "updated", cause: unknown) {
    super(reason === "unreachable" ? "The server cannot be reached" : "The server was updated", { cause });
    this.name = "PageLoadError";
    this.reason = reason;
  }
}

/** The key of sessionStorage that is set while a reload has not yet loaded the page. */
const reloaded = "guideway-reloaded";

/**
 * Loads the code of a page when it is first shown. After an update of the server the file
 * has another name: the tab is then reloaded once.
 */
export function loadPage<P extends object>(load: () => Promise<ComponentType<P>>) {
  return lazy(async () => ({ default: await loadOnce(load) }));
}

/** Returns the loaded code. Throws a PageLoadError if a reload does not help. */
export async function loadOnce<T>(load: () => Promise<T>): Promise<T> {
  try {
    const page = await load();
    sessionStorage.removeItem(reloaded);
    return page;
  } catch (error) {
    const isReachable = await fetch("/api/health").then(() => true, () => false);
    if (!isReachable) throw new PageLoadError("unreachable", error);
    if (sessionStorage.getItem(reloaded) !== null) throw new PageLoadError("updated", error);
    sessionStorage.setItem(reloaded, "1");
    location.reload();
    return new Promise(() => undefined); // until the reload
  }
}
