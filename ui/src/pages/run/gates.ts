import type { Schemas } from "../../api/client";

type Details = Schemas["RunDetails"];

/** Returns the identity of the gate that a run waits at. A refused attempt does not change it. */
export function gateKey(d: Details): string {
  if (d.position.kind !== "gate") return `none@${d.run.seq}`;
  return d.submission === undefined ? `${d.handle ?? ""}` : `${d.position.id ?? ""}#${d.submission.seq}`;
}

const ends = new Set(["gate_answered", "checkpoint_response", "decision_branch_taken", "run_aborted"]);

const people: Record<Schemas["By"]["via"], string> = {
  agent: "an agent", server: "the server", elicitation: "a person in the client", terminal: "a person at a terminal",
  browser: "a person in a browser", token: "a token that may approve", import: "an import",
};

/** Returns who answered a gate and how, from the events after it was shown. */
export function answerIn(events: Schemas["Event"][], options: Schemas["Position"]["options"]): string | undefined {
  const event = events.find((e) => ends.has(e.kind));
  if (event === undefined) return undefined;
  const by = people[event.by.via];
  if (event.kind === "run_aborted") return `The run was aborted by ${by}.`;
  const option = (event.data as { option?: string } | undefined)?.option;
  const label = options?.find((o) => o.id === option)?.label ?? option;
  return `Answered by ${by}${label === undefined || label === "" ? "" : `: ${label}`}.`;
}

type Approval = NonNullable<Schemas["Position"]["approval"]>;

/** Returns the persons that a gate needs, in words. */
export function wordsOf({ by = [], count = 1 }: Approval): string {
  const roles = by.length === 0 ? "" : ` with the role ${by.join(" or ")}`;
  return count === 1 ? `Needs a person${roles}.` : `Needs the same answer from ${count} persons${roles}; one person is enough to send the step back.`;
}

/** Returns why a caller cannot answer the gate, if that is known. */
export function obstacle({ approval, votes = [], options }: Schemas["Position"], me: Schemas["Me"] | undefined, chosen: string): string | undefined {
  if (me === undefined || approval === undefined) return undefined;
  const { by = [] } = approval;
  if (by.length > 0 && !by.some((role) => me.roles.includes(role))) return `Your roles (${me.roles.join(", ")}) cannot answer this gate.`;
  if (!votes.some((v) => v.user === me.user && v.option === chosen)) return undefined;
  return `You gave the answer ${options?.find((o) => o.id === chosen)?.label ?? chosen}. Another person must give the same.`;
}
