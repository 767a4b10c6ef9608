// Handles every failed step once, also after a crash: a file has the position of the last handled message.
import { readFile, rename, writeFile } from "node:fs/promises";
import { connect, TapedeckError } from "@tapedeck-dev/client";

const tapedeck = connect({ url: process.env.TAPEDECK_URL ?? "http://127.0.0.1:7052" });
const file = process.env.POSITION_FILE ?? "position.txt";

async function save(position: string): Promise<void> {
  // A program that is killed while it writes leaves the file of before.
  await writeFile(`${file}.new`, position);
  await rename(`${file}.new`, file);
}

const after = await readFile(file, "utf8").catch(() => "start");
try {
  const messages = tapedeck.subscribe({
    kinds: ["*.failed"],
    after,
    // Without this, a log that no longer reaches back so far ends the program.
    onGap: ({ after, until }) => console.warn(`lost: what is after ${after}, up to ${until}`),
  });
  for await (const message of messages) {
    if (message.type === "event") console.log(`${message.event.source} ${message.event.id} ${message.event.summary}`);
    await save(message.position);
  }
} catch (error) {
  if (!(error instanceof TapedeckError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
