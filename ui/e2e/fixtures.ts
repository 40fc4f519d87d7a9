import { join } from "node:path";

/** A step workflow with a person's gate, a condition and a loop. */
export const release = join(import.meta.dirname, "fixtures/release.yaml");
