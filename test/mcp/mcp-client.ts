import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** A client of the SDK, as assistants have it. */
export type McpClient = AsyncDisposable & {
  readonly client: Client;
  /** The text of an answer. */
  ask(name: string, args?: Record<string, unknown>): Promise<string>;
  /** The same, with whether it is an error. */
  call(name: string, args?: Record<string, unknown>): Promise<{ readonly text: string; readonly isError: boolean }>;
  tools(): Promise<string[]>;
};

export async function mcpClient(
  http: string,
  headers: Readonly<Record<string, string>> = {},
  versionNegotiation?: object,
): Promise<McpClient> {
  const client = new Client({ name: "test", version: "1" }, { ...(versionNegotiation && { versionNegotiation }) });
  const transport = new StreamableHTTPClientTransport(new URL(`http://${http}/mcp`), {
    requestInit: { headers: { ...headers } },
  });
  await client.connect(transport);
  const call: McpClient["call"] = async (name, args = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: args });
    const text = content.map((one) => (one.type === "text" ? one.text : "")).join("\n");
    return { text, isError };
  };
  return {
    client,
    call,
    async ask(name, args) {
      const { text, isError } = await call(name, args);
      if (isError) throw new Error(text);
      return text;
    },
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    [Symbol.asyncDispose]: () => client.close(),
  };
}
