import { Agent, get, type IncomingMessage, request } from "node:http";
import { Client } from "pg";
import { now } from "../frame/arrivals.ts";

/** Sends one request after the other, all on the same connection. */

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const databases = new Map<string, Client>();

/** Takes the URLs in turns. Resolves with the time of each answer in ms, ascending; rejects at an answer that is not 200. */
export async function httpTimes(urls: readonly string[], count: number): Promise<Float64Array> {
  const times = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    const start = now();
    await answer(urls[index % urls.length] ?? "");
    times[index] = now() - start;
  }
  return times.sort();
}

/** Calls a tool again and again. Rejects where it answers with an error. */
export async function mcpTimes(url: string, params: object, count: number): Promise<Float64Array> {
  const version = "2026-07-28";
  const meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const { name } = params as { readonly name: string };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { ...params, _meta: meta } });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": version,
    "mcp-method": "tools/call",
    "mcp-name": name,
  };
  const times = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    const start = now();
    const text = await post(url, headers, body);
    times[index] = now() - start;
    const { result } = JSON.parse(text) as { readonly result?: { readonly isError?: boolean } };
    if (result === undefined || result.isError === true) throw new Error(text.slice(0, 300));
  }
  return times.sort();
}

/** The body of one answer. */
export const httpText = (url: string): Promise<string> => answer(url);

/** Runs a statement repeatedly. */
export async function sqlTimes(url: string, statement: string, count: number): Promise<Float64Array> {
  const client = databases.get(url) ?? new Client(url);
  if (!databases.has(url)) {
    databases.set(url, client);
    client.on("error", () => {});
    await client.connect();
  }
  const times = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    const start = now();
    await client.query(statement);
    times[index] = now() - start;
  }
  return times.sort();
}

function answer(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { agent, headers: { accept: "application/json" } };
    get(url, options, (response) => bodyOf(response).then(resolve, reject)).on("error", reject);
  });
}

function post(url: string, headers: Record<string, string>, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { agent, method: "POST", headers };
    request(url, options, (response) => bodyOf(response).then(resolve, reject))
      .on("error", reject)
      .end(body);
  });
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  if (response.statusCode === 200) return body;
  throw new Error(`${response.statusCode} ${body.slice(0, 120)}`);
}
