import { join } from "node:path";

/** A step workflow with a person's gate, a condition and a loop. */
export const release = join(import.meta.dirname, "fixtures/release.yaml");

/** A hook graph with a condition, a fire-and-forget hook and two ways out. */
export const guard = join(import.meta.dirname, "fixtures/guard.yaml");

/** A step workflow with checks of files, which need no approval, and a person's gate. */
export const checked = join(import.meta.dirname, "fixtures/checked.yaml");

/** A workflow with a gate that needs two persons. */
export const twoPersons = join(import.meta.dirname, "fixtures/two-persons.yaml");
