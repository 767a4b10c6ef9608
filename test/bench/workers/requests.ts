import { Agent, get } from "node:http";
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
    get(url, { agent, headers: { accept: "application/json" } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve(body);
        else reject(new Error(`${response.statusCode} ${body.slice(0, 120)}`));
      });
    }).on("error", reject);
  });
}
