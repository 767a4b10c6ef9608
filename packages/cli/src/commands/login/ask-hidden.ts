import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { ask, printError } from "../../display/output.ts";

/** Asks on the terminal for what is not shown while it is typed. */
export async function askHidden(question: string): Promise<string> {
  ask(question);
  const mute = new Writable({ write: (_chunk, _encoding, done) => done() });
  const prompt = createInterface({ input: process.stdin, output: mute, terminal: true });
  try {
    return await new Promise<string>((resolve, reject) => {
      prompt.once("line", resolve);
      prompt.once("SIGINT", () => reject(new Error("stopped: nothing was saved")));
      prompt.once("close", () => resolve(""));
    });
  } finally {
    prompt.close();
    printError("");
  }
}
