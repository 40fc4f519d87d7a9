import type { Upstream } from "../../api/gateway";
import { Status } from "../../parts/Status";

/** How an upstream is, by colour, shape and word. */
export function UpstreamState({ upstream }: { upstream: Upstream }) {
  return <Status word={upstream.state} />;
}

/** What the states mean, for whoever has not seen them before. */
export const stateWords: Record<Upstream["state"], string> = {
  wrong: "Its configuration is invalid.",
  disabled: "It is disabled: agents do not see it.",
  elsewhere: "It belongs to a project that this server does not offer.",
  idle: "It starts at the first call.",
  running: "It runs.",
  failed: "It has failed and will be retried.",
  off: "The toolset gateway is off.",
};
