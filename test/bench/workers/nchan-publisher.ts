import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { now, SightingLog, type Sightings } from "../frame/arrivals.ts";

/** Publishes over HTTP, as nchan's publishers do. */

/** Several at a time, so that no answer delays the next request. */
const connections = 16;
const agent = new Agent({ keepAlive: true, maxSockets: connections });
let paced = 0;

/** Publishes as fast as the server answers. */
export async function broadcast(url: string, texts: readonly string[], count: number): Promise<void> {
  let next = 0;
  const connection = async () => {
    while (next < count) await publish(url, texts[next++ % texts.length] ?? "");
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

/**
 * Publishes at a fixed rate. `text`: an event; each published copy is numbered as a frame of an upstream. Resolves when
 * all are answered.
 */
export async function pace(url: string, text: string, perSecond: number, seconds: number): Promise<Sightings> {
  const due = new SightingLog();
  const [head, tail] = numbered(text);
  const total = Math.round(perSecond * seconds);
  const start = now();
  const answers: Promise<void>[] = [];
  for (let sent = 0; sent < total; ) {
    const ready = Math.min(total, Math.floor(((now() - start) / 1_000) * perSecond) + 1);
    for (; sent < ready; sent++) {
      due.see("peer v1", paced + sent, start + (sent * 1_000) / perSecond);
      answers.push(publish(url, `${head}${paced + sent}${tail}`));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(answers);
  paced += total;
  return due.take();
}

/** The message around the number by which its reader identifies it. */
function numbered(text: string): readonly [string, string] {
  const mark = "<number>";
  const { event, ...message } = JSON.parse(text) as { readonly event: object };
  const source = "default/peer/shop/skaffold";
  const frame = { source, channel: "v1", part: 0, frameOrdinal: mark };
  const json = JSON.stringify({ ...message, event: { ...frame, ...event, ...frame } });
  const [head = "", tail = ""] = json.split(JSON.stringify(mark));
  return [head, tail];
}

async function publish(url: string, text: string): Promise<void> {
  const post = request(url, { method: "POST", agent, headers: { "content-length": Buffer.byteLength(text) } });
  post.end(text);
  const [response] = (await once(post, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  const { statusCode = 0 } = response;
  if (statusCode < 200 || statusCode > 299) throw new Error(`nchan answered ${statusCode}`);
}
