// The API of scripts in Guideway's sandbox. A script is an ES module with exports,
// or the body of an async function. The built-in objects of the language (ES2023)
// are also available. Scripts have no access to files or the network, no timer
// except sleep, and cannot run code from strings.

/** A JSON value. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

// ---------------------------------------------------------------------------
// Hooks: export default async function (context) { ... }, or the body alone.

/** The context of a request. A hook can change request.params, response, error, progress and variables. */
interface HookContext {
  request: {
    /** The MCP method. */
    method: "tools/call" | "tools/list" | "resources/read" | "prompts/get";
    /** For tools/call: the upstream's name of the tool, and the arguments. */
    params: any;
  };
  /** The response; set after the MCP call, or after a hook has answered. */
  response?: any;
  /** The error of a failed MCP call, for hooks that handle "error". The code of an error of the protocol is a number. */
  error?: { code: number | string; message: string; data?: Json };
  /** The params of a progress message, for hooks that handle "progress". */
  progress?: { progress: number; total?: number; message?: string; [key: string]: any };
  metadata: HookMetadata;
  /** The variables of the graph, which its hooks share during one request. */
  variables: Record<string, any>;
}

/** Metadata of the request. Changes are ignored, except changes of shared. */
interface HookMetadata {
  /** The client that sent the request. */
  clientId?: string;
  clientName?: string;
  /** The upstream that receives the request. */
  serverId?: string;
  serverName?: string;
  /** For tools/call: the open run of the client that it used last, with its current step or state. */
  run?: { id: string; step: string };
  /** The running graph and node. */
  workflowId: string;
  nodeId: string;
  /** The time when the request arrived, in milliseconds since 1970. */
  startTime: number;
  /** The duration of the MCP call in milliseconds; set after the call. */
  duration?: number;
  /** The error of a failed MCP call, for fire-and-forget hooks after the call. */
  error?: { code: string; message: string };
  /** Values that the hooks of one request share. */
  shared: Record<string, any>;
}

/** The return value of a hook. Returning nothing means { continue: true }. */
interface HookResult {
  /** false refuses the request; true if absent. */
  continue?: boolean;
  /** Replaces the context. */
  context?: HookContext;
  /** The reason for the refusal. */
  error?: { code: string; message: string };
  /** The reason why the call of a tool waits for the approval of a person. */
  hold?: string;
}

type Hook = (context: HookContext) => HookResult | void | Promise<HookResult | void>;

/** The context of a hook whose script is the body of a function. */
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

/** The type of this in a handler: the state of the run, and the other handlers. */
interface HandlerThis {
  /** Values that all states of the machine share. */
  common_data: { [key: string]: any };
  /** The conversations, by name. */
  workflow_contexts: Map<string, Conversation>;
  /** The last answer of the model, unchanged. */
  last_response: any;
  /** The inputs of the machine. */
  input: any;
  [handler: string]: any;
}

// ---------------------------------------------------------------------------
// For all scripts.

interface SandboxConsole {
  log(...values: any[]): void;
  info(...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
  debug(...values: any[]): void;
}

/** Writes lines to the trace of the request. */
declare const console: SandboxConsole;

/** Waits for ms milliseconds. The time limit of the script still applies. */
declare function sleep(ms: number): Promise<void>;

/** Writes a record, as JSON, to the audit file. */
declare function audit(record: Json): void;

/** A scope of the state of a hook graph. Values are kept between requests and after a restart. */
interface HookState {
  /** Returns the value of key, or null if there is none. */
  get(key: string): Json;
  /**
   * Stores a value; null deletes it. Returns whether it was stored.
   * ttl: milliseconds until the value expires; without it, the value does not expire.
   * if: stores only if this is the current value; null: only if there is none.
   */
  set(key: string, value: Json, options?: { ttl?: number; if?: Json }): boolean;
  /**
   * Adds by (1 if absent) to an integer and returns the sum; a missing value counts as 0.
   * ttl: milliseconds until the value expires, from the call that created it.
   */
  incr(key: string, by?: number, options?: { ttl?: number }): number;
}

/** The state of the hook graph. Only hooks of the gateway have it. */
declare const state: {
  /** For the client that sent the request: its token or user, and its name. */
  readonly client: HookState;
  /** For the upstream that receives the request. */
  readonly upstream: HookState;
  /** For all requests. */
  readonly global: HookState;
};

/**
 * Returns text with replacement ("[redacted]" if absent) in place of what looks like a
 * credential: by its form, by the text before it and, in JSON, by the name of its member.
 * With personal, e-mail addresses and the numbers of cards, bank accounts (IBAN), phones and
 * US social security are replaced, too.
 */
declare function redact(text: string, replacement?: string, personal?: boolean): string;

/** Returns whether a name is that of a credential, such as password or accessToken. */
declare function namesSecret(name: string): boolean;

/** Returns a copy of value with change applied to every string, except keys. */
declare function mapStrings<T>(value: T, change: (text: string) => string): T;

/** Returns a deep copy of value. */
declare function structuredClone<T>(value: T): T;

/** Returns the SHA-256 of a string (as UTF-8) or of bytes, in hexadecimal digits. */
declare function sha256(input: string | ArrayBuffer | ArrayBufferView): string;

declare const base64: {
  /** Encodes a string (as UTF-8) or bytes. */
  encode(input: string | ArrayBuffer | ArrayBufferView): string;
  /** Decodes to a string (from UTF-8). */
  decode(text: string): string;
  /** Decodes to bytes. */
  bytes(text: string): Uint8Array;
};

declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function queueMicrotask(task: () => void): void;

/** Supports only UTF-8. */
declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(input?: string): Uint8Array;
}

/** Supports only UTF-8. */
declare class TextDecoder {
  readonly encoding: "utf-8";
  decode(input?: ArrayBuffer | ArrayBufferView): string;
}
