import { Component, type ReactNode } from "react";
import { PageLoadError } from "./loadPage";
import "./states.css";

interface Props {
  /** The path of the page. Another page is shown without the error. */
  place: string;
  children: ReactNode;
}

/** How often an unreachable server is called again, in milliseconds. */
const interval = 2_000;

/** Shows an error of a page in its place. The frame around it keeps working. */
export class ErrorBoundary extends Component<Props, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };
  private timer: ReturnType<typeof setInterval> | undefined;

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error !== undefined && before.place !== this.props.place) this.setState({ error: undefined });
    this.watch();
  }

  override componentWillUnmount() {
    clearInterval(this.timer);
  }

  /** Loads the page again as soon as the server answers. */
  private watch() {
    clearInterval(this.timer);
    if (!(this.state.error instanceof PageLoadError && this.state.error.reason === "unreachable")) return;
    this.timer = setInterval(() => void fetch("/api/health").then(() => location.reload(), () => undefined), interval);
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const { title, text } = describe(error);
    return (
      <div className="state" role="alert">
        <h1>{title}</h1>
        <p className="prose">{text}</p>
        <button type="button" className="button" onClick={() => location.reload()}>Reload</button>
      </div>
    );
  }
}

function describe(error: unknown): { title: string; text: string } {
  if (!(error instanceof PageLoadError)) return { title: "This page has failed", text: error instanceof Error ? error.message : String(error) };
  if (error.reason === "unreachable") return { title: "The server cannot be reached", text: "The page loads as soon as the server answers. If it was stopped, start it with guideway serve." };
  return { title: "The server was updated", text: "This tab has the pages of an earlier version. Reload it." };
}
