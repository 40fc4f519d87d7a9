// What scripts in Guideway's sandbox can use. A script is an ES module with
// exports, or the body of an async function. Besides what is declared here there
// are the built-in objects of the language (ES2023): no files, no network, no
// timers but sleep, no code from strings.

/** A value that JSON can hold. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

// ---------------------------------------------------------------------------
// Hooks: export default async function (context) { ... }, or the body alone.

/** What a hook sees of a call, and may change: request.params, response and variables. */
interface HookContext {
  request: {
    /** The MCP method. */
    method: "tools/call" | "tools/list";
    /** Of a call: the tool's name, as its server has it, and the arguments. */
    params: any;
  };
  /** The answer; behind the MCP call, or once a hook has answered. */
  response?: any;
  metadata: HookMetadata;
  /** The graph's variables, which its hooks share during one request. */
  variables: Record<string, any>;
}

/** What a hook learns of a call besides; changes of it but for shared mean nothing. */
interface HookMetadata {
  /** Who calls. */
  clientId?: string;
  clientName?: string;
  /** The server that is called. */
  serverId?: string;
  serverName?: string;
  /** The graph and the node that run. */
  workflowId: string;
  nodeId: string;
  /** When the request came in, in milliseconds since 1970. */
  startTime: number;
  /** How long the MCP call took, in milliseconds; behind it. */
  duration?: number;
  /** Why the MCP call failed, for the hooks that are told. */
  error?: { code: string; message: string };
  /** Values that the hooks of one request hand on to each other. */
  shared: Record<string, any>;
}

/** What a hook may return; nothing is { continue: true }. */
interface HookResult {
  /** false refuses the call. */
  continue: boolean;
  /** Takes the place of the context. */
  context?: HookContext;
  /** Why the call is refused. */
  error?: { code: string; message: string };
}

type Hook = (context: HookContext) => HookResult | void | Promise<HookResult | void>;

/** The context of a hook that is written as a function's body. */
declare const context: HookContext;

// ---------------------------------------------------------------------------
// Handlers of agent machines: export default { handler() { ... } }.

interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null;
  [key: string]: any;
}

/** A conversation that agents share. */
interface Conversation {
  addMessage(message: Message): void;
  getMessages(): Message[];
  getLastMessage(): Message | undefined;
  getMessagesByRole(role: string): Message[];
  clearMessages(): void;
}

/** this of a handler: the state of the run, and the other handlers. */
interface HandlerThis {
  /** Values that all states of the machine share. */
  common_data: { [key: string]: any };
  /** The conversations, by name. */
  workflow_contexts: Map<string, Conversation>;
  /** The model's last answer, as its API gave it. */
  last_response: any;
  /** What the machine was started with. */
  input: any;
  [handler: string]: any;
}

// ---------------------------------------------------------------------------
// What every script has.

interface SandboxConsole {
  log(...values: any[]): void;
  info(...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
  debug(...values: any[]): void;
}

/** Lines that stand in the trace of the call. */
declare const console: SandboxConsole;

/** Waits for ms milliseconds, within the time that the script has. */
declare function sleep(ms: number): Promise<void>;

/** Gives a record, as JSON, to whoever keeps the audit. */
declare function audit(record: Json): void;

/** A copy of value in which change was applied to every string, keys excepted. */
declare function mapStrings<T>(value: T, change: (text: string) => string): T;

/** A deep copy of value. */
declare function structuredClone<T>(value: T): T;

/** The SHA-256 of a text (as UTF-8) or bytes, in hexadecimal digits. */
declare function sha256(input: string | ArrayBuffer | ArrayBufferView): string;

declare const base64: {
  /** Base64 of a text (as UTF-8) or bytes. */
  encode(input: string | ArrayBuffer | ArrayBufferView): string;
  /** The text (from UTF-8) that was encoded. */
  decode(text: string): string;
  /** The bytes that were encoded. */
  bytes(text: string): Uint8Array;
};

declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function queueMicrotask(task: () => void): void;

/** UTF-8 alone. */
declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(input?: string): Uint8Array;
}

/** UTF-8 alone. */
declare class TextDecoder {
  readonly encoding: "utf-8";
  decode(input?: ArrayBuffer | ArrayBufferView): string;
}
