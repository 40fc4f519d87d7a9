import { useLocation } from "wouter";
import { useFork } from "../../api/commands";
import { useMay } from "../../api/reads";
import { useNotice } from "../../parts/Notice";

/** Makes a new run of the events up to one, and goes there. */
export function ForkHere({ runId, seq }: { runId: string; seq: number }) {
  const [, go] = useLocation();
  const tell = useNotice();
  const fork = useFork(runId);
  const may = useMay("work");
  const start = () => fork.mutate(seq, {
    onSuccess: (made) => {
      go(`/runs/${made.runId}`);
      tell({ text: `Forked at event ${seq}. This is the new run.` });
    },
    onError: (error) => tell({ text: `Could not fork: ${error.message}`, failed: true }),
  });
  return <button type="button" className="button button-small" disabled={!may || fork.isPending} onClick={start}>Fork from here</button>;
}
