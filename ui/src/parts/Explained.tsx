import { useId, useRef, type KeyboardEvent, type ReactNode } from "react";
import "./explained.css";

interface Props {
  children: ReactNode;
  explanation: string;
  className?: string;
  /** Selects the style of a label. */
  label?: string;
}

/**
 * A word with an explanation that appears at focus, hover and touch; Escape hides it. A screen
 * reader reads it as the description of the word. It is a popover, so that no list clips it.
 */
export function Explained({ children, explanation, className, label }: Props) {
  const id = useId();
  const word = useRef<HTMLButtonElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  const hide = () => tip.current?.hidePopover();
  const show = () => {
    if (word.current === null || tip.current === null) return;
    tip.current.showPopover();
    place(tip.current, word.current.getBoundingClientRect());
    addEventListener("scroll", hide, { capture: true, once: true });
  };
  const leave = () => {
    if (document.activeElement !== word.current) hide();
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === "Escape") hide();
  };
  return (
    <span className="explained" onPointerEnter={show} onPointerLeave={leave}>
      <button ref={word} type="button" className={`explained-word ${className ?? ""}`} data-label={label} aria-describedby={id} onFocus={show} onClick={show} onBlur={hide} onKeyDown={onKeyDown}>{children}</button>
      <span ref={tip} id={id} role="tooltip" popover="manual" className="explained-tip">{explanation}</span>
    </span>
  );
}

/** Places a tip below a word, or above it at the end of the window. */
function place(tip: HTMLElement, { left, top, bottom }: DOMRect) {
  const margin = 8;
  tip.style.left = `${Math.max(margin, Math.min(left, innerWidth - tip.offsetWidth - margin))}px`;
  tip.style.top = `${bottom + tip.offsetHeight + margin <= innerHeight ? bottom : top - tip.offsetHeight}px`;
}
