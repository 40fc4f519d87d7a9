/** A value that somebody has written in JSON, or why it cannot be taken as it stands. */
export type Written = { value: unknown } | { problem: string };

/** Reads JSON. A number with more digits than scripts have is refused: it would become another one. */
export function readJSON(text: string): Written {
  try {
    const value: unknown = JSON.parse(text);
    if (isTooLong(value)) return { problem: "Scripts cannot represent a number with so many digits: put it in quotes" };
    return { value };
  } catch {
    return { problem: "This is not JSON: put texts in quotes" };
  }
}

function isTooLong(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value));
  return typeof value === "object" && value !== null && Object.values(value).some(isTooLong);
}
