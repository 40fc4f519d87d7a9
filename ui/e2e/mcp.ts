/** What a tool answers. */
export interface Answer {
  isError?: boolean;
  content: { type: string; text: string }[];
  structuredContent?: Record<string, unknown>;
}

/** A client of the MCP endpoint, as an agent's. */
export class Client {
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private id = 0;

  private constructor(url: string, token: string) {
    this.url = `${url}/mcp`;
    this.headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  }

  static async connect(url: string, token: string): Promise<Client> {
    const client = new Client(url, token);
    await client.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "browser-test", version: "1" } });
    await client.post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return client;
  }

  /** Calls a tool; an answer that is an error is thrown. */
  async call(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    const answer = await this.answer(name, args);
    if (answer.isError === true) throw new Error(`${name}: ${answer.content[0]?.text ?? ""}`);
    return answer.structuredContent ?? {};
  }

  /** Calls a tool, and gives what it answers: an error, too. */
  async answer(name: string, args: Record<string, unknown>): Promise<Answer> {
    return (await this.request("tools/call", { name, arguments: args })) as unknown as Answer;
  }

  private async request(method: string, params: unknown): Promise<Record<string, unknown>> {
    const id = ++this.id;
    const text = await this.post({ jsonrpc: "2.0", id, method, params });
    for (const line of text.split("\n")) {
      const json = line.startsWith("data:") ? line.slice(5) : line;
      if (!json.trim().startsWith("{")) continue;
      const message = JSON.parse(json) as { id?: number; result?: Record<string, unknown>; error?: { message: string } };
      if (message.id !== id) continue;
      if (message.error !== undefined) throw new Error(`${method}: ${message.error.message}`);
      return message.result ?? {};
    }
    throw new Error(`${method}: no answer in ${text}`);
  }

  private async post(message: unknown): Promise<string> {
    const response = await fetch(this.url, { method: "POST", headers: this.headers, body: JSON.stringify(message) });
    const session = response.headers.get("Mcp-Session-Id");
    if (session !== null) this.headers["Mcp-Session-Id"] = session;
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status}: ${text}`);
    return text;
  }
}
