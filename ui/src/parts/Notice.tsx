import { createContext, useCallback, useContext, useMemo, useRef, useState, type ReactNode } from "react";
import "./notice.css";

interface Note {
  text: string;
  /** What takes it back, and the verb of its button. */
  undo?: { verb: string; run: () => void };
  failed?: boolean;
}

type Tell = (note: Note) => void;

const Telling = createContext<Tell>(() => undefined);

/** How long a notice stands; one that can be undone stands longer. */
const stands = 6_000;
const standsWithUndo = 20_000;

/** Gives a function that says in a corner what was done. */
export function useNotice(): Tell {
  return useContext(Telling);
}

/** Holds the notice of what was done last, with the way to undo it. */
export function NoticeProvider({ children }: { children: ReactNode }) {
  const [note, setNote] = useState<Note | undefined>();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const tell = useCallback((next: Note) => {
    clearTimeout(timer.current);
    setNote(next);
    timer.current = setTimeout(() => setNote(undefined), next.undo === undefined ? stands : standsWithUndo);
  }, []);
  const close = () => setNote(undefined);
  return (
    <Telling value={useMemo(() => tell, [tell])}>
      {children}
      <div className="notices" role="status" aria-live="polite">
        {note === undefined ? null : (
          <div className="notice" data-failed={note.failed}>
            <span>{note.text}</span>
            {note.undo === undefined ? null : (
              <button type="button" className="button" onClick={() => { note.undo?.run(); close(); }}>{note.undo.verb}</button>
            )}
            <button type="button" className="button button-bare" aria-label="Close this notice" onClick={close}>✕</button>
          </div>
        )}
      </div>
    </Telling>
  );
}
