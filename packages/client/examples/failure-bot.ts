// Posts to a chat why a dev loop failed: CHAT_URL=https://chat.example.com/hooks/builds node failure-bot.ts
import { setTimeout } from "node:timers/promises";
import { connect } from "@tapedeck-dev/client";

const tapedeck = connect({ url: process.env.TAPEDECK_URL ?? "http://127.0.0.1:7052" });
const chat = process.env.CHAT_URL ?? "https://chat.example.com/hooks/builds";

for await (const { source, session, operation } of tapedeck.events({ kinds: ["loop.failed"] })) {
  if (session === undefined || operation === undefined) continue;
  // What a failed step has printed may come a moment after the event: Skaffold sends it on another stream.
  await setTimeout(2_000);
  const { runner, loop } = operation;
  const loops = tapedeck.operations({ sessions: [session], kinds: ["loop"], runner, loop });
  for await (const { cause, labels } of loops) {
    const [, developer, project] = source.split("/");
    const where = cause?.file == null ? "" : ` (${cause.file}${cause.line === null ? "" : `:${cause.line}`})`;
    const why = cause === null ? "nobody knows why" : `${cause.reason}: ${cause.text}${where}`;
    const branch = labels?.branch === undefined ? "" : ` on ${labels.branch}`;
    const text = `${project} of ${developer}${branch}: ${why}`;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(chat, { method: "POST", headers, body: JSON.stringify({ text }) });
    if (!answer.ok) console.error(`the chat answered ${answer.status}: ${text}`);
  }
}
