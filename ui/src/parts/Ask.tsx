import { cloneElement, useId, useRef, type ReactElement, type ReactNode } from "react";
import "./ask.css";

interface AskProps {
  /** The button that opens the question. */
  trigger: ReactElement<{ onClick?: () => void }>;
  title: string;
  children: ReactNode;
  /** The verb of the button that does it. */
  verb: string;
  /** Says why it cannot be done just now. */
  cannot?: boolean;
  onAgree: () => void;
}

/**
 * Asks before something is done. It is the browser's own dialog: that keeps the
 * focus inside, closes with Escape, and needs no style that the content security
 * policy would stop.
 */
export function Ask({ trigger, title, children, verb, cannot = false, onAgree }: AskProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  return (
    <>
      {cloneElement(trigger, { onClick: () => dialog.current?.showModal() })}
      <dialog ref={dialog} className="ask" aria-labelledby={heading}>
        <form method="dialog" onSubmit={(e) => { if (e.nativeEvent instanceof SubmitEvent && e.nativeEvent.submitter?.getAttribute("value") === "agree") onAgree(); }}>
          <h2 id={heading}>{title}</h2>
          <div className="ask-body">{children}</div>
          <div className="ask-buttons">
            <button type="button" className="button" onClick={() => dialog.current?.close()}>Cancel</button>
            <button type="submit" className="button button-main" value="agree" disabled={cannot}>{verb}</button>
          </div>
        </form>
      </dialog>
    </>
  );
}
