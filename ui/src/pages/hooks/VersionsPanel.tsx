import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useHookVersion, useHookVersions, useRestoreHook } from "../../api/hooks";
import { useMay } from "../../api/reads";
import { Ask } from "../../parts/Ask";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { When } from "../../parts/When";
import { Difference } from "../editor/Difference";

interface Props {
  id: string;
  /** The text of the file that is there now, and its version. */
  text: string;
  format: string;
  base: string;
  /** Where the graph is served from. */
  source: string;
  onRestored: (answer: Schemas["HookAnswer"]) => void;
}

/** What was saved of the graph, what differs, and the way back. */
export function VersionsPanel({ id, text, format, base, source, onRestored }: Props) {
  const versions = useHookVersions(id);
  const [picked, setPicked] = useState<string | undefined>();
  if (versions.isPending) return <Skeleton rows={4} />;
  if (versions.isError) return <Failed error={versions.error} doing="read the versions" retry={() => void versions.refetch()} />;
  const list = versions.data.versions;
  if (list.length === 0) return <Empty title="No versions yet">Each save keeps the new text and the text that it replaces.</Empty>;
  const version = list.find((v) => v.id === picked);
  return (
    <div className="panel">
      <ul className="pieces" aria-label="Versions">
        {list.map((v) => (
          <li key={v.id}>
            <button type="button" className="piece-row" aria-pressed={v.id === picked} onClick={() => setPicked(v.id === picked ? undefined : v.id)}>
              <When at={v.when} /> <span className="quiet">{[v.who ?? "", v.note ?? "", `in ${v.source}`].filter((t) => t !== "").join(" · ")}</span>
            </button>
            {v.current ? <strong>current</strong> : null}
          </li>
        ))}
      </ul>
      {version === undefined ? <p className="quiet">Select a version to compare it with the current one.</p> : (
        <Compared id={id} version={version} text={text} format={format} base={version.source === source ? base : ""} onRestored={onRestored} />
      )}
    </div>
  );
}

function Compared({ id, version, text, format, base, onRestored }: { id: string; version: Schemas["HookVersion"]; text: string; format: string; base: string; onRestored: (answer: Schemas["HookAnswer"]) => void }) {
  const old = useHookVersion(id, version.id);
  const restore = useRestoreHook();
  const may = useMay("define");
  if (old.isPending) return <Skeleton rows={3} />;
  if (old.isError) return <Failed error={old.error} doing="read the version" />;
  const bring = () => restore.mutate({ id, version: version.id, base }, { onSuccess: onRestored });
  return (
    <>
      <p className="quiet">Changes that restoring it makes:</p>
      <Difference before={text} after={old.data.text} format={format} />
      {restore.isError ? <Failed error={restore.error} doing="restore it" /> : null}
      {version.current ? null : (
        <Ask trigger={<button type="button" className="button" disabled={!may}>Restore this version…</button>} title="Restore this version?" verb="Restore it" onAgree={bring}>
          <p>It is saved as the latest version, and the current version stays in the list. An unsaved draft is discarded.</p>
        </Ask>
      )}
    </>
  );
}
