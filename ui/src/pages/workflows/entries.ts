import type { Schemas } from "../../api/client";

/** A definition of any dialect, as the list of the catalog shows it. */
export interface Entry {
  href: string;
  id: string;
  name: string;
  about: string;
  dialect: string;
  source: string;
  path: string;
  version: string;
  stale: boolean;
}

interface Definitions {
  workflows: Schemas["Workflow"][];
  machines: Schemas["MachineInfo"][];
  hooks: Schemas["Hook"][];
}

/** All definitions by their names, each with the page of its dialect. What does not
 * load stands where its dialect's page tells of it. */
export function entriesOf({ workflows, machines, hooks }: Definitions): Entry[] {
  const place = (to: string, id: string) => `/${to}/${encodeURIComponent(id)}`;
  const all: Entry[] = [
    ...workflows.map((w) => ({ ...w, href: place("workflows", w.id), about: w.description, stale: w.stale === true })),
    ...machines.filter((m) => m.error === undefined).map((m) => ({
      href: place("machines", m.name), id: m.name, name: m.name, about: m.description, dialect: "machines", source: m.source, path: m.path, version: m.version ?? "", stale: m.stale === true,
    })),
    ...hooks.filter((h) => h.state !== "broken").map((h) => ({
      href: place("hooks", h.id), id: h.id, name: h.name ?? h.id, about: h.description ?? "", dialect: "hooks", source: h.source, path: h.path, version: h.version ?? "", stale: h.stale === true,
    })),
  ];
  return all.sort((a, b) => a.name.localeCompare(b.name));
}
