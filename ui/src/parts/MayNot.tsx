import { useMay } from "../api/reads";

/** Says on every page why nothing can be changed in this browser. */
export function MayNot() {
  const work = useMay("work");
  const answer = useMay("answer");
  if (work && answer) return null;
  return (
    <p className="may-not" role="status">
      {work ? "This browser cannot answer gates for you." : "This browser is read-only."} To log in at this address, run <code>guideway open</code> and follow the link.
    </p>
  );
}
