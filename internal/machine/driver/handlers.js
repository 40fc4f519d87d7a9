// This module calls a handler of a machine's script: it builds `this` from the state of
// the run, calls the function, and returns the changes. The driver puts the import of the
// script before this text.

const freeze = (value) => {
  if (value !== null && typeof value === "object" && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
};

const roles = ["system", "user", "assistant", "tool"];

class WorkflowContext {
  #sides;
  constructor(name, messages, sides) {
    this.name = name;
    this.messages = messages;
    this.#sides = sides;
  }
  addMessage(message) {
    if (message === null || typeof message !== "object" || !roles.includes(message.role)) {
      throw new TypeError("addMessage requires an object {role, content} with one of the roles " + roles.join(", "));
    }
    const calls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
    if (!message.content && !calls && message.role !== "tool") {
      throw new Error("addMessage: the content of a message must not be empty");
    }
    this.messages.push(structuredClone(message));
  }
  getMessages() { return [...this.messages]; }
  getLastMessage() { return this.messages[this.messages.length - 1] ?? null; }
  getMessagesByRole(role) { return this.messages.filter((m) => m.role === role); }
  clearMessages() { this.messages.length = 0; }
  getMessagesForAgent(agent) {
    if (this.#sides[agent] !== "user") return this.getMessages();
    const other = { user: "assistant", assistant: "user" };
    return this.messages.map((m) => ({ ...m, role: other[m.role] ?? m.role }));
  }
}

const written = (what, value) => {
  try {
    return JSON.stringify(value);
  } catch (e) {
    throw new TypeError(what + " cannot be encoded as JSON: " + e.message);
  }
};

export default async function (name, wants, given) {
  const handlers = script.default ?? script;
  const fn = handlers?.[name];
  if (typeof fn !== "function") throw new TypeError("the script exports no function " + name);
  const before = {};
  const contexts = new Map();
  for (const [key, messages] of Object.entries(given.contexts)) {
    before[key] = messages.map((m) => JSON.stringify(m));
    contexts.set(key, new WorkflowContext(key, messages, given.agents ?? {}));
  }
  const self = {};
  for (const key of Object.keys(handlers)) {
    if (typeof handlers[key] === "function") self[key] = handlers[key].bind(self);
  }
  self.common_data = given.common_data;
  self.workflow_contexts = contexts;
  self.last_response = freeze(given.last_response);
  self.input = freeze(given.input);
  if (given.error) self.error = freeze(given.error);
  const value = await fn.call(self);
  const out = { value: null, common_data: self.common_data, contexts: [] };
  if (wants) {
    if (["function", "symbol", "bigint"].includes(typeof value)) {
      throw new TypeError(name + " returned a " + typeof value + ", which is not the name of a state");
    }
    out.value = value ?? null;
  }
  const data = self.common_data;
  if (data === null || typeof data !== "object" || Array.isArray(data)) throw new TypeError("common_data must be an object after the handler");
  out.common_data = JSON.parse(written("common_data", data));
  for (const [key, old] of Object.entries(before)) {
    const messages = contexts.get(key)?.messages;
    if (!Array.isArray(messages)) throw new TypeError("the messages of the context " + key + " must be a list after the handler");
    const now = messages.map((m) => written("a message of the context " + key, m));
    let keep = 0;
    while (keep < old.length && keep < now.length && old[keep] === now[keep]) keep++;
    if (keep < old.length || keep < now.length) out.contexts.push({ name: key, keep, add: now.slice(keep).map((m) => JSON.parse(m)) });
  }
  return out;
}
