import { ApiError } from "../api/client";
import { useMay, useMe } from "../api/reads";

/** Says on every page why nothing can be read or changed in this browser. */
export function MayNot() {
  const { data: me, error } = useMe();
  const work = useMay("work");
  const answer = useMay("answer");
  const loggedOut = error instanceof ApiError && error.status === 401;
  if (work && answer && !loggedOut) return null;
  const roles = me?.roles ?? [];
  if (me?.proof === "browser" && !roles.includes("admin")) {
    return <p className="may-not" role="status">{me.user} {roles.length === 0 ? "has no role" : `has the role ${roles.join(", ")}`} here, which {work ? "answers no gates" : answer ? "answers gates, and starts and changes nothing" : "only reads"}. An admin of the login provider assigns roles.</p>;
  }
  return (
    <p className="may-not" role="status">
      {loggedOut ? "This browser is not logged in at this address." : work ? "This browser cannot answer gates for you." : "This browser is read-only."} To log in at this address, run <code>guideway open</code> and follow the link.
    </p>
  );
}
