import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const subject = fileURLToPath(new URL("./discarded-sockets.ts", import.meta.url));

/** Runs a script in a process of its own; gives its exit code and what it printed. */
async function run(script: string): Promise<{ readonly code: number; readonly said: string }> {
  const source = `
    import { createServer, connect } from "node:net";
    import { surviveDiscardedSockets } from ${JSON.stringify(subject)};
    surviveDiscardedSockets(
      (error) => console.log("survived", error.code),
      (error) => { console.log("fatal", error.message); process.exit(1); },
    );
    ${script}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, said };
}

it("a write to a discarded socket does not end the process", async () => {
  const { code, said } = await run(`
    const server = createServer().listen(0, "127.0.0.1", () => {
      const socket = connect(server.address().port, "127.0.0.1", () => {
        socket.end();
        socket.removeAllListeners();
        socket.write("too late");
        setImmediate(() => { console.log("goes on"); process.exit(0); });
      });
    });`);
  expect(said).toBe("survived ERR_STREAM_WRITE_AFTER_END\ngoes on\n");
  expect(code).toBe(0);
});

it("any other uncaught error ends the process", async () => {
  expect(await run(`setImmediate(() => { throw new Error("a mistake"); });`)).toEqual({
    code: 1,
    said: "fatal a mistake\n",
  });
});
