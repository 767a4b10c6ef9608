import { get } from "node:http";
import { now } from "../frame/arrivals.ts";

/** A client of server-sent events and NDJSON that counts lines and parses none. */

const newline = 0x0a;

/** Reads until so many events have come, and disconnects. */
export function read(
  url: string,
  accept: string,
  count: number,
): Promise<{ count: number; bytes: number; wallMs: number }> {
  const begins = accept === "text/event-stream" ? 'data: {"type":"event"' : '{"type":"event"';
  const start = now();
  return new Promise((resolve, reject) => {
    const request = get(url, { headers: { accept }, agent: false }, (response) => {
      if (response.statusCode !== 200) {
        request.destroy();
        return reject(new Error(`HTTP ${response.statusCode}`));
      }
      let [events, bytes] = [0, 0];
      let rest: Buffer = Buffer.alloc(0);
      const mark = Buffer.from(begins);
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        const text = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
        let line = 0;
        for (let end = text.indexOf(newline); end >= 0; end = text.indexOf(newline, line)) {
          if (end - line > mark.length && text.compare(mark, 0, mark.length, line, line + mark.length) === 0) events++;
          line = end + 1;
        }
        rest = Buffer.from(text.subarray(line));
        if (events < count) return;
        request.destroy();
        resolve({ count: events, bytes, wallMs: now() - start });
      });
      response.on("end", () => reject(new Error(`the answer ended after ${events} of ${count} events`)));
    });
    request.on("error", reject);
  });
}
