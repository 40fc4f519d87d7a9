import { useDeleteSessions, useRestoreSessions } from "../../api/commands";
import { useNotice } from "../../parts/Notice";

/** What names a session document. */
interface Named {
  id: string;
  workflowId: string;
  projectId: string;
}

/** Deletes session documents at once, and offers to bring them back. */
export function useDeleting() {
  const remove = useDeleteSessions();
  const restore = useRestoreSessions();
  const tell = useNotice();
  const run = (list: Named[], then: () => void) => remove.mutate(
    list.map((s) => ({ workflowId: s.workflowId, sessionId: s.id, projectId: s.projectId })),
    {
      onSuccess: ({ deleted, failed }) => {
        const refs = deleted.map((d) => d.deleted);
        const back = () => restore.mutate(refs, {
          onSuccess: () => tell({ text: refs.length === 1 ? "The session is restored." : `${refs.length} sessions are restored.` }),
          onError: (error) => tell({ text: `Could not restore it: ${error.message}`, failed: true }),
        });
        const first = failed[0];
        if (first !== undefined) tell({ text: `${failed.length} could not be deleted: ${first.error}`, failed: true, ...(refs.length === 0 ? {} : { undo: { verb: "Undo", run: back } }) });
        else tell({ text: refs.length === 1 ? "The session was deleted." : `${refs.length} sessions were deleted.`, undo: { verb: "Undo", run: back } });
        then();
      },
      onError: (error) => tell({ text: `Could not delete: ${error.message}`, failed: true }),
    },
  );
  return { run, isPending: remove.isPending };
}
