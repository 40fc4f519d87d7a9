import type { Upstream } from "../../api/gateway";
import { Status } from "../../parts/Status";

/** How an upstream is, by colour, shape and word. */
export function UpstreamState({ upstream }: { upstream: Upstream }) {
  return <Status word={upstream.state} />;
}

/** What the states mean, for whoever has not seen them before. */
export const stateWords: Record<Upstream["state"], string> = {
  wrong: "It cannot be used as it is configured.",
  disabled: "It is disabled: agents do not see it.",
  elsewhere: "It is of another project than the one that this server offers.",
  idle: "It is started when it is first needed.",
  running: "It runs.",
  failed: "It has failed, and is tried again.",
  off: "The toolset gateway is off.",
};
