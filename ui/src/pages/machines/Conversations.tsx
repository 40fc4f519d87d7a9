import type { Schemas } from "../../api/client";
import type { Saying } from "../../api/machines";

interface Props {
  all: Record<string, Schemas["MachineMessage"][]>;
  saying: Saying | undefined;
  output: unknown;
}

interface Call {
  function?: { name?: string; arguments?: string };
}

/** The conversations of a run side by side, with what is being said and the result. */
export function Conversations({ all, saying, output }: Props) {
  return (
    <>
      {saying === undefined ? null : (
        <div className="machine-message" data-role="now" aria-live="polite"><strong>{saying.agent}</strong><p>{saying.text}</p></div>
      )}
      {output === undefined ? null : <section className="machine-output"><h2>Result</h2><pre>{typeof output === "string" ? output : JSON.stringify(output, null, 2)}</pre></section>}
      <div className="machine-talks">
        {Object.entries(all).map(([name, messages]) => (
          <section key={name} aria-label={`Conversation ${name}`}>
            <h2>{name}</h2>
            {messages.length === 0 ? <p className="quiet">No messages yet.</p> : null}
            {messages.map((m, i) => <Message key={i} message={m} />)}
          </section>
        ))}
      </div>
    </>
  );
}

function Message({ message }: { message: Schemas["MachineMessage"] }) {
  const calls = (message.tool_calls ?? []) as Call[];
  return (
    <div className="machine-message" data-role={message.role}>
      <strong>{message.role}</strong>
      {message.content === undefined || message.content === null ? null : <p>{message.content}</p>}
      {calls.map((c, i) => <p key={i} className="mono">{c.function?.name} {c.function?.arguments}</p>)}
    </div>
  );
}
