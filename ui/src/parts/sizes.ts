const units = ["B", "kB", "MB", "GB"];

/** Bytes in the unit that fits. */
export function bytes(n: number): string {
  let size = n;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/** A time in the unit that fits. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

/** The last part of a path, which names a project. */
export function folder(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).pop() ?? path;
}
