import { linesOf } from "@tapedeck/shared/lines";
import { rawOutput } from "../../display/output.ts";
import { httpBase } from "../../gateway-address.ts";
import { McpBridge } from "./bridge.ts";

export type McpOptions = { readonly url?: string; readonly allowTrigger?: boolean };

/** Ends when all requests that came before the end of the input are answered. */
export async function mcp({ url, allowTrigger = false }: McpOptions): Promise<void> {
  const { base, headers } = httpBase(url);
  const bridge = new McpBridge({
    base,
    headers: { ...headers, ...(allowTrigger && { "tapedeck-allow-trigger": "true" }) },
    write: (message) => rawOutput.write(`${message}\n`),
  });
  for await (const line of linesOf(process.stdin.setEncoding("utf8"))) bridge.take(line);
  await bridge.end();
}
