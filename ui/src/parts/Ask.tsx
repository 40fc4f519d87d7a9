import { AlertDialog } from "radix-ui";
import type { ReactNode } from "react";
import "./ask.css";

interface AskProps {
  /** What opens the question. */
  trigger: ReactNode;
  title: string;
  children: ReactNode;
  /** The verb of the button that does it. */
  verb: string;
  onAgree: () => void;
}

/** Asks before something that cannot be undone. */
export function Ask({ trigger, title, children, verb, onAgree }: AskProps) {
  return (
    <AlertDialog.Root>
      <AlertDialog.Trigger asChild>{trigger}</AlertDialog.Trigger>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className="ask-overlay" />
        <AlertDialog.Content className="ask">
          <AlertDialog.Title asChild><h2>{title}</h2></AlertDialog.Title>
          <AlertDialog.Description asChild><div className="quiet">{children}</div></AlertDialog.Description>
          <div className="ask-buttons">
            <AlertDialog.Cancel className="button">Cancel</AlertDialog.Cancel>
            <AlertDialog.Action className="button button-main" onClick={onAgree}>{verb}</AlertDialog.Action>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
